"""CPU kernels of special functions and orthogonal polynomials: native in float64, or SciPy's ufuncs for the rare ones."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rushlight.core.dtype import float64
from rushlight.core.lazy_module import LazyModule
from rushlight.ops.cpu.common import apply
from rushlight.ops.cpu.native import kernels
from rushlight.ops.meta.special import special_type
from rushlight.ops.registry import cpu, elementwise

special = LazyModule("scipy.special", "this function")


def _native(name: str, arity: int = 1, in_scipy: str | None = None) -> Callable:
    """Return the native function `name`, or SciPy's where the kernels were not built."""
    if kernels is None:
        return _scipy(in_scipy or name)

    def function(*arrays: np.ndarray) -> np.ndarray:
        given = np.broadcast_arrays(*[np.asarray(each, np.float64) for each in arrays[:arity]])
        target = arrays[arity] if len(arrays) > arity else None
        direct = target is not None and target.dtype == np.float64 and target.flags.c_contiguous
        result = target if direct else np.empty(given[0].shape)
        kernels.special(name, result, *map(np.ascontiguousarray, given))
        if target is not None and not direct:
            target[...] = result
        return result

    return function


def _scipy(name: str) -> Callable:
    def function(*arrays):
        return getattr(special, name)(*arrays)

    return function


