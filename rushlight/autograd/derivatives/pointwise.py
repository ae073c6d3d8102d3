"""Derivatives of elementwise operators. The engine reduces a gradient where an input was broadcast."""

from __future__ import annotations

import cmath
import math

from rushlight.autograd.derivative_table import derivative, non_differentiable
from rushlight.autograd.derivatives.complex import conjugate, real_part
from rushlight.core.tensor import Tensor
from rushlight.ops.composite.precision import in_full_precision
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


def zeros(grad: Tensor) -> Tensor:
    """Return the gradient of a function that is constant almost everywhere."""
    return aten.zeros_like(grad)


def times(grad: Tensor, factor: float) -> Tensor:
    """Return `grad * factor`, skipping the multiplication by 1."""
    return grad if factor == 1 else grad * factor


non_differentiable(*"""logical_not bitwise_not isnan isinf eq.Tensor ne.Tensor lt.Tensor le.Tensor gt.Tensor ge.Tensor
logical_and logical_or logical_xor bitwise_and.Tensor bitwise_or.Tensor bitwise_xor.Tensor""".split())
for _name in ("sign", "floor", "ceil", "round", "trunc"):
    derivative(_name, self=zeros)

derivative("neg", self=lambda grad: -grad)
derivative("exp", self=lambda grad, result: grad * conjugate(result))
derivative("expm1", self=lambda grad, result: grad * conjugate(result + 1))
derivative("log", self=lambda grad, self: grad / conjugate(self))
derivative("log1p", self=lambda grad, self: grad / conjugate(self + 1))
derivative("log2", self=lambda grad, self: grad / conjugate(self * math.log(2)))
derivative("sqrt", self=lambda grad, result: grad / conjugate(2 * result))
derivative("rsqrt", self=lambda grad, result: -0.5 * grad * conjugate(result * result * result))
derivative("reciprocal", self=lambda grad, result: -grad * conjugate(result * result))
derivative("sin", self=lambda grad, self: grad * conjugate(self.cos()))
derivative("cos", self=lambda grad, self: -grad * conjugate(self.sin()))
derivative("tanh", self=in_full_precision(lambda grad, result: grad * conjugate(1 - result * result)))
derivative("erf", self=lambda grad, self: grad * (2 / math.sqrt(math.pi) * (-self * self).exp()))
derivative("sigmoid", self=in_full_precision(lambda grad, result: grad * conjugate(result * (1 - result))))
derivative("relu", self=lambda grad, result: aten.threshold_backward(grad, result, 0))
derivative("gelu", self=lambda grad, self, approximate: aten.gelu_backward(grad, self, approximate=approximate))


@in_full_precision
def _differentiate_silu(grad, self):
    gate = self.sigmoid()
    return grad * conjugate(gate * (1 + self * (1 - gate)))


derivative("silu", self=_differentiate_silu)
derivative(
    "threshold_backward",
    grad_output=lambda grad, self, threshold: aten.threshold_backward(grad, self, threshold),
    self=zeros,
)

_TANH_SCALE, _TANH_CUBIC = math.sqrt(2 / math.pi), 0.044715


def _gelu_curvature(self: Tensor, approximate: str) -> Tensor:
    """Return the second derivative of gelu."""
    if approximate == "none":
        return (-0.5 * self * self).exp() * (2 - self * self) / math.sqrt(2 * math.pi)
    square = self * self
    bent = (_TANH_SCALE * (self + _TANH_CUBIC * square * self)).tanh()
    slope = _TANH_SCALE * (1 + 3 * _TANH_CUBIC * square)
    return (1 - bent * bent) * (slope + 3 * _TANH_SCALE * _TANH_CUBIC * square - self * bent * slope * slope)


derivative(
    "gelu_backward",
    grad_output=lambda grad, self, approximate: aten.gelu_backward(grad, self, approximate=approximate),
    self=lambda grad, grad_output, self, approximate: grad * grad_output * _gelu_curvature(self, approximate),
)

derivative("add.Tensor", self=lambda grad: grad, other=lambda grad, alpha: times(grad, conjugate(alpha)))
derivative("sub.Tensor", self=lambda grad: grad, other=lambda grad, alpha: times(-grad, conjugate(alpha)))
derivative("mul.Tensor", self=lambda grad, other: grad * conjugate(other), other=lambda grad, self: grad * conjugate(self))
derivative(
    "div.Tensor",
    self=lambda grad, other: grad / conjugate(other),
    other=lambda grad, self, other: -grad * conjugate((self / other) / other),
)
derivative(
    "div.Tensor_mode",
    self=lambda grad, other, rounding_mode: grad / conjugate(other) if rounding_mode is None else zeros(grad),
    other=lambda grad, self, other, rounding_mode: (
        -grad * conjugate((self / other) / other) if rounding_mode is None else zeros(grad)
    ),
)


def _quotient(self, other, rounding_mode: str) -> Tensor:
    return aten.div.Tensor_mode(self, other, rounding_mode=rounding_mode)


derivative(
    "remainder.Tensor", self=lambda grad: grad, other=lambda grad, self, other: -grad * _quotient(self, other, "floor")
)
derivative(
    "fmod.Tensor", self=lambda grad: grad, other=lambda grad, self, other: -grad * _quotient(self, other, "trunc")
)


def _differentiate_power_base(grad, self, exponent):
    if not isinstance(exponent, Tensor):
        return zeros(grad) if exponent == 0 else grad * conjugate(times(self ** (exponent - 1), exponent))
    # For an exponent of 0 the result is 1 for every base, but the formula would give 0 * infinity at a base of 0.
    return aten.where.self(exponent == 0, 0, grad * conjugate(exponent * self ** (exponent - 1)))


def _logarithm(number: complex | float | int, like: Tensor) -> complex | float:
    """Return the logarithm of a nonzero number: complex for complex tensors, else NaN for negative numbers."""
    if like.dtype.is_complex:
        return cmath.log(number)
    return math.log(number) if number > 0 else math.nan


def _differentiate_power_exponent(grad, self, exponent, result):
    if isinstance(self, Tensor):
        # A negative real base has a complex logarithm.
        base = self.to(result.dtype) if result.dtype.is_complex else self
        # 0 ** x is 0 for every x > 0, but the formula would give 0 * -infinity.
        return grad * conjugate(aten.where.self((self == 0) & (real_part(exponent) >= 0), 0, result * base.log()))
    if self == 0:
        return grad * conjugate(aten.where.self(real_part(exponent) >= 0, 0, result * -math.inf))
    return grad * conjugate(result * _logarithm(self, result))


derivative("pow.Tensor_Tensor", self=_differentiate_power_base, exponent=_differentiate_power_exponent)
derivative("pow.Tensor_Scalar", self=_differentiate_power_base)
derivative("pow.Scalar", exponent=_differentiate_power_exponent)


def _split_at_ties(grad, mine, others, loses):
    """Return the gradient where `mine` wins, half of it at a tie, and 0 where it `loses`."""
    return aten.where.self(loses, 0, aten.where.self(mine == others, grad / 2, grad))


derivative(
    "maximum",
    self=lambda grad, self, other: _split_at_ties(grad, self, other, self < other),
    other=lambda grad, self, other: _split_at_ties(grad, other, self, other < self),
)
derivative(
    "minimum",
    self=lambda grad, self, other: _split_at_ties(grad, self, other, self > other),
    other=lambda grad, self, other: _split_at_ties(grad, other, self, other > self),
)
derivative(
    "where.self",
    self=lambda grad, condition: aten.where.self(condition, grad, 0),
    other=lambda grad, condition: aten.where.self(condition, 0, grad),
)
