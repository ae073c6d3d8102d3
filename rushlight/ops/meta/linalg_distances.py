"""Checks and Meta rules of distances between all pairs of points."""

from __future__ import annotations

from rushlight.core.strides import broadcast_shapes
from rushlight.core.tensor import Tensor
from rushlight.ops.meta.common import empty, like
from rushlight.ops.registry import meta


def cdist_sizes(x1: Tensor, x2: Tensor, p: float) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return sizes of both operands with broadcast batches, and of the result; RuntimeError where they do not fit."""
    for role, tensor in (("X1", x1), ("X2", x2)):
        if tensor.dim() < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {role} got: {tensor.dim()}D")
        if not tensor.is_floating_point():
            raise RuntimeError(f"cdist only supports floating-point dtypes, {role} got: {tensor.dtype.scalar_name}")
    if x1.size(-1) != x2.size(-1):
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1.size(-1)} X2: {x2.size(-1)}")
    if x1.dtype is not x2.dtype:
        raise RuntimeError(f"expected scalar type {x1.dtype.scalar_name} but found {x2.dtype.scalar_name} (cdist)")
    if not p >= 0:
        raise RuntimeError(f"cdist only supports non-negative p values, got p={p}")
    a, b = x1._impl.sizes, x2._impl.sizes
    batch = broadcast_shapes(a[:-2], b[:-2])
    return (*batch, *a[-2:]), (*batch, *b[-2:]), (*batch, a[-2], b[-2])


def check_shapes(name: str, sizes: tuple[int, ...], **given: Tensor) -> None:
    """Raise RuntimeError unless each given tensor expands to `sizes`."""
    for role, tensor in given.items():
        shape = tensor._impl.sizes
        if len(shape) > len(sizes) or broadcast_shapes(shape, sizes) != sizes:
            raise RuntimeError(f"{name}: expected {role} of shape {list(sizes)}, but got {list(shape)}")


def check_pdist(self: Tensor, p: float) -> int:
    """Return the number of pairs; RuntimeError unless `self` is a matrix of floats."""
    if self.dim() != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {self.dim()}D")
    if not self.is_floating_point():
        raise RuntimeError(f"pdist only supports floating-point dtypes, got: {self.dtype.scalar_name}")
    if not p >= 0:
        raise RuntimeError(f"pdist only supports non-negative p values, got p={p}")
    return self.size(0) * (self.size(0) - 1) // 2


@meta("_cdist_forward")
def cdist_forward(x1, x2, p, compute_mode):
    return empty(cdist_sizes(x1, x2, p)[2], x1.dtype)


@meta("_cdist_backward")
def cdist_backward(grad, x1, x2, p, cdist):
    return empty(cdist_sizes(x1, x2, p)[0], x1.dtype)


@meta("_pdist_forward")
def pdist_forward(self, p=2):
    return empty((check_pdist(self, p),), self.dtype)


@meta("_pdist_backward")
def pdist_backward(grad, self, p, pdist):
    return like(self)
