"""Kernels of view operators, the same for every backend: new sizes and strides over the same storage."""

from __future__ import annotations

import math

from rushlight.core.dispatch_key import LAZY_BITS, DispatchKey, bit
from rushlight.core.dtype import dtype
from rushlight.core.size import whole_number
from rushlight.core.strides import expanded_view, infer_size, storage_extent, view_strides, wrap_dim, wrap_dims
from rushlight.core.tensor import Tensor, wrap
from rushlight.core.tensor_impl import TensorImpl
from rushlight.ops.registry import explicit


def _view(self: Tensor, sizes, strides, offset=None) -> Tensor:
    impl = self._impl
    return wrap(impl.alias(tuple(sizes), tuple(strides), impl.storage_offset if offset is None else offset))


@explicit("alias", "detach", "lift_fresh")
def alias(self):
    impl = self._impl
    return _view(self, impl.sizes, impl.strides)


@explicit("as_strided")
def as_strided(self, size, stride, storage_offset=None):
    impl = self._impl
    offset = impl.storage_offset if storage_offset is None else storage_offset
    if len(size) != len(stride):
        raise RuntimeError(
            f"mismatch in length of strides and shape: as_strided got {len(size)} sizes and {len(stride)} strides"
        )
    if any(value < 0 for value in stride):
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    if any(value < 0 for value in size) or offset < 0:
        raise RuntimeError(f"as_strided: sizes and storage offset must not be negative, got {list(size)} and {offset}")
    needed = storage_extent(size, stride, offset) * impl.dtype.itemsize
    if math.prod(size) and needed > impl.storage.nbytes:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and itemsize "
            f"{impl.dtype.itemsize} requiring a storage size of {needed} are out of bounds for storage of size "
            f"{impl.storage.nbytes}"
        )
    return _view(self, size, stride, offset)


@explicit("view")
def view(self, size):
    impl = self._impl
    sizes = infer_size(tuple(size), impl.numel)
    strides = view_strides(impl.sizes, impl.strides, sizes)
    if strides is None:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            "contiguous subspaces). Use .reshape(...) instead."
        )
    return _view(self, sizes, strides)


@explicit("view.dtype")
def view_as_dtype(self, dtype):
    impl = self._impl
    kind = impl.dtype
    sizes, strides, offset = impl.sizes, impl.strides, impl.storage_offset
    if kind is not dtype and impl.key_set & LAZY_BITS:
        which = "conjugate view tensors" if impl.key_set & bit(DispatchKey.Conjugate) else "tensors with negative bit set"
        raise RuntimeError(f"torch.Tensor.view is not supported for {which} when converting to a different dtype.")
    if dtype.itemsize != kind.itemsize:
        if not sizes:
            raise RuntimeError(f"self.dim() cannot be 0 to view {_change_of_size(kind, dtype)}")
        if strides[-1] != 1:
            raise RuntimeError(f"self.stride(-1) must be 1 to view {_change_of_size(kind, dtype)}, but got {strides[-1]}")
        smaller = kind.itemsize > dtype.itemsize
        sizes, strides, offset = (_geometry_of_smaller if smaller else _geometry_of_larger)(impl, dtype)
    made = impl.alias(sizes, strides, offset)
    made.dtype = dtype
    return wrap(made)


def _change_of_size(kind: dtype, wanted: dtype) -> str:
    return f"{kind.scalar_name} as {wanted.scalar_name} (different element sizes)"


def _geometry_of_smaller(impl: TensorImpl, wanted: dtype) -> tuple[tuple, tuple, int]:
    """Return sizes, strides and offset when each element is split into several smaller ones."""
    ratio = impl.dtype.itemsize // wanted.itemsize
    strides = tuple(stride * ratio for stride in impl.strides[:-1])
    return (*impl.sizes[:-1], impl.sizes[-1] * ratio), (*strides, 1), impl.storage_offset * ratio


