"""Composite operators on complex numbers. Conjugates are computed at once: no tensor here is a conjugate view."""

from __future__ import annotations

from rushlight.core.dtype import bool_, float16, float32, float64
from rushlight.core.tensor import Tensor
from rushlight.ops.packet import namespaces
from rushlight.ops.registry import composite

aten = namespaces.namespace("aten")


@composite("real(Tensor(a) self) -> Tensor(a)")
def real(self):
    return aten.select.int(aten.view_as_real.default(self), -1, 0) if self.dtype.is_complex else self


@composite("imag(Tensor(a) self) -> Tensor(a)")
def imag(self):
    if not self.dtype.is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return aten.select.int(aten.view_as_real.default(self), -1, 1)


@composite("complex(Tensor real, Tensor imag) -> Tensor")
def complex_(real, imag):
    _check_parts(real, imag)
    return _from_parts(real, imag)


@composite("polar(Tensor abs, Tensor angle) -> Tensor")
def polar(abs, angle):
    _check_parts(abs, angle)
    return _from_parts(abs * aten.cos.default(angle), abs * aten.sin.default(angle))


def _from_parts(real: Tensor, imag: Tensor) -> Tensor:
    pair = aten.stack.default(list(aten.broadcast_tensors.default([real, imag])), -1)
    return aten.view_as_complex.default(pair)


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


@composite("conj(Tensor(a) self) -> Tensor(a)", "_conj(Tensor(a) self) -> Tensor(a)")
def conj(self):
    return aten.conj_physical.default(self) if self.dtype.is_complex else self


@composite("_conj_physical(Tensor self) -> Tensor")
def conj_physical(self):
    return aten.conj_physical.default(self)


@composite("resolve_conj(Tensor(a) self) -> Tensor(a)", "resolve_neg(Tensor(a) self) -> Tensor(a)")
def resolve(self):
    return self


@composite("is_conj(Tensor self) -> bool", "is_neg(Tensor self) -> bool")
def is_lazy(self):
    return False


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
