"""Sorts, the first of rows and places in sorted rows, as native code, agree with eager's."""

from __future__ import annotations

import warnings

import pytest

import rushlight as torch
from tests.inductor.native_nodes import check, check_gradients

NAN, INFINITY = float("nan"), float("inf")
KINDS = [
    torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8,
]  # fmt: skip
SHAPES = [(), (1,), (7,), (3000,), (5, 1), (4, 33), (3, 50, 2), (2, 3, 4, 5), (3, 0, 4), (0, 3)]


def values(shape, kind):
    """Values of which some are equal."""
    made = (torch.randn(shape) * 20).round() / 4
    return made > 0 if kind is torch.bool else (made.abs() if kind is torch.uint8 else made).to(kind)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_dimension(shape, descending):
    rank = max(1, len(shape))

    def function(x):
        found = [torch.sort(x, dim, descending=descending) for dim in range(-rank, rank)]
        return tuple(tensor for pair in found for tensor in pair)

    check(function, values(shape, torch.float32))


@pytest.mark.parametrize("kind", [*KINDS, torch.bool], ids=str)
def test_every_dtype(kind):
    def function(*tensors):
        found = [torch.sort(x, stable=True, descending=down) for x in tensors for down in (False, True)]
        return tuple(tensor for pair in found for tensor in pair)

    check(function, *(values(shape, kind) for shape in ((40,), (3, 210), (4, 5, 20))))


def test_numbers_that_are_not_finite():
    rows = torch.tensor([
        [1.0, NAN, 3.0, -NAN, 2.0], [INFINITY, 1.0, INFINITY, -INFINITY, NAN], [-INFINITY, -INFINITY, 0.0, -0.0, -1.0],
        [0.0, -0.0, 0.0, -0.0, 1e-40], [NAN, NAN, NAN, NAN, NAN],
    ])  # fmt: skip

    def function(x, wide):
        found = [torch.sort(wide, descending=down) for down in (False, True)]
        found += [wide.topk(count, largest=largest) for count in (1, 5, 40) for largest in (False, True)]
        found += [torch.sort(x, 0), x.topk(3), x.to(torch.bfloat16).sort(), x.double().topk(2, dim=0, largest=False)]
        return tuple(tensor for pair in found for tensor in pair)

    check(function, rows, rows.repeat(1, 60))


@pytest.mark.parametrize("count", [0, 1, 3, 16, 17, 100, 129, 200])
@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.int64], ids=str)
def test_the_first_of_rows(kind, count):
    """Rows hold all values once, so that which of equal ones come is not asked."""
    rows = torch.stack([torch.randperm(1200) - 600 for _ in range(5)]).to(kind)

    def function(x):
        return *x.topk(count), *x.topk(count, largest=False), *x.t().topk(count, dim=0), *x.topk(min(count, 3), sorted=False)

    check(function, rows)


def test_the_first_of_short_rows_and_other_dtypes():
    for kind in KINDS:
        rows = torch.stack([torch.randperm(20) for _ in range(6)]).to(kind)
        check(lambda x: (*x.topk(2), *x.topk(20), *x.topk(3, dim=0)[:1]), rows)
    check(lambda x: x.topk(1), torch.tensor(3.0))
    check(lambda x: x.topk(3), torch.arange(40.0).view(4, 10)[:, ::2])


def test_rows_that_rise_or_are_alike():
    rising = torch.arange(4000.0).view(2, 2000)
    check(lambda x: (*x.topk(20), *x.topk(20, largest=False), *x.topk(3), *x.topk(3, largest=False)), rising)
    check(lambda x: (*x.sort(), *x.sort(descending=True)), torch.ones(2, 500))


def test_what_is_made_of_sorts():
    def function(x):
        return (
            x.argsort(1), x.argsort(0, descending=True), *x.kthvalue(3), *x.median(1), *x.nanmedian(0), x.quantile(0.3, dim=1),
            x.msort(), torch.isin(x, x[0] + 0),
        )  # fmt: skip

    check(function, torch.randn(6, 70))


def test_what_comes_before_is_part_of_the_kernel():
    check(lambda x, y: (x.sin() * y).sort(-1), torch.randn(6, 40), torch.randn(40))
    check(lambda x, at: x[at].topk(4), torch.randn(6, 40), torch.tensor([1, 1, 5, 0]))
    check(lambda x: x.t()[:, ::2].sort(1)[1] + 1, torch.randn(30, 6))
    check(lambda x: (x.sort()[0].cumsum(1), x.topk(3)[1].float().mean(0)), torch.randn(6, 40))


