"""Helpers shared by the composites of linear algebra."""

from __future__ import annotations

from rushlight.core.tensor import Tensor
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


def adjoint(matrix: Tensor) -> Tensor:
    """Return each matrix transposed and conjugated."""
    return aten.mH.default(matrix) if matrix.is_complex() else aten.transpose.int(matrix, -2, -1)


def conjugate(value: Tensor) -> Tensor:
    """Return the complex conjugate; real tensors themselves."""
    return aten.conj_physical.default(value) if value.is_complex() else value


def identity(size: int, like: Tensor, columns: int | None = None) -> Tensor:
    """Return the identity matrix with the dtype and device of `like`."""
    return aten.eye.m(size, size if columns is None else columns, dtype=like.dtype, device=like.device)
