"""Derivatives of the circular and hyperbolic functions and their inverses."""

from __future__ import annotations

from rushlight.autograd.derivative_table import derivative
from rushlight.autograd.derivatives.complex import conjugate
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")

derivative("tan", self=lambda grad, result: grad * conjugate(1 + result * result))
derivative("asin", self=lambda grad, self: grad * conjugate((1 - self * self).rsqrt()))
derivative("acos", self=lambda grad, self: -grad * conjugate((1 - self * self).rsqrt()))
derivative("atan", self=lambda grad, self: grad / conjugate(self * self + 1))
derivative("sinh", self=lambda grad, self: grad * conjugate(self.cosh()))
derivative("cosh", self=lambda grad, self: grad * conjugate(self.sinh()))
derivative("asinh", self=lambda grad, self: grad * conjugate((self * self + 1).rsqrt()))


def _acosh(grad, self):
    if self.dtype.is_complex:  # two separate roots stay on the branch of acosh
        return grad * conjugate((self - 1).rsqrt() * (self + 1).rsqrt())
    return grad * (self * self - 1).rsqrt()


derivative("acosh", self=_acosh)
derivative("atanh", self=lambda grad, self: grad / conjugate(1 - self * self))


def _per_square(self, other):
    """Compute 1 / (self^2 + other^2), and 0 where both are 0."""
    squares = self * self + other * other
    return aten.where.self(squares == 0, 0, squares.reciprocal())


derivative(
    "atan2",
    self=lambda grad, self, other: grad * other * _per_square(self, other),
    other=lambda grad, self, other: -grad * self * _per_square(self, other),
)
derivative(
    "hypot",
    self=lambda grad, self, result: grad * (self / result),
    other=lambda grad, other, result: grad * (other / result),
)
