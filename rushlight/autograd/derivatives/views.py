"""Derivatives of views, copies and in-place writes. No gradient of a view is built by writing in place."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.autograd.derivative_table import derivative, non_differentiable
from rushlight.autograd.derivatives.pointwise import zeros
from rushlight.core.strides import may_overlap, storage_extent, wrap_dim, wrap_dims
from rushlight.core.tensor import Tensor
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


def identity(grad: Tensor) -> Tensor:
    """Return the gradient of an operator that moves values without changing them."""
    return grad


def pad_dim(value: Tensor, dim: int, before: int, after: int, fill: float = 0) -> Tensor:
    """Return `value` padded with `fill` before and after along `dim`."""
    if before == after == 0:
        return value
    pads = [0, 0] * (value.dim() - 1 - dim) + [before, after]
    return aten.constant_pad_nd(value, pads, fill)


def _differentiate_permute(grad, dims):
    order = wrap_dims(dims, grad.dim())
    return grad.permute(sorted(range(len(order)), key=order.__getitem__))


def _differentiate_select(grad, self_sizes, dim, index):
    axis = wrap_dim(dim, len(self_sizes))
    size = self_sizes[axis]
    position = int(index) % size
    return pad_dim(grad.unsqueeze(axis), axis, position, size - 1 - position)


def _differentiate_slice(grad, self_sizes, dim, start, end, step):
    axis = wrap_dim(dim, len(self_sizes))
    size, count = self_sizes[axis], grad.size(axis)
    begin = min(max(start + size if start is not None and start < 0 else start or 0, 0), size)
    if step > 1 and count > 1:
        # Elements that the slice skips get gradient 0: pad a new innermost dimension.
        sizes = list(grad.shape)
        spread = pad_dim(grad.unsqueeze(axis + 1), axis + 1, 0, step - 1)
        sizes[axis] = count * step
        grad = spread.reshape(sizes).narrow(axis, 0, (count - 1) * step + 1)
    return pad_dim(grad, axis, begin, size - begin - grad.size(axis))


def _differentiate_as_strided(grad, self_geometry, size, stride, storage_offset):
    offset = self_geometry[2] if storage_offset is None else storage_offset
    return as_strided_gradient(grad, self_geometry, (tuple(size), tuple(stride), offset))


def as_strided_gradient(grad: Tensor, own: tuple, view: tuple) -> Tensor:
    """Return the gradient of a tensor for that of a view of its storage; both are given as (sizes, strides, storage offset).

    Gradients of one storage element add up; then the elements of the tensor are read from the summed storage. A storage element
    that several indices of the tensor refer to divides its gradient among them.
    """
    first = min(own[2], view[2])
    extent = max(storage_extent(*own), storage_extent(*view)) - first
    positions = aten.arange(extent, device=grad.device)
    storage = _sum_by_position(grad, aten.as_strided(positions, view[0], view[1], view[2] - first), extent)
    if may_overlap(*own[:2]):
        named = aten.as_strided(positions, own[0], own[1], own[2] - first)
        ones = aten.ones(own[0], dtype=grad.dtype.to_real(), device=grad.device)
        storage = storage / _sum_by_position(ones, named, extent).clamp(min=1)
    return aten.as_strided(storage, own[0], own[1], own[2] - first)


def _sum_by_position(values: Tensor, positions: Tensor, extent: int) -> Tensor:
    return values.new_zeros((extent,)).scatter_add(0, positions.reshape((-1,)), values.reshape((-1,)))


def _differentiate_squeeze(grad, self_sizes):
    return grad.reshape(self_sizes)


non_differentiable("detach", "empty.memory_format", "empty_strided", "full", "arange.start_step", "randperm")
non_differentiable("_local_scalar_dense", "equal", "view.dtype")
for _name in ("alias", "lift_fresh", "clone", "_checked", "_to_copy"):
    # _to_copy changes the dtype, and the engine gives every gradient the dtype of its input.
    derivative(_name, self=identity)
derivative("as_strided", self=_differentiate_as_strided)
derivative("view", self=lambda grad, self_sizes: grad.reshape(self_sizes))
derivative("permute", self=_differentiate_permute)
# The engine sums the gradient over the expanded dimensions.
derivative("expand", self=identity)
derivative("select.int", self=_differentiate_select)
derivative("slice.Tensor", self=_differentiate_slice)
derivative("unsqueeze", self=lambda grad, dim: aten.squeeze.dims(grad, (dim,)))
derivative("squeeze.dims", self=_differentiate_squeeze)

derivative("copy_", self=zeros, src=identity)
for _name in ("fill_.Scalar", "uniform_", "normal_", "random_.from", "bernoulli_.float"):
    derivative(_name, self=zeros)


def restore_dims(value: Tensor, dims: Sequence[int], keepdim: bool) -> Tensor:
    """Return a reduction's result with its reduced dimensions (wrapped) put back as size 1."""
    if keepdim or not value.dim() + len(dims):
        return value
    for dim in sorted(dims):
        value = value.unsqueeze(dim)
    return value