def _with_out(function: Callable) -> Callable:
    """Give a function of one array an `out` parameter."""

    def ufunc(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        result = function(x)
        if out is None:
            return result
        out[...] = result
        return out

    return ufunc


def _spherical_j0(x: np.ndarray) -> np.ndarray:
    infinite = np.isinf(x)
    return np.where(infinite, 0, np.sinc(np.where(infinite, 0, x) / np.pi))


def _airy_ai(x: np.ndarray) -> np.ndarray:
    return special.airy(x)[0]


digamma, _zeta = _native("digamma", in_scipy="psi"), _native("zeta", 2)
IN_PLACE = {
    "erfc": _native("erfc"), "erfinv": _native("erfinv"), "lgamma": _native("lgamma", in_scipy="gammaln"), "digamma": digamma,
    "i0": _native("i0"), "igamma": _native("igamma", 2, "gammainc"), "igammac": _native("igammac", 2, "gammaincc"),
    "xlogy.Tensor": _native("xlogy", 2),
}  # fmt: skip
FUNCTIONS = {
    "special_i0e": _native("i0e"), "special_i1": _native("i1"), "special_i1e": _native("i1e"),
    "special_ndtri": _native("ndtri"), "special_log_ndtr": _native("log_ndtr"), "special_erfcx": _native("erfcx"),
    "special_entr": _native("entr"),
    "special_bessel_j0": _scipy("j0"), "special_bessel_j1": _scipy("j1"), "special_bessel_y0": _scipy("y0"),
    "special_bessel_y1": _scipy("y1"), "special_modified_bessel_i0": _native("i0"),
    "special_modified_bessel_i1": _native("i1"), "special_modified_bessel_k0": _scipy("k0"),
    "special_modified_bessel_k1": _scipy("k1"), "special_scaled_modified_bessel_k0": _scipy("k0e"),
    "special_scaled_modified_bessel_k1": _scipy("k1e"), "special_spherical_bessel_j0": _with_out(_spherical_j0),
    "special_airy_ai": _with_out(_airy_ai), "special_xlog1py": _native("xlog1py", 2), "special_zeta": _zeta,
}  # fmt: skip


def _register(table: dict[str, Callable], decorator: Callable) -> None:
    for name, ufunc in table.items():
        decorator(name)(_kernel(name, ufunc))


def _kernel(name: str, ufunc: Callable) -> Callable:
    def kernel(*operands, out=None):
        kind = special_type(name, *operands)
        return apply(ufunc, kind, kind, *operands, out=out)

    return kernel


_register(IN_PLACE, elementwise)
_register(FUNCTIONS, cpu)


@cpu("polygamma")
def polygamma(n, self):
    kind = special_type("polygamma", self)
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    if n == 0:
        return apply(digamma, kind, kind, self)
    sign = (-1.0) ** (n + 1)
    factorial = float(math.factorial(n)) if n < 171 else math.inf
    return apply(_with_out(lambda x: sign * factorial * _zeta(n + 1.0, x)), float64, kind, self)


_CLOSED = 1000  # above this degree Chebyshev polynomials are computed by angles: a recurrence takes a step for each degree
_OVERFLOWED = 5000  # from this degree on the recurrences of Hermite polynomials meet inf - inf


def _by_angle(recurrence: str, closed: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Callable:
    """Evaluate by SciPy's recurrence, and from degree 1000 by `closed(n, x)`, in float64."""

    def evaluate(n: np.ndarray, x: np.ndarray) -> np.ndarray:
        near = getattr(special, recurrence)(np.minimum(n, _CLOSED), x)
        if (n <= _CLOSED).all():
            return near
        with np.errstate(all="ignore"):
            return np.where(n <= _CLOSED, near, closed(n.astype(np.float64), x))

    return evaluate


def _sign_of_power(n: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the sign of x to the power of n."""
    return np.where((x < 0) & (n % 2 == 1), -1.0, 1.0)


def _first_closed(n: np.ndarray, x: np.ndarray) -> np.ndarray:
    """cos(n arccos x), continued by cosh: Abramowitz and Stegun, Handbook of Mathematical Functions, 22.3.15."""
    inside = np.cos(n * np.arccos(x))
    return np.where(np.abs(x) < 1, inside, _sign_of_power(n, x) * np.cosh(n * np.arccosh(np.abs(x))))


def _second_closed(n: np.ndarray, x: np.ndarray) -> np.ndarray:
    """sin((n + 1) arccos x) / sin(arccos x), continued by sinh: Abramowitz and Stegun, 22.3.16."""
    angle, growth = np.arccos(x), np.arccosh(np.abs(x))
    outside = np.where(growth == 0, n + 1, np.sinh((n + 1) * growth) / np.sinh(growth))
    return np.where(np.abs(x) < 1, np.sin((n + 1) * angle) / np.sin(angle), _sign_of_power(n, x) * outside)


_first_kind = _by_angle("eval_chebyt", _first_closed)
_second_kind = _by_angle("eval_chebyu", _second_closed)


def _third_kind(n: np.ndarray, x: np.ndarray) -> np.ndarray:
    return _second_kind(n, x) - np.where(n > 0, _second_kind(np.maximum(n - 1, 0), x), 0)


def _fourth_kind(n: np.ndarray, x: np.ndarray) -> np.ndarray:
    return _second_kind(n, x) + np.where(n > 0, _second_kind(np.maximum(n - 1, 0), x), 0)


def _hermite(name: str) -> Callable:
    return lambda n, x: np.where(n < _OVERFLOWED, getattr(special, name)(np.minimum(n, _OVERFLOWED), x), np.nan)


def _shift_polynomial(polynomial: Callable) -> Callable:
    return lambda n, x: polynomial(n, 2 * x - 1)


_CHEBYSHEV = {"t": _first_kind, "u": _second_kind, "v": _third_kind, "w": _fourth_kind}
POLYNOMIALS = {
    **{f"special_chebyshev_polynomial_{name}": function for name, function in _CHEBYSHEV.items()},
    **{f"special_shifted_chebyshev_polynomial_{name}": _shift_polynomial(function) for name, function in _CHEBYSHEV.items()},
    "special_hermite_polynomial_h": _hermite("eval_hermite"),
    "special_hermite_polynomial_he": _hermite("eval_hermitenorm"),
    "special_laguerre_polynomial_l": _scipy("eval_laguerre"),
    "special_legendre_polynomial_p": _scipy("eval_legendre"),
}


def _register_polynomial(name: str, evaluate: Callable) -> None:
    def polynomial(x: np.ndarray, n: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        degree = np.trunc(np.nan_to_num(n)).astype(np.int64)
        result = np.where(degree < 0, 0, evaluate(np.maximum(degree, 0), np.asarray(x)))
        if out is None:
            return result
        out[...] = result
        return out

    @cpu(name)
    def kernel(x, n):
        return apply(polynomial, float64, special_type(name, x, n), x, n)


for _name, _function in POLYNOMIALS.items():
    _register_polynomial(_name, _function)
