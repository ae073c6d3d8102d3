"""Loops whose masks change along their columns are cut where they do, and agree with eager."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight.nn import functional as F
from tests.inductor.native_nodes import check, source_of

SIZES = [(1, 1), (3, 5), (1, 16, 2), (40, 1, 7, 100), (5000, 3, 4096), (17,) * 30]


@pytest.mark.parametrize("sizes", SIZES, ids=lambda sizes: f"{len(sizes)} of {sizes[0]}")
def test_concatenation_along_each_dimension(sizes):
    def function(*tensors):
        flat, tensors = tensors[: len(sizes)], tensors[len(sizes) :]
        made = [torch.cat(flat), torch.cat([x.sin() for x in flat]) * 2]
        for dim in range(3):
            made.append(torch.cat([x.movedim(0, dim) for x in tensors], dim))
        return *made, torch.cat(tensors, 0).sum((1, 2)), torch.cat([x.movedim(0, 2) for x in tensors], 2).amax(2)

    inputs = [torch.randn(size) for size in sizes]
    check(function, *inputs, *(torch.randn(size, 3, 2) for size in sizes))


def test_concatenation_of_other_dtypes_and_layouts():
    x, y = torch.randn(6, 40), torch.randn(6, 30)
    check(lambda x, y: torch.cat([x, y.to(torch.bfloat16), x > 0, y.t()[:6]], 1), x, y)
    check(lambda x, y: torch.cat([x[:, ::2], y[:, 3:], x[:, :1].expand(6, 5)], 1), x, y)
    check(lambda x, y: torch.cat([x.t(), y.t()]).softmax(0), x, y)
    check(lambda x, y: torch.cat([torch.cat([x, y], 1), torch.cat([y, x, y[:, :0]], 1)]).cumsum(1), x, y)


@pytest.mark.parametrize("sizes", [(5, 40), (13, 100), (40, 5), (7, 9, 33)], ids=str)
def test_places_of_extrema_in_parts(sizes):
    def function(*tensors):
        whole = torch.cat(tensors, 1)
        return whole.argmax(1), (whole * 2).argmin(1), F.pad(tensors[-1] - 10, (sizes[0], 3), value=-20.0).argmax(1)

    torch.manual_seed(0)
    check(function, *(torch.randn(6, size) for size in sizes))


@pytest.mark.parametrize("shape", [(30,), (5, 37), (2, 3, 7, 20), (9000,)], ids=str)
def test_padding(shape):
    def function(x):
        found = [F.pad(x, (2, 3)), F.pad(x, (-1, 4), value=7.0), F.pad(x, (0, 1)).sum(-1), F.pad(x, (3, 3)).amax(-1)]
        if x.dim() > 1:
            found += [F.pad(x, (1, 0, 2, 2), value=float("inf")), F.pad(x * 2, (0, 0, 1, 1)) + 1]
        return tuple(found)

    check(function, torch.randn(shape))


def test_parts_that_are_replaced_or_moved():
    def function(x, y):
        x = x.clone()
        x[:, 3:20] = y
        x[:, 1] += 1
        z = x.roll((1, -7), (0, 1))
        z[2:, 4:30:3] = 5.0
        return x, z, x.roll(11)

    check(function, torch.randn(6, 50), torch.randn(17))


def test_open_sizes():
    def function(x, y):
        return torch.cat([x, y, x], 1), torch.cat([x.flatten(), y.flatten()]), F.pad(x, (1, 2)), torch.cat([x, x + 1])

    compiled = torch.compile(function, fullgraph=True, dynamic=True)
    for rows, first, second in ((3, 5, 7), (2, 70, 1), (9, 33, 600), (40, 200, 300)):
        x, y = torch.randn(rows, first), torch.randn(rows, second)
        torch.testing.assert_close(compiled(x, y), function(x, y))


def test_a_part_is_copied_without_a_test():
    text = source_of(lambda x, y: torch.cat([x, y], 1), torch.zeros(4, 100), torch.zeros(4, 60))
    assert "rl::for_each(100L, [&](auto lane, long r) {" in text
    assert "rl::for_each(160L - 100L, [&](auto lane, long column) { const long r = 100L + column;" in text
    assert "if (" not in text.split("rushlight_arena_bytes")[0]


def test_many_parts_are_written_once():
    parts = [torch.zeros(6, size) for size in (40, 32, 32, 64)]
    text = source_of(lambda *parts: torch.relu(torch.cat(parts, 1) * 2), *parts)
    table = "parts0[] = {{72L, 40L, in1, 32L}, {104L, 72L, in2, 32L}, {168L, 104L, in3, 64L}};"
    assert f"const struct {{ long size0; long size1; const float* from0; long size2; }} {table}" in text
    assert text.count("rl::relu") == 2
    assert "for (const auto part : parts0) {" in text
    assert "lane.load(part.from0 + r + part.size2*x - part.size1)" in text


def test_parts_of_other_types_or_other_work_are_written_apart():
    x, y = torch.zeros(6, 40), torch.zeros(6, 40, dtype=torch.float64)
    text = source_of(lambda x, y: torch.cat([x.double(), y, y, y.sin(), y, y, y], 1), x, y)
    assert text.count("rl::sin") == 1
    assert text.count("for (const auto part : parts") == 1  # only the last three are enough
    check(lambda x, y: torch.cat([x.double(), y, y, y.sin(), y, y, y], 1), torch.randn(6, 40), torch.randn(6, 40).double())


@pytest.mark.parametrize("reduced", [False, True])
def test_many_parts_in_passes_and_with_divisions(reduced):
    def function(*parts):
        whole = torch.cat([part.repeat(1, 3) for part in parts], 1)
        return whole.softmax(1) if reduced else whole[:, 1:] - whole[:, :-1]

    check(function, *(torch.randn(5, size) for size in (4, 17, 9, 30, 33)))
