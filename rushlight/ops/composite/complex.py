"""Composite operators on complex numbers: their parts, and conjugates as views."""

from __future__ import annotations

from rushlight.core.dtype import bool_, float16, float32, float64
from rushlight.core.layout import strided
from rushlight.core.strides import contiguous_strides, elementwise_strides
from rushlight.core.tensor import Tensor
from rushlight.ops.lazy_views import CONJUGATE, NEGATIVE, lazy_bits, toggle_lazy_bits
from rushlight.ops.packet import namespaces
from rushlight.ops.registry import composite

aten = namespaces.namespace("aten")


@composite("real(Tensor(a) self) -> Tensor(a)")
def real(self):
    return aten.select.int(_in_pairs(self), -1, 0) if self.dtype.is_complex else self


@composite("imag(Tensor(a) self) -> Tensor(a)")
def imag(self):
    if not self.dtype.is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    pairs = _in_pairs(self)
    return aten.select.int(aten._neg_view.default(pairs) if lazy_bits(self) & CONJUGATE else pairs, -1, 1)


def _in_pairs(self: Tensor) -> Tensor:
    """View a complex tensor, or a lazy conjugate's memory, as pairs of real numbers."""
    return aten.view_as_real.default(toggle_lazy_bits(self, lazy_bits(self) & CONJUGATE))


@composite("complex(Tensor real, Tensor imag) -> Tensor")
def complex_(real, imag):
    _check_parts(real, imag)
    return _from_parts(real, imag)


@composite("polar(Tensor abs, Tensor angle) -> Tensor")
def polar(abs, angle):
    _check_parts(abs, angle)
    return _from_parts(abs * aten.cos.default(angle), abs * aten.sin.default(angle))


def _from_parts(real: Tensor, imag: Tensor) -> Tensor:
    """Return complex numbers in the memory order of an elementwise result."""
    parts = list(aten.broadcast_tensors.default([real, imag]))
    sizes = parts[0]._impl.sizes
    strides = elementwise_strides(sizes, [(part._impl.sizes, part._impl.strides) for part in (real, imag)])
    if strides == contiguous_strides(sizes):
        return aten.view_as_complex.default(aten.stack.default(parts, -1))
    order = sorted(range(len(sizes)), key=lambda dim: -strides[dim])
    pair = aten.stack.default([aten.permute.default(part, order) for part in parts], -1)
    return aten.permute.default(aten.view_as_complex.default(pair), [order.index(dim) for dim in range(len(order))])


def _check_parts(first: Tensor, second: Tensor) -> None:
    if not all(part.dtype in (float16, float32, float64) for part in (first, second)):
        raise RuntimeError(
            "Expected both inputs to be Half, Float or Double tensors but got "
            f"{first.dtype.scalar_name} and {second.dtype.scalar_name}"
        )
    if first.dtype is not second.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {first.dtype.scalar_name} but got scalar type {second.dtype.scalar_name} for "
            "second argument"
        )


@composite("conj(Tensor(a) self) -> Tensor(a)")
def conj(self):
    if not self.dtype.is_complex:
        return self
    return aten._conj.default(self) if self.layout is strided else aten.conj_physical.default(self)


@composite("_conj_physical(Tensor self) -> Tensor")
def conj_physical(self):
    return aten.conj_physical.default(self)


@composite("resolve_conj(Tensor(a) self) -> Tensor(a)")
def resolve_conj(self):
    return aten.clone.default(self) if lazy_bits(self) & CONJUGATE else self


@composite("resolve_neg(Tensor(a) self) -> Tensor(a)")
def resolve_neg(self):
    return aten.clone.default(self) if lazy_bits(self) & NEGATIVE else self


@composite("is_conj(Tensor self) -> bool")
def is_conj(self):
    return bool(lazy_bits(self) & CONJUGATE)


@composite("is_neg(Tensor self) -> bool")
def is_neg(self):
    return bool(lazy_bits(self) & NEGATIVE)


@composite("view_as_real_copy(Tensor self) -> Tensor")
def view_as_real_copy(self):
    return aten.clone.default(aten.view_as_real.default(self))


@composite("view_as_complex_copy(Tensor self) -> Tensor")
def view_as_complex_copy(self):
    return aten.clone.default(aten.view_as_complex.default(self))


@composite("isreal(Tensor self) -> Tensor")
def isreal(self):
    if self.dtype.is_complex:
        return imag(self) == 0
    return aten.ones_like.default(self, dtype=bool_)