def _geometry_of_larger(impl: TensorImpl, wanted: dtype) -> tuple[tuple, tuple, int]:
    """Return sizes, strides and offset when several elements are merged into a larger one; RuntimeError where they do not
    divide."""
    ratio = wanted.itemsize // impl.dtype.itemsize
    facts = {"size(-1)": impl.sizes[-1], "storage_offset()": impl.storage_offset}
    facts.update({f"stride({dim})": stride for dim, stride in enumerate(impl.strides[:-1])})
    for name, value in facts.items():
        if value % ratio:
            raise RuntimeError(
                f"self.{name} must be divisible by {ratio} to view {_change_of_size(impl.dtype, wanted)}, but got {value}"
            )
    strides = tuple(stride // ratio for stride in impl.strides[:-1])
    return (*impl.sizes[:-1], impl.sizes[-1] // ratio), (*strides, 1), impl.storage_offset // ratio


@explicit("permute")
def permute(self, dims):
    impl = self._impl
    if len(dims) != len(impl.sizes):
        raise RuntimeError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {len(impl.sizes)} is not equal to len(dims) = {len(dims)}"
        )
    order = wrap_dims(dims, len(impl.sizes))
    return _view(self, [impl.sizes[dim] for dim in order], [impl.strides[dim] for dim in order])


@explicit("expand")
def expand(self, size, *, implicit=False):
    return _view(self, *expanded_view(self._impl.sizes, self._impl.strides, tuple(size)))


@explicit("select.int")
def select(self, dim, index):
    impl = self._impl
    if not impl.sizes:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, len(impl.sizes))
    size = impl.sizes[dim]
    if not -size <= index < size:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(impl.sizes)} at dimension {dim}")
    index = index + size if index < 0 else index
    offset = impl.storage_offset + index * impl.strides[dim]
    return _view(self, impl.sizes[:dim] + impl.sizes[dim + 1 :], impl.strides[:dim] + impl.strides[dim + 1 :], offset)


def _bound(position: int | None, size: int, otherwise: int) -> int:
    """Return one end of a slice, clamped to 0 <= position <= size."""
    if position is None:
        return otherwise
    position = whole_number(position)
    if position < 0:
        position = position + size
    return 0 if position < 0 else size if position > size else position


@explicit("slice.Tensor")
def slice_(self, dim=0, start=None, end=None, step=1):
    impl = self._impl
    if not impl.sizes:
        raise RuntimeError("slice() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, len(impl.sizes))
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    first, last = _bound(start, impl.sizes[dim], 0), _bound(end, impl.sizes[dim], impl.sizes[dim])
    length = -((first - last) // step) if first < last else 0
    offset = impl.storage_offset + first * impl.strides[dim]
    sizes = (*impl.sizes[:dim], length, *impl.sizes[dim + 1 :])
    strides = (*impl.strides[:dim], impl.strides[dim] * step, *impl.strides[dim + 1 :])
    return _view(self, sizes, strides, offset)


@explicit("unsqueeze")
def unsqueeze(self, dim):
    impl = self._impl
    dim = wrap_dim(dim, len(impl.sizes) + 1)
    stride = impl.sizes[dim] * impl.strides[dim] if dim < len(impl.sizes) else 1
    return _view(self, (*impl.sizes[:dim], 1, *impl.sizes[dim:]), (*impl.strides[:dim], stride, *impl.strides[dim:]))


@explicit("squeeze.dims")
def squeeze(self, dim):
    impl = self._impl
    if isinstance(dim, list | tuple) and not dim:
        return _view(self, impl.sizes, impl.strides)
    dropped = {d for d in wrap_dims(dim, len(impl.sizes)) if impl.sizes and impl.sizes[d] == 1}
    kept = [d for d in range(len(impl.sizes)) if d not in dropped]
    return _view(self, [impl.sizes[d] for d in kept], [impl.strides[d] for d in kept])
