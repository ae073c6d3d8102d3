"""Derivatives of gamma and beta draws by their parameters: implicit differentiation of the distribution function.

A draw z with F(z; a) fixed moves by dz/da = -(dF/da) / f(z), where f is the density. dF/da is the integral of f(t) * (ln t -
mean of ln t) over the tail below z, and the negative of that over the tail above. In one of the two tails the factor (ln t -
mean of ln t) keeps its sign; using that tail avoids cancellation. The integrals run over y = ln t (or the logit of t for beta),
starting at z, where f(t)/f(z) is the exponential of a concave function. Source of the idea: M. Figurnov, S. Mohamed and A.
Mnih, "Implicit reparameterization gradients" (2018).
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from rushlight.ops.cpu.special_functions import digamma

_CHUNK = 2048
_NEGLIGIBLE = 40.0


def gamma_slope(alpha: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """Compute d(drawn)/d(alpha) of draws from Gamma(alpha, 1): float64 arrays of one shape, drawn > 0."""
    return _by_chunks(_gamma_slope, alpha, drawn)


def beta_slope(x: np.ndarray, alpha: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Compute dx/d(alpha) / (1 - x) of draws x from Beta(alpha, total - alpha): float64 arrays of one shape, 0 < x < 1."""
    return _by_chunks(_beta_slope, x, alpha, total)


def _by_chunks(function: Callable, *arrays: np.ndarray) -> np.ndarray:
    flat = [array.reshape(-1) for array in np.broadcast_arrays(*arrays)]
    result = np.empty(flat[0].size)
    with np.errstate(all="ignore"):
        for start in range(0, result.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            result[part] = function(*(array[part] for array in flat))
    return result.reshape(np.broadcast_shapes(*(array.shape for array in arrays)))


def _gamma_slope(alpha: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    excess = np.log(drawn) - digamma(alpha)
    sign = np.where(excess >= 0, 1.0, -1.0)

    def exponent(y):
        return alpha * y - drawn * np.expm1(y)

    return drawn * sign * _tail(exponent, lambda y: excess + y, sign)


def _beta_slope(x: np.ndarray, alpha: np.ndarray, total: np.ndarray) -> np.ndarray:
    # Draws rounded to an end of the interval are moved just inside it.
    x = np.clip(x, 1e-300, 1 - 1e-16)
    excess = np.log(x) - digamma(alpha) + digamma(total)
    sign = np.where(excess >= 0, 1.0, -1.0)

    def moved(y):
        """Return ln(t / x) where t has the logit of x plus y."""
        return -np.log1p((1 - x) * np.expm1(-y))

    def exponent(y):
        return alpha * moved(y) + (total - alpha) * (moved(y) - y)

    return x * sign * _tail(exponent, lambda y: excess + moved(y), sign)


@functools.cache
def _quadrature() -> np.ndarray:
    """Return the Gauss-Legendre rule on [-1, 1]: points and weights, as two columns of 32 numbers."""
    return np.array(np.polynomial.legendre.leggauss(32))[..., None]


def _tail(exponent: Callable, weight: Callable, sign: np.ndarray) -> np.ndarray:
    """Return the integral of exp(exponent) * weight from 0 in the direction of `sign`, as far as it is significant."""
    points, weights = _quadrature()
    end = _reach(exponent, sign)
    total = np.zeros_like(end)
    for low, high in ((0.0, 0.25), (0.25, 0.75), (0.75, 1.0)):
        positions = (low + (high - low) * (points + 1) / 2) * end * sign
        values = np.exp(exponent(positions)) * weight(positions)
        total += (high - low) / 2 * end * (weights * values).sum(0)
    return total


def _reach(exponent: Callable, sign: np.ndarray) -> np.ndarray:
    """Return the distance at which the exponent has dropped by 40, by bisection on a logarithmic scale."""
    low, high = np.full(sign.shape, -30.0), np.full(sign.shape, 30.0)
    for _ in range(14):
        middle = (low + high) / 2
        near = exponent(np.exp(middle) * sign) > -_NEGLIGIBLE
        low, high = np.where(near, middle, low), np.where(near, high, middle)
    return np.exp(high)
