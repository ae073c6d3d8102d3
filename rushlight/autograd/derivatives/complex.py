"""Derivatives of the operators on complex numbers, and the conjugation that the formulas of other operators use.

The gradient of a real function by a complex number z = x + iy is its derivative by x plus i times that by y. So a
holomorphic function passes on the gradient times the conjugate of its derivative. What flows back to a real input is
the real part, which the engine takes.
"""

from __future__ import annotations

from rushlight.autograd.derivative_table import derivative
from rushlight.core.tensor import Tensor
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


def conjugate(value: Tensor | complex | float | int | bool) -> Tensor | complex | float | int | bool:
    """Return the complex conjugate; real tensors and numbers as they are."""
    if isinstance(value, Tensor):
        return aten.conj_physical.default(value) if value._impl.dtype.is_complex else value
    return value.conjugate() if isinstance(value, complex) else value


def real_part(value: Tensor) -> Tensor:
    """Return the real part; real tensors as they are."""
    return aten.real.default(value) if value._impl.dtype.is_complex else value


def _differentiate_sgn(grad, self, result):
    """Return the component of the gradient perpendicular to the number, divided by the number's length."""
    if not self.dtype.is_complex:
        return aten.zeros_like(grad)
    across = grad - real_part(conjugate(result) * grad) * result
    length = self.abs()
    return aten.where.self(length == 0, 0, across / length)


def _differentiate_angle(grad, self):
    if not self.dtype.is_complex:
        return aten.zeros_like(grad)
    length = self.abs()
    return aten.where.self(length == 0, 0, grad * (self / length / length) * 1j)


def _differentiate_abs(grad, self):
    return grad * (aten.sgn(self) if self.dtype.is_complex else self.sign())


def _differentiate_view_as_complex(grad):
    return aten.view_as_real(grad if grad.dtype.is_complex else grad + 0j)


def _differentiate_view_as_real(grad):
    return aten.view_as_complex(grad.contiguous())


derivative("conj_physical", self=lambda grad: conjugate(grad))
derivative("_conj", self=lambda grad: conjugate(grad))
derivative("_neg_view", self=lambda grad: -grad)
derivative("sgn", self=_differentiate_sgn)
derivative("angle", self=_differentiate_angle)
derivative("abs", self=_differentiate_abs)
derivative("view_as_real", self=_differentiate_view_as_real)
derivative("view_as_complex", self=_differentiate_view_as_complex)
