"""Composites that write slices of one dimension, chosen by a vector of indices: index_add, index_copy and index_fill.

Each also exists in place, with the same checks.
"""

from __future__ import annotations

from rushlight.core.dtype import bool_, int32, int64
from rushlight.core.strides import wrap_dim
from rushlight.core.tensor import Tensor
from rushlight.ops.composite.creation import laid_out_as
from rushlight.ops.composite.network.common import checked_later, values_of
from rushlight.ops.composite.pointwise import with_inplace
from rushlight.ops.packet import namespaces
from rushlight.ops.promotion import check_number

aten = namespaces.namespace("aten")


def spread_index(self: Tensor, dim: int, index: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return a 1-D index along `dim` as the full-shape index that scatter and gather take."""
    if not self.dim() or not len(shape):
        return aten.reshape.default(index, shape)
    if len(shape) == 1 and tuple(index.shape) == tuple(shape):
        return index
    view = [1] * self.dim()
    view[dim] = index.numel()
    return aten.expand.default(aten.view.default(index, view), shape)


def check_index_add(name: str, self: Tensor, dim: int, index: Tensor, source: Tensor) -> int:
    """Return the wrapped dimension; errors for an index or a source that do not fit, as index_add and index_reduce raise
    them."""
    axis = wrap_dim(dim, self.dim())
    if index.dim() > 1:
        raise IndexError(
            f"{name}_(): Index is supposed to be a vector, but got dim: {index.dim()} with type: {index.dtype.scalar_name} and "
            f"size: {list(index.shape)}"
        )
    if index.dtype not in (int32, int64):
        raise RuntimeError(f"{name}_(): Expected dtype int32/int64 for index but got: {index.dtype.scalar_name}")
    if self.dtype is not source.dtype:
        raise RuntimeError(
            f"{name}_(): self ({self.dtype.scalar_name}) and source ({source.dtype.scalar_name}) must have the same scalar type"
        )
    if not source.dim() and index.numel() != 1:
        raise IndexError(
            f"{name}_(): Dimension specified as {dim} but tensor has no dimensions: the source, for {index.numel()} indices"
        )
    if source.dim() and source.dim() == self.dim() and source.size(axis) != index.numel():
        raise RuntimeError(
            f"{name}_(): Number of indices ({index.numel()}) should be equal to source.size(dim): ({source.size(axis)}), for "
            f"dim: {axis}"
        )
    if _slice_shape(self, axis) != _slice_shape(source, axis) or self.dim() != source.dim():
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
            f"{list(self.shape)} source.shape = {list(source.shape)}"
        )
    return axis


def _slice_shape(value: Tensor, axis: int) -> tuple[int, ...]:
    return (*value.shape[:axis], *value.shape[axis + 1 :])


@with_inplace("index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor")
def index_add(self, dim, index, source, *, alpha=1):
    axis = check_index_add("index_add", self, dim, index, source)
    check_number(alpha, self.dtype)
    factor = int(alpha) if source.dtype.is_integral and source.dtype is not bool_ else alpha
    values = source if alpha == 1 else (source * factor).to(source.dtype)
    return aten.scatter_add.default(self, axis, spread_index(self, axis, index, source.shape), values)


def _check_index_copy(self: Tensor, dim: int, index: Tensor, source: Tensor) -> int:
    axis = wrap_dim(dim, self.dim())
    if index.dim() > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {index.dim()})")
    if source.dim() and self.dim() and source.dim() != self.dim():
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
            f"dimensionality ({source.dim()}), destination dimensionality ({self.dim()})"
        )
    if index.dtype is not int64:
        raise RuntimeError(f"index_copy_(): Expected a long tensor for index, but got {index.dtype.scalar_name}")
    if self.dtype is not source.dtype:
        raise RuntimeError(
            "index_copy_(): self and source expected to have the same dtype, but got (self) "
            f"{self.dtype.scalar_name} and (source) {source.dtype.scalar_name}"
        )
    if not source.dim() and index.numel() != 1:
        raise IndexError(f"index_copy_(): When source is scalar, index should have one element (got {index.numel()})")
    if source.dim() and self.dim() and source.size(axis) != index.numel():
        raise IndexError(
            f"index_copy_(): Number of indices ({index.numel()}) should be equal to source.size(dim) ({source.size(axis)})"
        )
    if source.dim() and _slice_shape(self, axis) != _slice_shape(source, axis):
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
            f"{list(_slice_shape(self, axis))} at dimension {axis} and source slice shape: "
            f"{list(_slice_shape(source, axis))} at dimension {axis}."
        )
    return axis


def _checked_bounds(name: str, self: Tensor, axis: int, index: Tensor, lowest: int) -> Tensor:
    """Return the index; IndexError, now or when the graph runs, for values outside `lowest`..size - 1."""
    size = self.size(axis) if self.dim() else 1
    wrong = f"{name}index {{}} is out of bounds for dimension {axis} with size {size}"
    positions = values_of(index)
    if positions is None:
        return checked_later(index, lambda x: (x >= lowest) & (x < size), IndexError, wrong)
    if positions.size and (positions.min() < lowest or positions.max() >= size):
        raise IndexError(wrong.format(positions.min() if positions.min() < lowest else positions.max()))
    return index


@with_inplace("index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor")
def index_copy(self, dim, index, source):
    axis = _check_index_copy(self, dim, index, source)
    index = _checked_bounds("index_copy_(): ", self, axis, index, 0)
    if self.dim() and not source.dim():
        source = aten.reshape.default(source, [1] * self.dim())
    return aten.scatter.src(self, axis, spread_index(self, axis, index, source.shape), source)


@with_inplace("index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor")
def index_fill(self, dim, index, value):
    if isinstance(value, complex) and not self.is_complex():
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    return index_fill_tensor(self, dim, index, aten.full.default((), value, dtype=self.dtype, device=self.device))


@with_inplace("index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor")
def index_fill_tensor(self, dim, index, value):
    if value.dim():
        raise RuntimeError(
            f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.dim()} dimension(s)."
        )
    if index.dtype is not int64:
        raise IndexError(f"index_fill_(): Expected dtype int64 for index, but got {index.dtype}.")
    if index.dim() > 1:
        raise RuntimeError(f"Index has to be a vector/scalar, but index_fill_ got shape {list(index.shape)}")
    axis = wrap_dim(dim, self.dim())
    size = self.size(axis) if self.dim() else 1
    index = _checked_bounds("", self, axis, index, -size)
    wrapped = aten.where.self(index < 0, index + size, index)
    if not index.numel():
        return aten.clone.default(self)
    shape = (*self.shape[:axis], index.numel(), *self.shape[axis + 1 :]) if self.dim() else ()
    untouched = aten.full.default(self.shape, False, dtype=bool_, device=self.device)
    # Fill through a mask, so that duplicate indices fill only once.
    chosen = aten.scatter.value(untouched, axis, spread_index(self, axis, wrapped, shape), True)
    return laid_out_as(aten.where.self(chosen, value.to(self.dtype), self), self)
