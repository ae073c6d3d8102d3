"""Tensor's properties of complex numbers, and methods whose first argument in the schema is not the tensor."""

from __future__ import annotations

from rushlight.core.tensor import Tensor
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


def _real(self: Tensor) -> Tensor:
    return aten.real.default(self)


def _set_real(self: Tensor, value: Tensor | complex) -> None:
    _write(aten.real.default(self), value)


def _imag(self: Tensor) -> Tensor:
    return aten.imag.default(self)


def _set_imag(self: Tensor, value: Tensor | complex) -> None:
    _write(aten.imag.default(self), value)


def _write(part: Tensor, value: Tensor | complex) -> None:
    if isinstance(value, Tensor):
        aten.copy_.default(part, value)
    else:
        aten.fill_.Scalar(part, value)


def polygamma(self: Tensor, n: int) -> Tensor:
    """Return the n-th derivative of digamma; RuntimeError for negative n."""
    return aten.polygamma.default(n, self)


def polygamma_(self: Tensor, n: int) -> Tensor:
    """Return `polygamma`, written to this tensor."""
    return aten.polygamma_.default(self, n)


def install() -> None:
    """Attach the properties and methods to Tensor."""
    Tensor.real = property(_real, _set_real, doc="The real part, as a view; a real tensor itself.")
    Tensor.imag = property(_imag, _set_imag, doc="The imaginary part, as a view; RuntimeError for real tensors.")
    Tensor.polygamma, Tensor.polygamma_ = polygamma, polygamma_
