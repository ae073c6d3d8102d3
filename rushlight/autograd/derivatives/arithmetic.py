"""Derivatives of copysign, nextafter, extrema and similar arithmetic."""

from __future__ import annotations

from rushlight.autograd.derivative_table import derivative, non_differentiable
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")

non_differentiable("signbit", "gcd", "lcm", "bitwise_left_shift.Tensor", "bitwise_right_shift.Tensor")


def refuse_derivative(name: str, argument: str):
    """Return a formula that raises RuntimeError: no derivative is known for this input."""

    def raise_error():
        raise NotImplementedError(f"the derivative for '{argument}' is not implemented (in {name})")

    return raise_error


def _differentiate_copysign(grad, self, result):
    return aten.where.self(self == 0, 0, grad * (result / self))


derivative("copysign.Tensor", self=_differentiate_copysign, other=lambda grad: aten.zeros_like(grad))
derivative(
    "nextafter",
    self=lambda grad, self, other: aten.where.self(self == other, 0, grad),
    other=lambda grad: aten.zeros_like(grad),
)
derivative(
    "frexp.Tensor",
    self=lambda grad, result1: grad / aten.exp2.default(result1.detach()),
    non_differentiable_outputs=(1,),
)


def _first_wins(self, other, compare):
    """Return a mask of where the first operand is the result: it compares so, or the other one is NaN."""
    return compare(self, other) | aten.isnan(other)


def _register_extremum(name: str, compare) -> None:
    derivative(
        name,
        self=lambda grad, self, other: aten.where.self(_first_wins(self, other, compare), grad, 0),
        other=lambda grad, self, other: aten.where.self(_first_wins(self, other, compare), 0, grad),
    )


_register_extremum("fmax", lambda a, b: a >= b)
_register_extremum("fmin", lambda a, b: a <= b)
