"""Derivatives of special functions. Where no derivative is known, the formula raises."""

from __future__ import annotations

import math

from rushlight.autograd.derivative_table import derivative, non_differentiable
from rushlight.autograd.derivatives.refused import refuse_derivative
from rushlight.core.dtype import finfo
from rushlight.core.tensor import Tensor
from rushlight.ops.packet import namespaces
from rushlight.ops.primitives.special import POLYNOMIALS, names_of

aten = namespaces.namespace("aten")

derivative("erfc", self=lambda grad, self: grad * (-2 / math.sqrt(math.pi) * (-self * self).exp()))
derivative("erfinv", self=lambda grad, result: grad * (math.sqrt(math.pi) / 2 * (result * result).exp()))
derivative("lgamma", self=lambda grad, self: grad * aten.digamma(self))
derivative("digamma", self=lambda grad, self: grad * aten.polygamma(1, self))
derivative("polygamma", self=lambda grad, n, self: grad * aten.polygamma(n + 1, self))


def _slope_of_gamma(self, other):
    """Return the derivative of the lower regularised gamma function by its upper bound."""
    return ((self - 1) * other.log() - other - aten.lgamma(self)).exp()


derivative(
    "igamma", self=refuse_derivative("igamma", "self"),
    other=lambda grad, self, other: grad * _slope_of_gamma(self, other),
)  # fmt: skip
derivative(
    "igammac", self=refuse_derivative("igammac", "self"),
    other=lambda grad, self, other: -grad * _slope_of_gamma(self, other),
)  # fmt: skip


def _slope_of_i1(self: Tensor, value: Tensor, result: Tensor, damping: Tensor | float) -> Tensor:
    """Compute value - result * (damping + 1 / self), and its limit 1/2 where `self` is too small for the quotient."""
    small = self.abs() <= finfo(self.dtype).eps
    safe = aten.where.self(small, 1, self)
    return aten.where.self(small, 0.5, value - result * (damping + safe.reciprocal()))


derivative("i0", self=lambda grad, self: grad * aten.special_i1(self))
derivative("special_i0e", self=lambda grad, self, result: grad * (aten.special_i1e(self) - self.sign() * result))
derivative("special_i1", self=lambda grad, self, result: grad * _slope_of_i1(self, aten.i0(self), result, 0.0))
derivative(
    "special_i1e",
    self=lambda grad, self, result: grad * _slope_of_i1(self, aten.special_i0e(self), result, self.sign()),
)
derivative(
    "special_ndtri", self=lambda grad, result: grad * (math.sqrt(2 * math.pi) * (result * result / 2).exp())
)
derivative(
    "special_log_ndtr",
    self=lambda grad, self: grad / aten.special_erfcx(self * -math.sqrt(0.5)) * math.sqrt(2 / math.pi),
)
derivative(
    "special_erfcx", self=lambda grad, self, result: grad * (2 * self * result - 2 / math.sqrt(math.pi))
)
derivative("special_entr", self=lambda grad, self: grad * (-1 - self.log()))


def _logarithm_weight(grad, self, logarithm: Tensor) -> Tensor:
    """Compute grad * logarithm, and 0 where the weight of a logarithm of 0 or less is 0."""
    return aten.where.self((self == 0) & aten.isfinite(logarithm).logical_not(), 0, grad * logarithm)


derivative(
    "xlogy.Tensor",
    self=lambda grad, self, other: _logarithm_weight(grad, self, aten.log(other)),
    other=lambda grad, self, other: grad * self / other,
)
derivative(
    "special_xlog1py",
    self=lambda grad, self, other: _logarithm_weight(grad, self, aten.log1p(other)),
    other=lambda grad, self, other: grad * self / (other + 1),
)
derivative(
    "special_zeta",
    self=refuse_derivative("special_zeta", "self"),
    other=lambda grad, self, other: grad * -self * aten.special_zeta(self + 1, other),
)

non_differentiable(
    "special_bessel_j0", "special_bessel_j1", "special_bessel_y0", "special_bessel_y1", "special_modified_bessel_i0",
    "special_modified_bessel_i1", "special_modified_bessel_k0", "special_modified_bessel_k1",
    "special_scaled_modified_bessel_k0", "special_scaled_modified_bessel_k1", "special_spherical_bessel_j0", "special_airy_ai",
    *names_of(POLYNOMIALS),
)  # fmt: skip
