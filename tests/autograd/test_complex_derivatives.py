"""Gradients through complex numbers: conjugate formulas against differences, real inputs, views that are written to."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import rushlight as rl
from rushlight.autograd.gradcheck import gradcheck, gradgradcheck
from rushlight.core.tensor import Tensor

_random = np.random.default_rng(0)


def parts(*shape: int) -> Tensor:
    """The real and imaginary parts of numbers in the first quadrant, as a float64 leaf with a last dimension of 2."""
    return rl.from_numpy(_random.uniform(0.4, 1.3, (*shape, 2))).requires_grad_()


def on_parts(function: Callable) -> Callable:
    """A function of complex tensors as one of their parts, so that real differences check it."""

    def call(*values: Tensor) -> Tensor:
        result = function(*[rl.view_as_complex(value) if value.size(-1) == 2 else value for value in values])
        return rl.view_as_real(result.resolve_conj()) if result.is_complex() else result

    return call


UNARY = """exp expm1 log log1p log2 log10 sqrt rsqrt reciprocal sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh
sigmoid neg square abs sgn angle conj_physical real imag sum mean prod var std exp2 sinc""".split()


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_number(name: str):
    function = on_parts(getattr(rl, name))
    assert gradcheck(function, (parts(3),))
    assert gradgradcheck(function, (parts(2),))


BINARY = {
    "add": lambda a, b: rl.add(a, b, alpha=1 + 2j),
    "sub": lambda a, b: rl.sub(a, b, alpha=2j),
    "mul": rl.mul,
    "div": rl.div,
    "pow": rl.pow,
    "power of a number": lambda a, b: (1 + 2j) ** a + b ** (2 - 1j),
    "vdot": rl.vdot,
    "dot": rl.dot,
    "logaddexp": rl.logaddexp,
    "cumsum": lambda a, b: (a * b).cumsum(0),
    "where": lambda a, b: rl.where(a.abs() > b.abs(), a * b, b),
    "clamped length": lambda a, b: rl.linalg.norm(a - 2 * b) * a,
}


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_numbers(name: str):
    function = on_parts(BINARY[name])
    assert gradcheck(function, (parts(3), parts(3)))
    assert gradgradcheck(function, (parts(2), parts(2)))


def test_a_real_operand_gets_a_real_gradient():
    real = rl.from_numpy(_random.uniform(0.4, 1.3, (3,))).requires_grad_()
    for function in (rl.mul, rl.div, rl.add, rl.pow):
        assert gradcheck(on_parts(function), (real, parts(3)))
        assert gradcheck(on_parts(lambda a, b, function=function: function(b, a)), (real, parts(3)))
    x = rl.tensor([1.0, 2.0], requires_grad=True)
    (x * (3 + 4j)).abs().sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]


@pytest.mark.parametrize("function", [rl.mm, lambda a, b: rl.addmm(a, a, b, beta=2j, alpha=1j), rl.matmul])
def test_products_of_matrices(function: Callable):
    assert gradcheck(on_parts(function), (parts(3, 3), parts(3, 3)))
    assert gradgradcheck(on_parts(function), (parts(2, 2), parts(2, 2)))


def test_products_of_batches_and_convolution():
    assert gradcheck(on_parts(rl.bmm), (parts(2, 3, 3), parts(2, 3, 2)))
    convolve = on_parts(rl.conv1d)
    assert gradcheck(convolve, (parts(1, 2, 4), parts(2, 2, 2)))
    assert gradgradcheck(convolve, (parts(1, 1, 3), parts(1, 1, 2)))


def test_numbers_from_parts():
    first, second = (rl.from_numpy(_random.uniform(0.4, 1.3, (3,))).requires_grad_() for _ in range(2))
    for make in (rl.complex, rl.polar):
        assert gradcheck(lambda a, b, make=make: rl.view_as_real(make(a, b)), (first, second))


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_transforms(name: str, norm: str):
    function = getattr(rl.fft, name)
    takes_real = name in ("rfft", "ihfft")
    value = rl.from_numpy(_random.uniform(-1, 1, (2, 5))).requires_grad_() if takes_real else parts(2, 5)
    for n in (None, 4, 7):
        call = on_parts(lambda z, n=n: function(z, n=n, norm=norm))
        assert gradcheck(call, (value,))
        assert gradgradcheck(call, (value,))


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn"])
def test_transforms_of_several_dimensions(name: str):
    takes_real = name in ("rfftn", "ihfftn")
    value = rl.from_numpy(_random.uniform(-1, 1, (3, 4))).requires_grad_() if takes_real else parts(3, 4)
    assert gradcheck(on_parts(getattr(rl.fft, name)), (value,))


def test_frames_and_back():
    signal = rl.from_numpy(_random.uniform(-1, 1, (12,))).requires_grad_()
    window = rl.hann_window(4, dtype=rl.float64)
    assert gradcheck(lambda x: rl.view_as_real(rl.stft(x, 4, window=window, return_complex=True)), (signal,))
    spectrum = parts(3, 6)
    assert gradcheck(lambda z: rl.istft(rl.view_as_complex(z), 4, 2, window=window), (spectrum,))


def test_writing_to_the_real_part_reaches_the_whole():
    z = rl.tensor([1 + 2j, 3 - 4j], requires_grad=True)
    w = z * 2
    w.real.mul_(3)
    (w.real.sum() + 5 * w.imag.sum()).backward()
    assert z.grad.tolist() == [6 + 10j, 6 + 10j]


def test_writing_to_the_whole_reaches_the_parts():
    x = rl.ones(3, 2, requires_grad=True)
    pairs = x * 1
    first = pairs[:, 0]
    rl.view_as_complex(pairs).mul_(1j)
    first.sum().backward()
    assert x.grad.tolist() == [[0.0, -1.0]] * 3


def test_magnitude_and_direction_at_zero():
    z = rl.tensor([0j, 3 + 4j], requires_grad=True)
    (z.abs().sum() + z.angle().sum() + z.sgn().real.sum()).backward()
    assert z.grad[0].item() == 0
    assert np.isfinite(z.grad.numpy()).all()


def test_backward_wants_a_gradient_for_complex_results():
    z = rl.tensor(1 + 2j, requires_grad=True)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for real scalar outputs but got"):
        (z * 2).backward()


def test_quotients_with_a_rounding_mode_of_none():
    assert gradcheck(on_parts(lambda a, b: rl.div(a, b, rounding_mode=None)), (parts(3), parts(3)))


@pytest.mark.parametrize("base", [-1, -2.5, 0.5])
def test_complex_powers_of_real_numbers(base):
    assert gradcheck(on_parts(lambda exponent: rl.pow(base, exponent)), (parts(3),))
    assert gradcheck(on_parts(lambda exponent: rl.pow(rl.full((3,), base, dtype=rl.float64), exponent)), (parts(3),))
