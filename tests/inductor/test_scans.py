"""Running sums, products and extrema as native code agree with eager's."""

from __future__ import annotations

import pytest

import rushlight as torch
from tests.inductor.native_nodes import check

NAN, INFINITY = float("nan"), float("inf")
SCANS = {
    "cumsum": torch.cumsum, "cumprod": torch.cumprod, "cummax": torch.cummax, "cummin": torch.cummin,
    "logcumsumexp": torch.logcumsumexp,
}  # fmt: skip
KINDS = [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool]
SHAPES = [(), (1,), (7,), (3000,), (5, 1), (4, 33), (3, 50, 2), (2, 5, 70), (3, 0, 4), (2, 3, 4, 5)]


def values(shape, kind):
    made = torch.randn(shape) * 2
    return made > 0 if kind is torch.bool else (made.abs() if kind is torch.uint8 else made).to(kind)


def scans(name, *dims):
    """A function of all results along each dimension."""

    def function(*tensors):
        found = [SCANS[name](x, dim) for x in tensors for dim in dims]
        return tuple(tensor for each in found for tensor in (each if isinstance(each, tuple) else (each,)))

    return function


@pytest.mark.parametrize("name", SCANS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_dimension(name, shape):
    rank = max(1, len(shape))
    check(scans(name, *range(-rank, rank)), values(shape, torch.float32))


@pytest.mark.parametrize("name", SCANS)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_dtype(name, kind):
    if name == "logcumsumexp" and not kind.is_floating_point:
        pytest.skip("defined for floats")
    check(scans(name, 0, -1), *(values(shape, kind) for shape in ((40,), (3, 21), (4, 5, 20))))


def test_another_dtype_for_the_result():
    def function(x, y):
        return x.cumsum(0, dtype=torch.float64), y.cumprod(1, dtype=torch.float32)

    check(function, values((9, 20), torch.float32), values((9, 20), torch.int64))


@pytest.mark.parametrize("name", SCANS)
def test_numbers_that_are_not_finite(name):
    rows = torch.tensor([
        [1.0, NAN, 3.0, NAN, 2.0], [INFINITY, 1.0, INFINITY, -INFINITY, 2.0], [-INFINITY, -INFINITY, 0.0, 0.0, -1.0],
        [0.0, -0.0, 0.0, -0.0, 1.0],
    ])  # fmt: skip
    check(scans(name, 1, 0), rows, rows.t().contiguous().repeat(1, 8))


def test_what_comes_before_is_part_of_the_kernel():
    def function(x, y):
        return (x.sin() * y + 1).cumsum(-1) * 2

    check(function, values((6, 40), torch.float32), values((40,), torch.float32))
    check(function, values((40, 6), torch.float32).t(), values((6, 1), torch.float32))
    check(lambda x: x[:, ::2].flip(1).cumsum(1), values((6, 40), torch.float32))
    check(lambda x, at: x[at].cummax(0), values((6, 20), torch.float32), torch.tensor([1, 1, 5, 0]))


def test_gradients():
    x = values((4, 9), torch.float32).double()
    for function in (lambda x: x.cumsum(0), lambda x: x.cumprod(1), lambda x: x.cummax(1)[0], lambda x: x.logcumsumexp(0)):
        compiled = torch.compile(function, fullgraph=True)
        found, wanted = [], []
        for run, into in ((compiled, found), (function, wanted)):
            leaf = x.clone().requires_grad_()
            (run(leaf) * torch.arange(9)).sum().backward()
            into.append(leaf.grad)
        torch.testing.assert_close(found, wanted)


def test_open_sizes():
    compiled = torch.compile(lambda x: (x + 1).cumsum(1).cummax(0), fullgraph=True, dynamic=True)
    for shape in ((3, 5), (4, 70), (9, 33), (1, 6)):
        x = values(shape, torch.float32)
        torch.testing.assert_close(tuple(compiled(x)), tuple((x + 1).cumsum(1).cummax(0)))
