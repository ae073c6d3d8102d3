"""TensorImpl, the data of a tensor: sizes, strides and an offset into a storage, a version counter, keys and autograd data.

The types are C structs (`csrc/tensor_impl.c`), so that native code reads their fields directly:

`TensorImpl(storage, sizes, strides, storage_offset, element_type, where, key_set, version=None)` has these as fields, and
`autograd` (an AutogradMeta or None), `view` (a ViewMeta or None), `inference`, `fake`. Calculated: `numel`, `requires_grad`,
`data_ptr`, `is_contiguous()`, and `array`, a NumPy array over the same memory. `alias` makes an impl over the same storage
that shares the version counter; `replace_geometry` points it at other memory.

`VersionCounter.value` counts in-place writes; a base and its views share one. Where tensors with counters of their own share
memory, the counters are `separate`: the storage's `generation` counts the writes to all of them, too. `AutogradMeta` is
autograd's data of a tensor: `requires_grad`, `grad`, `grad_fn`, `output_nr`, `accumulator`, `hooks`, `post_accumulate_hooks`,
`retains_grad`. `ViewMeta` describes a view: its `base`, the `version` at which its grad_fn was made, and `origin`, the reason
why in-place writes are forbidden while autograd records ("" where they are allowed).
"""

from __future__ import annotations

import math
import sys

import numpy as np

import rushlight._C as _C
from rushlight._C import AutogradMeta, TensorImpl, VersionCounter, ViewMeta, empty_impl
from rushlight.core.device import CPU, device
from rushlight.core.dispatch_key import AUTOGRAD_BITS, BATCHED_BIT, CPU_KEYS, META_KEYS
from rushlight.core.dtype import ALL, BITS_TYPES, NARROW_TYPES, dtype
from rushlight.core.storage import borrow, check_on_host, without_data
from rushlight.core.strides import contiguous_strides, storage_extent
from rushlight.core.thread_state import state

__all__ = [
    "AutogradMeta", "DataDependentError", "DataDependentShapeError", "TensorImpl", "VersionCounter", "ViewMeta", "count_write",
    "empty_impl", "empty_meta_impl", "impl_from_array", "in_current_mode",
]  # fmt: skip


UNKNOWN_NBYTES = 1 << 62  # size of a storage without memory for tensors of symbolic sizes, so that no view exceeds it


class DataDependentError(RuntimeError):
    """A program asked for the values of a fake tensor, which has none."""


class DataDependentShapeError(DataDependentError, NotImplementedError):
    """The sizes of a result depend on the values of a meta or fake tensor, which has no data."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name}: the shape of the result depends on the values of the input, which meta and fake tensors do not have. "
            "Under compile, such an operator cannot be captured."
        )


def count_write(impl: TensorImpl) -> None:
    """Bump the version counter for a write that no operator made."""
    impl.version.value += 1
    if impl.version.separate:
        impl.storage.generation += 1


def _make_array(self: TensorImpl) -> np.ndarray:
    """Return the elements as a NumPy array over the same memory."""
    if self.key_set & BATCHED_BIT:
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage: vmap maps over it")
    if self.fake:
        raise DataDependentError(
            f"the values of a fake tensor of shape {list(self.sizes)} are not known while a program is captured. Keep them "
            "in a tensor, or leave this part out of the compiled function."
        )
    check_on_host(self.device)
    if self.storage.buffer is None:
        raise RuntimeError(f"Cannot read the data of a tensor of shape {list(self.sizes)} on device 'meta': it has none")
    sizes, element_type, buffer = self.sizes, self.dtype, self.storage.buffer
    if 0 in sizes:
        # The offset of an empty view may lie past the end of its storage, which NumPy rejects.
        return np.empty(sizes, element_type.numpy)
    itemsize = element_type.itemsize
    start = self.storage_offset * itemsize
    if self.strides == contiguous_strides(sizes):
        return np.ndarray(sizes, element_type.numpy, buffer, start)
    return np.ndarray(sizes, element_type.numpy, buffer, start, [stride * itemsize for stride in self.strides])


_C.configure(make_array=_make_array, ndarray=np.ndarray, numpy_name=sys.intern("numpy"), **{kind.name: kind for kind in ALL})
_C.configure(narrow_dtypes=frozenset((*NARROW_TYPES, *BITS_TYPES)))


def impl_from_array(array: np.ndarray, element_type: dtype) -> TensorImpl:
    """Return a CPU impl over the memory of `array`, whose NumPy dtype is `element_type.numpy`."""
    itemsize = element_type.itemsize
    # NumPy's strides of arrays without elements are 0.
    strides = tuple(stride // itemsize for stride in array.strides) if array.size else contiguous_strides(array.shape)
    made = TensorImpl(borrow(array), array.shape, strides, 0, element_type, CPU, CPU_KEYS)
    made.array = array
    return in_current_mode(made)


def empty_meta_impl(
    sizes: tuple[int, ...], element_type: dtype, where: device, strides: tuple[int, ...] | None = None
) -> TensorImpl:
    """Return an impl without data; row-major unless `strides` are given."""
    count = math.prod(sizes)
    if strides and count and type(count) is int:
        count = storage_extent(sizes, strides, 0)
    strides = strides or contiguous_strides(sizes)
    storage = without_data(count * element_type.itemsize if type(count) is int else UNKNOWN_NBYTES)
    return in_current_mode(TensorImpl(storage, sizes, strides, 0, element_type, where, META_KEYS))


def in_current_mode(made: TensorImpl) -> TensorImpl:
    """Return a new impl; in inference mode it becomes an inference tensor."""
    if state.inference:
        made.inference = True
        made.key_set &= ~AUTOGRAD_BITS
    return made
