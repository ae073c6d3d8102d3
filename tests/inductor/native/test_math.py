"""rushlight/math.h against float64, in units in the last place, over all exponents, with the special values."""

from __future__ import annotations

import math

import numpy as np
import pytest

SPECIALS = np.array(
    [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        1,
        -1,
        1e-45,
        -1e-45,
        1.1754944e-38,
        3.4028235e38,
        -3.4028235e38,
        88.72284,
        -87.33655,
        -103.9721,
        -104.0,
        0.5,
        -0.5,
        2.0,
        10.0,
    ],
    np.float32,
)
erf = np.vectorize(math.erf, otypes=[np.float64])
erfc = np.vectorize(math.erfc, otypes=[np.float64])


def every_exponent(count: int = 200_003) -> np.ndarray:
    """Floats of uniformly random bits, an odd number of them, and the special values."""
    bits = np.random.default_rng(0).integers(0, 2**32, count, dtype=np.uint32)
    return np.concatenate([bits.view(np.float32), SPECIALS])


def between(low: float, high: float, count: int = 200_003) -> np.ndarray:
    return np.random.default_rng(1).uniform(low, high, count).astype(np.float32)


def largest_error(got: np.ndarray, exact: np.ndarray) -> float:
    """The largest distance in float32 units in the last place; NaN, infinity and signs of zero must agree outright."""
    with np.errstate(over="ignore", under="ignore"):
        rounded = exact.astype(np.float32)
    special = ~np.isfinite(rounded) | ~np.isfinite(got)
    near_overflow = special & np.isfinite(got) & (np.abs(exact) < 3.402824e38)
    np.testing.assert_array_equal(got[special & ~near_overflow], rounded[special & ~near_overflow])
    zero = exact == 0
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(exact[zero]))
    finite = ~special
    with np.errstate(over="ignore"):
        unit = np.spacing(np.abs(rounded[finite])).astype(np.float64)
    return float(np.max(np.abs(got[finite].astype(np.float64) - exact[finite]) / unit, initial=0.0))


def log_range() -> np.ndarray:
    return np.concatenate([between(0.5, 2.0), between(0, 100)])


# name: definition in float64, inputs where it matters most, permitted error. 2 where promised; a little more elsewhere.
FUNCTIONS = {
    "exp": (np.exp, lambda: between(-105, 90), 2),
    "exp2": (np.exp2, lambda: between(-150, 129), 2),
    "expm1": (np.expm1, lambda: between(-20, 90), 2),
    "log": (np.log, log_range, 2),
    "log2": (np.log2, log_range, 2.5),
    "log10": (np.log10, log_range, 2.5),
    "log1p": (np.log1p, lambda: np.concatenate([between(-1, 1), between(-0.01, 0.01)]), 2.5),
    "sin": (np.sin, lambda: np.concatenate([between(-10, 10), between(-3e5, 3e5)]), 2),
    "cos": (np.cos, lambda: np.concatenate([between(-10, 10), between(-3e5, 3e5)]), 2),
    "tan": (np.tan, lambda: between(-10, 10), 4),
    "tanh": (np.tanh, lambda: between(-10, 10), 2),
    "erf": (erf, lambda: between(-5, 5), 2),
    "erfc": (erfc, lambda: between(-5, 10), 6),
    "asin": (np.arcsin, lambda: between(-1, 1), 2.5),
    "acos": (np.arccos, lambda: between(-1, 1), 2),
    "atan": (np.arctan, lambda: between(-5, 5), 2),
    "sinh": (np.sinh, lambda: np.concatenate([between(-5, 5), between(-90, 90)]), 2.5),
    "cosh": (np.cosh, lambda: between(-90, 90), 2),
    "asinh": (np.arcsinh, lambda: np.concatenate([between(-5, 5), between(-1e5, 1e5)]), 2.5),
    "acosh": (np.arccosh, lambda: np.concatenate([between(1, 3), between(1, 1e5)]), 2.5),
    "atanh": (np.arctanh, lambda: np.concatenate([between(-1, 1), between(-0.01, 0.01)]), 2.5),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), lambda: between(-80, 80), 4),
    "sqrt": (np.sqrt, lambda: between(0, 5), 0.5000001),
    "rsqrt": (lambda x: 1 / np.sqrt(x), lambda: between(0, 5), 2),
    "reciprocal": (lambda x: 1 / x, lambda: between(-5, 5), 0.5000001),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_float_functions(kernels, name):
    definition, dense, permitted = FUNCTIONS[name]
    x = np.concatenate([every_exponent(), dense()])
    if name == "sigmoid":
        x = x[~(x < -80)]  # 1 / (1 + inf) flushes what would be subnormal, as torch does
    with np.errstate(all="ignore"):
        exact = definition(x.astype(np.float64))
    got = kernels.map(f"{name}_float", x)
    assert largest_error(got, exact) <= permitted
    # The compiler may fuse other products in the scalar copy of the same code, so not bit for bit.
    assert largest_error(kernels.map(f"{name}_float_scalar", x), exact) <= permitted


