"""TensorImpl: what a tensor is. Sizes, strides and an offset into a storage, with a version counter, keys and autograd data."""

from __future__ import annotations

import math

import numpy as np

from rushlight.core.device import CPU, device
from rushlight.core.dispatch_key import AUTOGRAD_BITS, CPU_KEYS, META_KEYS
from rushlight.core.dtype import dtype
from rushlight.core.storage import StorageImpl, allocate, borrow, without_data
from rushlight.core.strides import contiguous_strides, is_contiguous
from rushlight.core.thread_state import state


class DataDependentError(RuntimeError):
    """A program asked for the values of a fake tensor, which has none."""


class VersionCounter:
    """Counts in-place writes; a base and its views share one, so that autograd notices writes through any alias."""

    __slots__ = ("value",)

    def __init__(self, value: int = 0):
        self.value = value


class AutogradMeta:
    """What autograd knows of a tensor: its gradient, the node that made it, which output of the node it is, and hooks."""

    __slots__ = (
        "requires_grad", "grad", "grad_fn", "output_nr", "accumulator", "hooks", "post_accumulate_hooks", "retains_grad",
    )  # fmt: skip

    def __init__(self, requires_grad: bool = False, grad_fn=None, output_nr: int = 0):
        self.requires_grad = requires_grad
        self.grad = None
        self.grad_fn = grad_fn
        self.output_nr = output_nr
        self.accumulator = None
        self.hooks = None
        self.post_accumulate_hooks = None
        self.retains_grad = False


class ViewMeta:
    """How a tensor came to be a view: the tensor it is a view of, and the version at which its grad_fn was made.

    `origin` says why the view must not be written to while autograd records; "" where it may.
    """

    __slots__ = ("base", "version", "origin")

    def __init__(self, base, version: int, origin: str = ""):
        self.base = base
        self.version = version
        self.origin = origin


class TensorImpl:
    """The state behind a Tensor handle. Sizes, strides and offset are in elements; `key_set` is a dispatch-key mask."""

    __slots__ = (
        "storage", "sizes", "strides", "storage_offset", "dtype", "device", "key_set", "version", "autograd", "view",
        "inference", "fake", "_array", "__weakref__",
    )  # fmt: skip

    def __init__(
        self,
        storage: StorageImpl,
        sizes: tuple[int, ...],
        strides: tuple[int, ...],
        storage_offset: int,
        element_type: dtype,
        where: device,
        key_set: int,
        version: VersionCounter | None = None,
    ):
        self.storage = storage
        self.sizes = sizes
        self.strides = strides
        self.storage_offset = storage_offset
        self.dtype = element_type
        self.device = where
        self.key_set = key_set
        self.version = version or VersionCounter()
        self.autograd = None
        self.view = None
        self.inference = False
        self.fake = False
        self._array = None

    @property
    def numel(self) -> int:
        """The number of elements."""
        return math.prod(self.sizes)

    @property
    def requires_grad(self) -> bool:
        """Whether autograd records what is done with this tensor; a view also takes part if its base does."""
        meta = self.autograd
        if meta is not None and (meta.requires_grad or meta.grad_fn is not None):
            return True
        return self.view is not None and self.view.base._impl.requires_grad

    @property
    def array(self) -> np.ndarray:
        """The elements as a NumPy array over the same memory; RuntimeError where there is no data."""
        array = self._array
        if array is None:
            array = self._array = self._make_array()
        return array

    def _make_array(self) -> np.ndarray:
        if self.fake:
            raise DataDependentError(
                f"the values of a fake tensor of shape {list(self.sizes)} are not known while a program is captured. Keep them "
                "in a tensor, or leave this part out of the compiled function."
            )
        if self.storage.buffer is None:
            raise RuntimeError(f"Cannot read the data of a tensor of shape {list(self.sizes)} on device 'meta': it has none")
        sizes, element_type, buffer = self.sizes, self.dtype, self.storage.buffer
        if 0 in sizes:
            # An empty view may lie past the end of its storage, where NumPy refuses to look.
            return np.empty(sizes, element_type.numpy)
        itemsize = element_type.itemsize
        start = self.storage_offset * itemsize
        if self.strides == contiguous_strides(sizes):
            return np.ndarray(sizes, element_type.numpy, buffer, start)
        return np.ndarray(sizes, element_type.numpy, buffer, start, [stride * itemsize for stride in self.strides])

    @property
    def data_ptr(self) -> int:
        """The address of the first element."""
        return self.storage.data_ptr + self.storage_offset * self.dtype.itemsize

    def is_contiguous(self) -> bool:
        """Whether the elements lie row-major without gaps."""
        return self.strides == contiguous_strides(self.sizes) or is_contiguous(self.sizes, self.strides)

    def alias(self, sizes: tuple[int, ...], strides: tuple[int, ...], storage_offset: int) -> TensorImpl:
        """An impl over the same storage that shares the version counter and no autograd state."""
        made = TensorImpl(
            self.storage, sizes, strides, storage_offset, self.dtype, self.device, self.key_set, self.version
        )
        made.fake = self.fake
        made.inference = self.inference
        return made

    def replace_geometry(self, storage: StorageImpl, sizes: tuple, strides: tuple, storage_offset: int) -> None:
        """Point this impl at other memory or another shape (`set_`, `resize_`, swapping a parameter's data)."""
        self.storage, self.sizes, self.strides, self.storage_offset = storage, sizes, strides, storage_offset
        self._array = None


def empty_impl(sizes: tuple[int, ...], element_type: dtype, strides: tuple[int, ...] | None = None) -> TensorImpl:
    """An uninitialised CPU impl; row-major unless `strides` are given (they must fit the sizes without gaps)."""
    row_major = contiguous_strides(sizes)
    storage = allocate(math.prod(sizes) * element_type.itemsize)
    made = TensorImpl(storage, sizes, strides or row_major, 0, element_type, CPU, CPU_KEYS)
    if strides is None or strides == row_major:
        made._array = np.ndarray(sizes, element_type.numpy, storage.buffer)
    return _in_mode(made)


def impl_from_array(array: np.ndarray, element_type: dtype) -> TensorImpl:
    """A CPU impl over the memory of `array`, whose NumPy dtype is `element_type.numpy`."""
    itemsize = element_type.itemsize
    strides = tuple(stride // itemsize for stride in array.strides)
    made = TensorImpl(borrow(array), array.shape, strides, 0, element_type, CPU, CPU_KEYS)
    made._array = array
    return _in_mode(made)


def empty_meta_impl(
    sizes: tuple[int, ...], element_type: dtype, where: device, strides: tuple[int, ...] | None = None
) -> TensorImpl:
    """An impl without data; row-major unless `strides` are given."""
    strides = strides or contiguous_strides(sizes)
    storage = without_data(math.prod(sizes) * element_type.itemsize)
    return _in_mode(TensorImpl(storage, sizes, strides, 0, element_type, where, META_KEYS))


def _in_mode(made: TensorImpl) -> TensorImpl:
    """A fresh impl, which autograd does not see if it is made in inference mode."""
    if state.inference:
        made.inference = True
        made.key_set &= ~AUTOGRAD_BITS
    return made