def test_gradients():
    x = torch.randn(4, 30, dtype=torch.float64)
    check_gradients([
        lambda x: x.sort(1)[0], lambda x: x.topk(5)[0].exp(), lambda x: x.kthvalue(3, 0)[0], lambda x: x.median(1)[0],
    ], x)  # fmt: skip


def test_open_sizes():
    def function(x, row):
        return *(x + 1).sort(1), *x.topk(2, 0), torch.searchsorted(row, x), torch.bucketize(x[0], row, right=True)

    compiled = torch.compile(function, fullgraph=True, dynamic=True)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="compile")
        for shape, count in (((3, 5), 4), ((4, 70), 90), ((9, 33), 33), ((2, 6), 7)):
            x, row = torch.randn(shape), torch.randn(count).sort()[0]
            torch.testing.assert_close(compiled(x, row), function(x, row))


# Places in sorted rows


@pytest.mark.parametrize("count", [0, 1, 2, 31, 32, 33, 100, 1025])
@pytest.mark.parametrize("right", [False, True])
def test_places(count, right):
    def function(rows, row, x, y):
        return (
            torch.searchsorted(rows, x, right=right), torch.searchsorted(row, y, right=right, out_int32=True),
            torch.bucketize(y, row, right=right) + 1, torch.searchsorted(row, y[0, 0], right=right),
        )  # fmt: skip

    rows, row = values((3, count), torch.float32).sort(1)[0], values((count,), torch.float32).sort()[0]
    check(function, rows, row, values((3, 37), torch.float32), values((2, 5, 20), torch.float32))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_places_in_rows_of_every_dtype(kind):
    def function(short, long, x):
        return torch.searchsorted(short, x), torch.searchsorted(long, x, right=True), torch.searchsorted(long, x.t()[:5], side="left")

    short, long = (values((count,), kind).sort()[0] for count in (9, 70))
    check(function, short, long, values((6, 40), kind))


def test_places_of_numbers_that_are_not_finite():
    x = torch.tensor([NAN, INFINITY, -INFINITY, 0.0, -0.0, 2.0]).repeat(7)
    for count in (5, 60):
        row = torch.cat([torch.tensor([-INFINITY, -1.0]), torch.zeros(count), torch.tensor([INFINITY, INFINITY, NAN, NAN])])
        check(lambda row, x: (torch.searchsorted(row, x), torch.searchsorted(row, x, right=True)), row, x)


def test_places_by_a_sorter_and_in_other_layouts():
    x, rows = torch.randn(4, 9), torch.randn(4, 50)
    check(lambda rows, order, x: torch.searchsorted(rows, x, sorter=order), rows, rows.argsort(1), x)
    check(lambda rows, x: torch.searchsorted(rows.t(), x), rows.t().sort(0)[0], x[:, ::2])
    check(lambda row, x: torch.searchsorted(row[::2], x.exp()), rows[0].sort()[0], x)
    check(lambda row, x: torch.searchsorted(row * 2, x), rows[0].sort()[0], x)
    check(lambda row, x: torch.searchsorted(row[:1].exp(), x[:, :1]), rows[:, 0].sort()[0], x)


def test_a_sorter_out_of_range_is_an_error():
    compiled = torch.compile(lambda row, order, x: torch.searchsorted(row, x, sorter=order))
    with pytest.raises(RuntimeError, match="sorter index out of range"):
        compiled(torch.arange(3.0), torch.tensor([0, 1, 3]), torch.randn(4))


# Medians of all values


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8], ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (4, 5), (3, 333)], ids=str)
def test_medians(shape, kind):
    check(lambda x: (x.median(), x.nanmedian(), x.median() * 2), values(shape, kind))


@pytest.mark.parametrize("row", [[NAN], [NAN, 1.0], [3.0, NAN, NAN, 1.0, 2.0], [INFINITY, -INFINITY, NAN, 0.0]], ids=str)
def test_medians_beside_nan(row):
    check(lambda x: (x.median(), x.nanmedian()), torch.tensor(row))


def test_medians_of_many_values_and_of_none_run_in_eager():
    check(lambda x: x.median(), torch.randn(20000), native=False)
    check(lambda x: x.nanmedian(), torch.randn(0, 3), native=False)
