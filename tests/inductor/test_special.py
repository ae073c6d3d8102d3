"""Special functions, quotients of integers and reads in reverse, as native code, agree with eager's."""

from __future__ import annotations

import math

import pytest

import rushlight as torch
from rushlight.nn import functional as F
from tests.inductor.native_nodes import check, source_of

EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-40, 3.4e38, math.inf, -math.inf, math.nan, -0.25, 2.0]


def grid(kind):
    edges = torch.tensor(EDGES, dtype=kind)
    return edges.repeat(12), edges.repeat_interleave(12)


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("function", [torch.xlogy, torch.special.xlog1py], ids=["xlogy", "xlog1py"])
def test_products_with_logarithms(function, kind):
    x, y = grid(kind)
    check(lambda x, y: (function(x, y), function(x, 2.0), function(0.0, y), function(y[:5], x[:5])), x, y)
    check(lambda x, y: function(x, y), torch.tensor([0, 1, 3]), torch.tensor([[2], [0]]))


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_powers(kind):
    x, y = grid(kind)
    check(lambda x, y: (x**y, x**0.5, x**-0.5, x**-1, x**-1.0, x**2.5, x**-2, 2.0**x), x, y)
    check(lambda x, y: (x**y.clamp(0, 5), x**0), torch.tensor([0, 3, -7]), torch.tensor([[2], [0]]))


def test_powers_take_no_library_function():
    x = torch.randn(100)
    assert "pow" not in source_of(lambda x: (x**-0.5, x**-1, x**0.5, x**3), x)


def test_shifts_by_more_bits_than_there_are():
    for kind in (torch.uint8, torch.int8, torch.int32, torch.int64):
        check(lambda x, y: (x >> y, x << y), torch.tensor([200, 7, 128, 255]).to(kind), torch.tensor([[1], [7], [9], [70]]).to(kind))


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.float16], ids=str)
def test_entropy(kind):
    check(lambda x: torch.special.entr(x) * 2, grid(kind)[0])
    check(lambda x, y: F.kl_div(x.log_softmax(-1), y.softmax(-1)), torch.randn(3, 20), torch.randn(3, 20))


def test_the_inverse_of_erf():
    x = torch.linspace(-1, 1, 4001)
    check(torch.erfinv, x)
    check(torch.erfinv, torch.tensor([*EDGES, 0.9999999, -0.9999999, 1e-20]))
    check(torch.erfinv, x[::7].to(torch.bfloat16))
    check(lambda x: torch.erfinv(x.tanh()).erf(), torch.randn(40))


@pytest.mark.parametrize("kind", [torch.int64, torch.int32, torch.int8, torch.uint8], ids=str)
def test_quotients_of_integers(kind):
    low = 0 if kind is torch.uint8 else -120
    a, b = torch.randint(low, 120, (5, 37)).to(kind), torch.randint(1, 9, (5, 37)).to(kind)
    if low:
        b = torch.where(torch.arange(37) % 2 == 0, b, -b)

    def function(a, b):
        return (
            a // b, a % b, torch.fmod(a, b), torch.div(a, b, rounding_mode="trunc"), (a + 1) // b[:, :1] * 2, 100 // b, b.sum(1),
        )  # fmt: skip

    check(function, a, b)


def test_a_quotient_by_zero_is_an_error():
    a = torch.arange(100)
    for function in (lambda a: a // a, lambda a: (a % (a - 50)).sum(), lambda a: torch.fmod(a, a).float()):
        for run in (function, torch.compile(function, fullgraph=True)):
            with pytest.raises(RuntimeError, match="ZeroDivisionError"):
                run(a)


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.bfloat16, torch.bool, torch.uint8, torch.int64], ids=str)
def test_reads_in_reverse(kind):
    x = (torch.randn(3, 4, 45) * 3).abs().to(kind)
    check(lambda x: (x.flip(2), x.flip(0, 2), x.flip(0, 1, 2), x[:, 1:, 3:].flip(2)), x)


def test_quotients_of_large_integers():
    edges = torch.tensor([2**63 - 1, -(2**63), 2**53 + 1, -(2**53) - 1, 2**52, 2**52 - 1, 1 - 2**52, 7, -7, 1, -1, 3])
    a, b = edges.repeat(12), edges.repeat_interleave(12)

    def function(a, b):
        return a // b, torch.div(a, b, rounding_mode="trunc"), a // 7, a // -1, a % 1000, torch.div(a, -3, rounding_mode="trunc")

    check(function, a, b)
    small = edges[5:]
    check(function, small.repeat(7), small.repeat_interleave(7))
    check(function, *(torch.tensor([2**31 - 1, -(2**31), 5, -1, 1, -7, 3, 2**30], dtype=torch.int32).repeat(n) for n in (4, 4)))


def test_what_is_no_whole_number_and_back():
    """NaN and infinities become integers as in eager, also where the integers become numbers again at once."""
    given = torch.tensor([float("nan"), float("inf"), -float("inf"), 3e9, -2.7] * 7)
    kinds = (torch.int64, torch.int32, torch.int16, torch.uint8)

    def function(x):
        return [x.to(kind).to(back) for kind in kinds for back in (torch.float32, torch.float64)]

    with torch.no_grad():
        for tensor in (given, given.double()):
            for got, wanted in zip(torch.compile(function)(tensor), function(tensor), strict=True):
                assert torch.equal(got, wanted)


def test_what_is_no_whole_number_for_constants():
    """Compilers fold such conversions to other numbers than the processor gives."""
    whole = torch.tensor([0, 1, -1, 3] * 9)
    kinds = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)

    def function(x):
        floats = [torch.log2(x), torch.sqrt(x), torch.where(x > 0, x, float("nan")), torch.full((36,), float("inf")) * x.sign()]
        return [y.to(kind) for y in floats for kind in kinds]

    with torch.no_grad():
        for tensor in (whole, whole.double()):
            for got, wanted in zip(torch.compile(function)(tensor), function(tensor), strict=True):
                assert torch.equal(got, wanted)