DOUBLES = {
    "exp": lambda: wide_between(-746, 710),
    "expm1": lambda: np.concatenate([wide_between(-40, 710), wide_between(-1, 1)]),
    "log": lambda: np.concatenate([wide_between(0, 4), wide_between(0.99, 1.01)]),
    "log1p": lambda: np.concatenate([wide_between(-1, 4), wide_between(-0.01, 0.01)]),
    "sin": lambda: np.concatenate([wide_between(-10, 10), wide_between(-1e6, 1e6), near_half_pis()]),
    "cos": lambda: np.concatenate([wide_between(-10, 10), wide_between(-1e6, 1e6), near_half_pis()]),
    "tanh": lambda: wide_between(-23, 23),
    "sinh": lambda: np.concatenate([wide_between(-711, 711), wide_between(-2, 2)]),
    "cosh": lambda: wide_between(-711, 711),
}


def wide_between(low: float, high: float) -> np.ndarray:
    return np.random.default_rng(2).uniform(low, high, 100_003)


def near_half_pis() -> np.ndarray:
    """Doubles beside multiples of pi/2, of whose sines or cosines little is left."""
    middle = np.arange(1, 20_000) * (np.pi / 2)
    return np.concatenate([middle, np.nextafter(middle, 0), np.nextafter(middle, np.inf), -middle])


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="NumPy's longest floats are doubles here")
@pytest.mark.parametrize("name", DOUBLES)
def test_double_functions(kernels, name):
    bits = np.random.default_rng(3).integers(0, 2**64, 100_003, dtype=np.uint64)
    specials = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 2.3e-308, 1, -1, 709.79, -745.2, 710.5])
    x = np.concatenate([bits.view(np.float64), specials, DOUBLES[name]()])
    with np.errstate(all="ignore"):
        exact = FUNCTIONS[name][0](x.astype(np.longdouble))
        rounded = exact.astype(np.float64)
    for got in (kernels.map(f"{name}_double", x), kernels.map(f"{name}_double_scalar", x)):
        special = ~np.isfinite(rounded) | (rounded == 0)
        beside = special & np.isfinite(got) & (np.abs(got) > 1.79769e308)  # what just does not overflow
        np.testing.assert_array_equal(got[special & ~beside], rounded[special & ~beside])
        np.testing.assert_array_equal(np.signbit(got[rounded == 0]), np.signbit(rounded[rounded == 0]))
        error = np.abs(got[~special] - exact[~special]) / np.spacing(np.abs(rounded[~special]))
        assert error.max() <= (2.5 if name == "expm1" else 2)


