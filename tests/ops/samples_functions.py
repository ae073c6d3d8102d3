"""Sample calls of trigonometry, arithmetic on parts of numbers, special functions, complex numbers and Fourier transforms."""

from __future__ import annotations

import rushlight as rl
from rushlight.core.tensor import Tensor
from rushlight.ops.primitives.special import POLYNOMIALS, names_of
from tests.ops.samples import group, integers, mask, positive, real


def complex_numbers(*shape: int) -> Tensor:
    """complex128 values, none near 0."""
    return rl.complex(real(*shape), real(*shape))


def fractions(*shape: int) -> Tensor:
    """Values between -1 and 1."""
    return real(*shape) / 3.5


@group
def _trigonometry():
    for value in (real(3, 4), real(4, 3).permute(1, 0), real(), real(0, 2)):
        for name in ("tan", "atan", "sinh", "cosh", "asinh"):
            yield name, value
        for name in ("asin", "acos", "atanh"):
            yield name, value / 3.5
        yield "acosh", value.abs() + 1.2
    yield "tan", integers(9, 3)
    for first, second in ((real(3, 4), real(4)), (real(), real(2)), (real(2, 3).permute(1, 0), real(3, 2))):
        for name in ("atan2", "hypot", "copysign.Tensor", "fmax", "fmin"):
            yield name, first, second
        yield "nextafter", first, second


@group
def _parts_of_numbers():
    for value in (real(3, 4), real(4, 3).permute(1, 0), real()):
        yield "frexp.Tensor", value
        yield "signbit", value
    yield "signbit", integers(9, 3, low=-9)
    for name in ("gcd", "lcm"):
        yield name, integers(40, 3, 4, low=-40), integers(40, 4, low=-40)
    for name in ("bitwise_left_shift.Tensor", "bitwise_right_shift.Tensor"):
        yield name, integers(40, 3, low=-40), integers(9, 2, 3)
    yield "copysign.Tensor", integers(9, 3), real(3)
    yield "fmax", integers(9, 3), integers(9, 3)
    yield "fmin", mask(3), mask(3)


OF_REALS = """erfc i0 special_i0e special_i1 special_i1e special_log_ndtr special_erfcx special_bessel_j0 special_bessel_j1
special_modified_bessel_i0 special_modified_bessel_i1 special_spherical_bessel_j0""".split()
OF_POSITIVES = """lgamma digamma special_entr special_bessel_y0 special_bessel_y1 special_modified_bessel_k0
special_modified_bessel_k1 special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1
special_airy_ai""".split()


@group
def _special_functions():
    for name in OF_REALS:
        yield name, real(3, 4)
        yield name, real(4, 3).permute(1, 0)
    for name in OF_POSITIVES:
        yield name, positive(3, 4)
    yield "erfinv", fractions(3, 4)
    yield "special_ndtri", fractions(3, 4) / 2 + 0.5
    for order in (0, 1, 3):
        yield "polygamma", order, positive(3, 4)
    for first, second in ((positive(3, 4), positive(4)), (positive(), positive(2))):
        for name in ("igamma", "igammac", "xlogy.Tensor", "special_xlog1py"):
            yield name, first, second
        yield "special_zeta", first + 1, second
    for name in names_of(POLYNOMIALS):
        yield name, real(3, 1), integers(9, 4)
    yield "lgamma", integers(9, 3, low=1)


@group
def _complex_numbers():
    for value in (complex_numbers(3, 4), complex_numbers(4, 3).permute(1, 0), complex_numbers(), real(3)):
        yield "conj_physical", value
        yield "_neg_view", value
        yield "sgn", value
    for value in (complex_numbers(3, 4), complex_numbers(), real(4, 3).permute(1, 0)):
        yield "angle", value
    yield "_conj", complex_numbers(4, 3)[1:].permute(1, 0)
    yield "angle", integers(9, 3, low=-9)
    yield "view_as_real", complex_numbers(4, 3)[1:].permute(1, 0)
    yield "view_as_complex", real(3, 4, 2)
    yield "view_as_complex", real(4, 6).unflatten(1, (3, 2))[1:].permute(1, 0, 2)


@group
def _transforms():
    for scale in (0, 1, 2):
        for forward in (True, False):
            yield "_fft_c2c", complex_numbers(3, 4), [0, 1], scale, forward
        for onesided in (True, False):
            yield "_fft_r2c", real(3, 5), [1], scale, onesided
        for size in (4, 5):
            yield "_fft_c2r", complex_numbers(4, 3), [1], scale, size
    yield "_fft_r2c", real(4, 6), [0, 1], 0, True
    yield "_fft_c2r", complex_numbers(4, 3), [0, 1], 2, 4
