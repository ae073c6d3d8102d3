"""CPU kernels of special functions and orthogonal polynomials, on SciPy's ufuncs. Float32 is computed by their own loops."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rushlight.core.dtype import float64
from rushlight.core.lazy_module import LazyModule
from rushlight.ops.cpu.common import apply
from rushlight.ops.meta.special import special_type
from rushlight.ops.registry import cpu, elementwise

special = LazyModule("scipy.special")


def _scipy(name: str) -> Callable:
    def function(*arrays):
        return getattr(special, name)(*arrays)

    return function


def _writing(function: Callable) -> Callable:
    """A function of one array as one that takes where to write its result too."""

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


def _lgamma(x: np.ndarray) -> np.ndarray:
    # SciPy's has no limit for -infinity.
    return np.where(np.isinf(x), np.inf, special.gammaln(x))


def _digamma(x: np.ndarray) -> np.ndarray:
    # At 0 the pole's side follows the sign of zero.
    return np.where(x == 0, -np.copysign(np.inf, x), special.psi(x))


def _xlog1py(x: np.ndarray, y: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    return special.xlog1py(x, y, out=out)


IN_PLACE = {
    "erfc": _scipy("erfc"), "erfinv": _scipy("erfinv"), "lgamma": _writing(_lgamma), "digamma": _writing(_digamma),
    "i0": _scipy("i0"), "igamma": _scipy("gammainc"), "igammac": _scipy("gammaincc"), "xlogy.Tensor": _scipy("xlogy"),
}  # fmt: skip
FUNCTIONS = {
    "special_i0e": _scipy("i0e"), "special_i1": _scipy("i1"), "special_i1e": _scipy("i1e"), "special_ndtri": _scipy("ndtri"),
    "special_log_ndtr": _scipy("log_ndtr"), "special_erfcx": _scipy("erfcx"), "special_entr": _scipy("entr"),
    "special_bessel_j0": _scipy("j0"), "special_bessel_j1": _scipy("j1"), "special_bessel_y0": _scipy("y0"),
    "special_bessel_y1": _scipy("y1"), "special_modified_bessel_i0": _scipy("i0"),
    "special_modified_bessel_i1": _scipy("i1"), "special_modified_bessel_k0": _scipy("k0"),
    "special_modified_bessel_k1": _scipy("k1"), "special_scaled_modified_bessel_k0": _scipy("k0e"),
    "special_scaled_modified_bessel_k1": _scipy("k1e"), "special_spherical_bessel_j0": _writing(_spherical_j0),
    "special_airy_ai": _writing(_airy_ai), "special_xlog1py": _xlog1py, "special_zeta": _scipy("zeta"),
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
        return apply(_writing(_digamma), kind, kind, self)
    if n == 1:
        return apply(_writing(lambda x: special.zeta(2.0, x)), float64, kind, self)
    sign, factorial = (-1.0) ** (n + 1), special.gamma(n + 1.0)
    return apply(_writing(lambda x: sign * factorial * special.zeta(n + 1.0, x)), float64, kind, self)


def _third_kind(n: np.ndarray, x: np.ndarray) -> np.ndarray:
    return special.eval_chebyu(n, x) - np.where(n > 0, special.eval_chebyu(np.maximum(n - 1, 0), x), 0)


def _fourth_kind(n: np.ndarray, x: np.ndarray) -> np.ndarray:
    return special.eval_chebyu(n, x) + np.where(n > 0, special.eval_chebyu(np.maximum(n - 1, 0), x), 0)


def _shifted(polynomial: Callable) -> Callable:
    return lambda n, x: polynomial(n, 2 * x - 1)


_CHEBYSHEV = {"t": _scipy("eval_chebyt"), "u": _scipy("eval_chebyu"), "v": _third_kind, "w": _fourth_kind}
POLYNOMIALS = {
    **{f"special_chebyshev_polynomial_{name}": function for name, function in _CHEBYSHEV.items()},
    **{f"special_shifted_chebyshev_polynomial_{name}": _shifted(function) for name, function in _CHEBYSHEV.items()},
    "special_hermite_polynomial_h": _scipy("eval_hermite"),
    "special_hermite_polynomial_he": _scipy("eval_hermitenorm"),
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
