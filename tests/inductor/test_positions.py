"""Reads at positions that are made of indices alone: they become views, and agree with eager."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight.core.algebra import Var
from rushlight.core.dtype import float32, int64
from rushlight.inductor.ir import Constant, IndexValue
from rushlight.inductor.lowering.builder import call, cast
from rushlight.inductor.lowering.positions import position_of
from rushlight.nn import functional as F
from tests.inductor.native_nodes import check, check_gradients, source_of

PLACE = Var("i", 12)


def number(value, kind=int64):
    return Constant(kind, value)


def halves():
    scaled = call("mul", float32, cast(IndexValue(int64, PLACE), float32), number(0.5, float32))
    return cast(scaled, int64)


@pytest.mark.parametrize("value, size, text", [
    (IndexValue(int64, PLACE), 12, "i"),
    (IndexValue(int64, PLACE), 11, "None"),
    (call("sub", int64, number(11), IndexValue(int64, PLACE)), 12, "-i + 11"),
    (call("sub", int64, number(10), IndexValue(int64, PLACE)), 12, "None"),
    (call("floor_div", int64, call("mul", int64, IndexValue(int64, PLACE), number(5)), number(12)), 5, "(5*i) // 12"),
    (call("minimum", int64, IndexValue(int64, PLACE), number(20)), 12, "i"),
    (call("minimum", int64, IndexValue(int64, PLACE), number(5)), 12, "None"),
    (halves(), 6, "i // 2"),
    (call("minimum", int64, halves(), number(5)), 6, "i // 2"),
    (call("minimum", int64, halves(), number(4)), 6, "None"),
], ids=str)  # fmt: skip
def test_what_a_position_becomes(value, size, text):
    assert str(position_of(value, size, {})) == text


@pytest.mark.parametrize("size", [(1, 1), (5, 7), (16, 16), (33, 20)], ids=str)
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "area", "bilinear", "bicubic"])
def test_interpolation(mode, size):
    options = {"align_corners": True} if mode == "bilinear" else {}
    x = torch.randn(2, 3, 16, 10)
    check(lambda x: F.interpolate(x, size=size, mode=mode, **options), x)
    check(lambda x: F.interpolate(x.relu() + 1, scale_factor=2, mode=mode) * 2, x)
    check(lambda x: F.interpolate(x, scale_factor=(0.7, 1.6), mode=mode), x)


def test_windows_of_adaptive_pools():
    x = torch.randn(2, 3, 17, 20)
    for size in ((1, 1), (5, 4), (7, 7), (17, 3)):
        check(lambda x, size=size: (F.adaptive_avg_pool2d(x, size), F.adaptive_max_pool2d(x, size)), x)
    check(lambda x: F.adaptive_avg_pool1d(x[0], 6), x)


def test_flips_and_computed_indices():
    x = torch.randn(4, 5, 37)
    check(lambda x: (x.flip(0), x.flip(2), x.flip(0, 1, 2), x.sin().flip(1, 2) + x), x)
    check(lambda x: x.index_select(2, torch.arange(0, 37, 3)), x)
    check(lambda x: x.index_select(2, (torch.arange(90) // 3).clamp(max=36)), x)
    check(lambda x: x.index_select(0, torch.arange(8) % 4), x)
    check(lambda x: x.index_select(1, torch.zeros(3, dtype=torch.int64)), x)


def test_a_computed_index_out_of_range_is_an_error():
    compiled = torch.compile(lambda x: x.index_select(0, torch.arange(4) + 1))
    with pytest.raises(IndexError):
        compiled(torch.randn(4, 3))


def test_gradients():
    x = torch.randn(2, 3, 6, 8, dtype=torch.float64)
    check_gradients([
        lambda x: F.interpolate(x, scale_factor=2), lambda x: F.adaptive_avg_pool2d(x, (4, 3)), lambda x: x.flip(3).exp(),
    ], x)  # fmt: skip


def test_open_sizes():
    compiled = torch.compile(lambda x: (F.interpolate(x, scale_factor=2), x.flip(3)), fullgraph=True, dynamic=True)
    for shape in ((1, 2, 4, 5), (3, 2, 7, 6), (2, 5, 3, 20)):
        x = torch.randn(shape)
        torch.testing.assert_close(compiled(x), (F.interpolate(x, scale_factor=2), x.flip(3)))


@pytest.mark.parametrize("function", [
    lambda x: x.flip(0), lambda x: (x.flip(0), x), lambda x: torch.roll(x, 1, 0), lambda x: F.interpolate(x[None, None], scale_factor=1),
    lambda x: F.adaptive_avg_pool1d(x[None, None], 1), lambda x: x[torch.arange(1)],
], ids=["flip", "beside the input", "roll", "interpolate", "pool", "index"])  # fmt: skip
def test_what_reads_an_input_as_it_lies_is_a_copy_all_the_same(function):
    """A view of the input inside a graph, as its result it must lie elsewhere, as in eager."""
    x = torch.randn(1)
    with torch.no_grad():
        result = torch.compile(function)(x)
    result = result[0] if isinstance(result, tuple) else result
    assert result.data_ptr() != x.data_ptr()
    torch.testing.assert_close(result.flatten(), x)


@pytest.mark.parametrize("combine", [torch.sum, torch.mean, torch.amax])
@pytest.mark.parametrize("bags, size, width", [(37, 20, 64), (9, 40, 100), (1, 300, 33), (64, 3, 16)])
def test_looked_up_rows_are_combined_along_memory(combine, bags, size, width):
    """Lanes are columns of the table, whose rows are read whole."""
    torch.manual_seed(0)
    places, table = torch.randint(0, 500, (bags, size)), torch.randn(500, width)

    def function(places, table):
        return combine(F.embedding(places, table), 1)

    assert "column_accumulator" in source_of(function, places, table)
    check(function, places, table)


def test_looked_up_elements_are_combined_row_by_row():
    """Where every element has a place of its own, nothing lies side by side."""
    torch.manual_seed(0)
    places, table = torch.randint(0, 500, (40, 30, 64)), torch.randn(500)
    assert "column_accumulator" not in source_of(lambda places, table: table[places].sum(2), places, table)
    check(lambda places, table: table[places].sum(1), places, table)


@pytest.mark.parametrize("function", [
    lambda x: torch.full((x.shape[0], 64), 3.0).amax(0),
    lambda x: torch.arange(x.shape[0] * 64).reshape(x.shape[0], 64).remainder(7).sum(0),
])  # fmt: skip
def test_reductions_of_nothing_that_is_read(function):
    check(function, torch.ones(20))
