"""`x[...]` and `x[...] = value`: Python indices turned into view and index operators."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rushlight.core.dispatch_key import BATCHED_BIT
from rushlight.core.dtype import INTEGRAL, bool_, dtype, int64, uint8
from rushlight.core.overrides import call_override, is_overriding
from rushlight.core.size import whole_number
from rushlight.core.strides import wrap_dim
from rushlight.core.tensor import Tensor, tensor_from_array
from rushlight.ops.cpu.common import number
from rushlight.ops.packet import namespaces
from rushlight.ops.promotion import rounded_to_half

aten = namespaces.namespace("aten")
ZERO_DIM = (
    "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim tensor to "
    "a number"
)


def getitem(self: Tensor, index: object) -> Tensor:
    """Return the elements at `index`: a view for ints, slices, None and Ellipsis; a copy when tensors or lists are among
    them."""
    if type(self) is not Tensor and is_overriding(type(self)):
        return call_override(getitem, [self], (self, index), {})
    kind = type(index)
    if kind is int:
        return _select(self, 0, index, 0)
    if kind is slice and self._impl.sizes:
        view, advanced = _slice(self, 0, index), None
    elif index is None:
        return aten.unsqueeze.default(self, 0)
    elif kind is Tensor and _is_plain_index(self, index):
        return aten.index.Tensor(self, [index])
    elif kind is tuple and len(index) <= len(self._impl.sizes) and _NUMBERS_AND_SLICES.issuperset(map(type, index)):
        view, advanced = _apply_basic_index_fast(self, index), None
    else:
        view, advanced = _apply_basic_index(self, index)
    if not advanced:
        return aten.alias.default(view) if view is self else view
    return aten.index.Tensor(view, _positions(view, advanced))


_NUMBERS_AND_SLICES = {int, slice}


def _is_plain_index(self: Tensor, index: Tensor) -> bool:
    """Return whether a tensor indexes the first dimensions of `self`, and needs no conversion."""
    impl = index._impl
    if not impl.sizes or not self._impl.sizes:
        return False
    return impl.dtype is int64 or (impl.dtype is bool_ and len(impl.sizes) <= len(self._impl.sizes))


def _apply_basic_index_fast(self: Tensor, index: tuple[int | slice, ...]) -> Tensor:
    """Do the same as `_apply_basic_index`, faster, for ints and slices."""
    view, dim = self, 0
    for source_dim, item in enumerate(index):
        if type(item) is int:
            view = _select(view, dim, item, source_dim)
        else:
            view = _slice(view, dim, item)
            dim += 1
    return view


def setitem(self: Tensor, index: object, value: object) -> None:
    """Write `value`, broadcast, to the elements at `index`."""
    if type(self) is not Tensor and is_overriding(type(self)):
        call_override(setitem, [self], (self, index, value), {})
        return
    if type(index) is Tensor and _is_plain_index(self, index):
        view, advanced = self, {0: index}
        is_mask = index._impl.dtype is bool_ and index._impl.sizes == self._impl.sizes
        if is_mask and type(value) in (int, float) and index._impl.device == self._impl.device:
            aten.masked_fill_.Scalar(self, index, value)
            return
    else:
        view, advanced = _apply_basic_index(self, index)
    if not isinstance(value, Tensor):
        if not advanced and isinstance(value, bool | int | float | complex):
            aten.fill_.Scalar(view, rounded_to_half(value, view.dtype))
            return
        value = tensor_from_array(_to_array(value, self.dtype))
        if value._impl.sizes and self.is_cuda:
            value = value.to(self.device)
    if advanced:
        aten.index_put_.default(view, _positions(view, advanced), value)
        return
    while value.dim() > view.dim() and value.size(0) == 1:
        value = aten.select.int(value, 0, 0)
    aten.copy_.default(view, value)


def _to_array(value: object, kind: dtype) -> np.ndarray:
    """Return a number or a sequence of them as an array of the dtype it is written to. TypeError for anything else."""
    if isinstance(value, bool | int | float | complex):
        return np.asarray(number(value, kind.numpy))
    given = np.asarray(value) if isinstance(value, Sequence | np.ndarray | np.generic) and not isinstance(value, str) else None
    if given is None or given.dtype.kind in "USmM" or (given.dtype.kind == "O" and None in given.flat):
        raise TypeError(f"can't assign a {type(value).__name__} to a torch.{kind.scalar_name}Tensor")
    return given.astype(kind.numpy)


def _apply_basic_index(self: Tensor, index: object) -> tuple[Tensor, dict[int, Tensor]]:
    """Return the view that the basic parts of an index select, and the index tensors by dimension of that view."""
    items = tuple(index) if isinstance(index, tuple) or _is_nested_index(index) else (index,)
    items = _expand_ellipsis(self, items)
    view, dim, source_dim, advanced = self, 0, 0, {}
    for item in items:
        if isinstance(item, bool | np.bool_):
            view = aten.unsqueeze.default(view, dim)
            advanced[dim] = tensor_from_array(np.flatnonzero([item]))
            dim += 1
        elif item is None:
            view = aten.unsqueeze.default(view, dim)
            dim += 1
        elif isinstance(item, slice):
            view = _slice(view, dim, item)
            dim += 1
        elif _is_scalar_mask(item):
            view = aten.unsqueeze.default(view, dim)
            advanced[dim] = _as_index(item)
            dim += 1
        elif isinstance(item, int | np.integer) or _is_scalar_index(item):
            view = _select(view, dim, whole_number(item), source_dim)
        else:
            tensor = _as_index(item)
            advanced[dim] = _known_positions(item, tensor, view.shape[dim]) if isinstance(item, list) else tensor
            dim += max(tensor.dim(), 1) if tensor.dtype in (bool_, uint8) else 1
        source_dim += _count_indexed_dims(item)
    return view, advanced


def _known_positions(item: list, tensor: Tensor, size: int) -> Tensor:
    """Return a list of booleans as the positions of the true ones, so that the result's size does not depend on tensor
    values."""
    if tensor.dtype is bool_ and tensor.dim() == 1 and len(item) == size:
        return tensor_from_array(np.flatnonzero(item))
    return tensor


def _is_nested_index(index: object) -> bool:
    """Return whether a list acts as a tuple of indices, because it holds something other than numbers."""
    if not isinstance(index, list):
        return False
    return any(isinstance(item, slice | Tensor | list | tuple) or item is None or item is Ellipsis for item in index)


def _is_scalar_mask(item: object) -> bool:
    return isinstance(item, Tensor) and item.dim() == 0 and item.dtype in (bool_, uint8)


def _is_scalar_index(item: object) -> bool:
    if isinstance(item, np.ndarray):
        return item.ndim == 0 and item.dtype.kind in "iu"
    if not isinstance(item, Tensor) or item.dim() or item.is_meta:
        return False
    return item.dtype.category == INTEGRAL and not item._impl.key_set & BATCHED_BIT


def _expand_ellipsis(self: Tensor, items: Sequence) -> list:
    """Return the indices with each Ellipsis expanded to full slices over the dimensions left."""
    used = sum(_count_indexed_dims(item) for item in items)
    if used and not self.dim():
        raise IndexError(ZERO_DIM)
    if used > self.dim():
        raise IndexError(f"too many indices for tensor of dimension {self.dim()}")
    filler = [slice(None)] * (self.dim() - used)
    expanded = [part for item in items for part in (filler if item is Ellipsis else (item,))]
    while sum(_count_indexed_dims(item) for item in expanded) > self.dim() and expanded[-1] == slice(None):
        # A second Ellipsis beyond the last dimension expands to nothing.
        expanded.pop()
    return expanded


def _count_indexed_dims(item: object) -> int:
    if item is None or item is Ellipsis or isinstance(item, bool | np.bool_):
        return 0
    if isinstance(item, Tensor) and item.dtype in (bool_, uint8):
        return item.dim()
    if isinstance(item, np.ndarray) and item.dtype == np.bool_:
        return item.ndim
    return 1


def _slice(view: Tensor, dim: int, item: slice) -> Tensor:
    parts = [part.item() if isinstance(part, Tensor) else part for part in (item.start, item.stop, item.step)]
    start, stop, step = parts
    if any(isinstance(part, float | complex | str) for part in parts):
        raise TypeError("slice indices must be integers or None or have an __index__ method")
    if step is not None and step <= 0:
        raise ValueError(f"step must be greater than zero, got {step}" if step else "slice step cannot be zero")
    if start is None and stop is None and step is None:
        return view
    return aten.slice.Tensor(view, dim, start, stop, 1 if step is None else step)


def _select(view: Tensor, dim: int, index: int, source_dim: int) -> Tensor:
    """Return the slice at `index` along `dim` of a view, which is `source_dim` of the tensor that is indexed."""
    sizes = view._impl.sizes
    if not sizes:
        raise IndexError(ZERO_DIM)
    size = sizes[wrap_dim(dim, len(sizes))]
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for dimension {source_dim} with size {size}")
    return aten.select.int(view, dim, index)


def _as_index(item: object) -> Tensor:
    if isinstance(item, str):
        raise TypeError(f"new(): invalid data type 'str' (an index must be made of integers or booleans, got {item!r})")
    if not isinstance(item, Tensor | list | tuple | np.ndarray | range):
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got "
            f"{type(item).__name__})"
        )
    tensor = item if isinstance(item, Tensor) else _index_of_sequence(item)
    if tensor.dtype.is_floating_point or tensor.dtype.is_complex:
        raise IndexError(f"tensors used as indices must be long, int, byte or bool tensors, got {tensor.dtype}")
    if tensor.dtype in (bool_, uint8) and not tensor.dim():
        return aten.unsqueeze.default(tensor, 0)
    return tensor


def _index_of_sequence(item: Sequence | np.ndarray) -> Tensor:
    array = np.asarray(item)
    if array.dtype.kind not in "iubfc":
        raise TypeError(f"new(): invalid data type '{array.dtype}' (an index must be made of integers or booleans)")
    if array.size == 0 and not isinstance(item, np.ndarray):
        return tensor_from_array(array.astype(np.int64))
    kept = array.dtype.kind in "bfc" or (isinstance(item, np.ndarray) and array.dtype == np.uint8)
    return tensor_from_array(np.ascontiguousarray(array if kept else array.astype(np.int64)))


def _positions(view: Tensor, advanced: dict[int, Tensor]) -> list[Tensor | None]:
    positions: list[Tensor | None] = []
    for dim in sorted(advanced):
        positions += [None] * (dim - _dims_covered(positions))
        positions.append(advanced[dim])
    return positions


def _dims_covered(positions: list) -> int:
    return sum(
        item.dim() if item is not None and item.dtype in (bool_, uint8) and item.dim() else 1 for item in positions
    )
