"""Special functions that NumPy lacks.

`erf` uses W. J. Cody's rational Chebyshev approximations (Mathematics of Computation 23, 1969), good to double precision.
"""

from __future__ import annotations

import numpy as np

_SMALL_P = (3.20937758913846947e03, 3.77485237685302021e02, 1.13864154151050156e02, 3.16112374387056560e00,
            1.85777706184603153e-1)  # fmt: skip
_SMALL_Q = (2.84423683343917062e03, 1.28261652607737228e03, 2.44024637934444173e02, 2.36012909523441209e01, 1.0)
_MIDDLE_P = (1.23033935479799725e03, 2.05107837782607147e03, 1.71204761263407058e03, 8.81952221241769090e02,
             2.98635138197400131e02, 6.61191906371416295e01, 8.88314979438837594e00, 5.64188496988670089e-1,
             2.15311535474403846e-8)  # fmt: skip
_MIDDLE_Q = (1.23033935480374942e03, 3.43936767414372164e03, 4.36261909014324716e03, 3.29079923573345963e03,
             1.62138957456669019e03, 5.37181101862009858e02, 1.17693950891312499e02, 1.57449261107098347e01, 1.0)  # fmt: skip


def _polynomial(x: np.ndarray, coefficients: tuple[float, ...]) -> np.ndarray:
    result = np.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result *= x
        result += x.dtype.type(coefficient)
    return result


def erf(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Return the error function, elementwise, in the dtype of `x` (float32 or float64)."""
    magnitude = np.abs(x)
    square = magnitude * magnitude
    small = magnitude * _polynomial(np.minimum(square, 0.25), _SMALL_P) / _polynomial(np.minimum(square, 0.25), _SMALL_Q)
    middle = np.clip(magnitude, 0.46875, 6.0)
    tail = np.exp(-middle * middle) * _polynomial(middle, _MIDDLE_P) / _polynomial(middle, _MIDDLE_Q)
    result = np.where(magnitude <= 0.46875, small, 1 - tail)
    return np.copysign(np.where(np.isnan(x), x, result), x, out=out)