@pytest.mark.parametrize("name, definition", [("atan2", np.arctan2), ("hypot", np.hypot)])
def test_functions_of_points(kernels, name, definition):
    rows, columns = (between(-5, 5), between(-5, 5)), (every_exponent(), every_exponent()[::-1])
    pairs = np.stack(np.meshgrid(SPECIALS, SPECIALS)).reshape(2, -1)
    y, x = (np.concatenate(parts) for parts in zip(rows, columns, pairs, strict=True))
    with np.errstate(all="ignore"):
        exact = definition(y.astype(np.float64), x.astype(np.float64))
    assert largest_error(kernels.map(f"{name}_float", y, x), exact) <= 2


def test_remainders(kernels):
    """Exact, with the sign of the first, through all sizes of quotients."""
    a = np.concatenate([between(-100, 100), every_exponent(), np.array([5.5, -4.0, 4.0, -0.0, 1e30, -7.0], np.float32)])
    b = np.concatenate([between(-3, 3), every_exponent()[::-1], np.array([np.inf, 2.0, -2.0, 3.0, 1e-3, 7.0], np.float32)])
    with np.errstate(all="ignore"):
        exact = np.fmod(a, b)
    got = kernels.map("fmod_float", a, b)
    np.testing.assert_array_equal(got, exact)
    np.testing.assert_array_equal(np.signbit(got[exact == 0]), np.signbit(exact[exact == 0]))


def test_exp_nonpositive(kernels):
    x = np.concatenate([between(-110, 0), np.array([-np.inf, np.nan, 0.0, -0.0, -87, -88], np.float32)])
    exact = np.where(x < -87, 0, np.exp(x.astype(np.float64)))
    assert largest_error(kernels.map("exp_nonpositive_float", x), exact) <= 2


def normal_cdf(x):
    return 0.5 * erfc(-x / math.sqrt(2))


def normal_density(x):
    return np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


def gelu_tanh_slope(x):
    u = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    power = np.exp(-2 * np.abs(u))
    rising = 2 * math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x * x) * power / (1 + power) ** 2
    return np.where(u < 0, power, 1) / (1 + power) + x * rising


SLOPES = {"gelu_erf_slope": lambda x: normal_cdf(x) + x * normal_density(x), "gelu_tanh_slope": gelu_tanh_slope}


@pytest.mark.parametrize("name", SLOPES)
@pytest.mark.parametrize("dtype, tolerance", [(np.float32, 3e-7), (np.float64, 1e-14)])
def test_slopes_of_activations(kernels, name, dtype, tolerance):
    x = np.concatenate([between(-20, 20), np.array([0, -0.0, 1e-40, np.nan], np.float32)]).astype(dtype)
    got = kernels.map(f"{name}_{'float' if dtype is np.float32 else 'double'}", x)
    np.testing.assert_allclose(got, SLOPES[name](x.astype(np.float64)), rtol=0, atol=tolerance)


ACTIVATIONS = {
    "gelu_erf": lambda x: x * normal_cdf(x),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x / (1 + np.exp(-x)),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("dtype, tolerance", [(np.float32, 2e-7), (np.float64, 1e-14)])
def test_activations(kernels, name, dtype, tolerance):
    x = np.concatenate([between(-12, 12), np.array([0, -0.0, 1e30, -1e30, 1e-40, np.nan, np.inf], np.float32)]).astype(
        dtype
    )
    with np.errstate(all="ignore"):
        exact = ACTIVATIONS[name](x.astype(np.float64))
    got = kernels.map(f"{name}_{'float' if dtype is np.float32 else 'double'}", x)
    np.testing.assert_allclose(got, exact, rtol=tolerance * 4, atol=tolerance)
    zero = x == 0
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(x[zero]))


def test_huge_angles_go_through_the_library(kernels):
    x = np.array([1e10, -3e38, 262144.0, 262143.98, 1e6], np.float32)
    got = kernels.map("sin_float", x)
    np.testing.assert_allclose(got, np.sin(x.astype(np.float64)), rtol=2e-7)
