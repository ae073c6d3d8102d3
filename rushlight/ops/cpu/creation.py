"""CPU kernels that make tensors, copy them, convert them and fill them."""

from __future__ import annotations

import math

import numpy as np

from rushlight.core.device import META, as_device
from rushlight.core.dtype import dtype, get_default_dtype, int64, of_number
from rushlight.core.layout import channels_last, contiguous_format, memory_format
from rushlight.core.strides import (
    broadcast_shapes,
    channels_last_strides,
    contiguous_strides,
    elementwise_strides,
    has_internal_overlap,
    is_non_overlapping_and_dense,
    storage_extent,
)
from rushlight.core.tensor import Tensor, tensor_from_storage, wrap
from rushlight.core.tensor_impl import empty_impl
from rushlight.core.storage import allocate
from rushlight.ops.cpu.common import convert, empty, make, number
from rushlight.ops.registry import aten, cpu


def check_sizes(sizes) -> tuple[int, ...]:
    """The sizes as a tuple of ints; RuntimeError for negative ones."""
    sizes = tuple(int(size) for size in sizes)
    if any(size < 0 for size in sizes):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(sizes)}: {list(sizes)}")
    return sizes


def format_strides(sizes: tuple, strides: tuple | None, wanted: memory_format | None) -> tuple[int, ...]:
    """Strides of a copy: row-major, channels last, or (preserve) those of the source when it is dense."""
    if wanted is channels_last:
        if len(sizes) != 4:
            raise RuntimeError(f"required rank 4 tensor to use channels_last format, got rank {len(sizes)}")
        return channels_last_strides(sizes)
    if wanted is contiguous_format or strides is None:
        return contiguous_strides(sizes)
    if is_non_overlapping_and_dense(sizes, strides):
        return strides
    return elementwise_strides(sizes, [(sizes, strides)])


@cpu("empty.memory_format")
def empty_kernel(size, *, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
    sizes = check_sizes(size)
    return empty(sizes, dtype or get_default_dtype(), format_strides(sizes, None, memory_format))


@cpu("empty_strided")
def empty_strided(size, stride, *, dtype=None, layout=None, device=None, pin_memory=None):
    sizes, strides, kind = check_sizes(size), tuple(stride), dtype or get_default_dtype()
    extent = storage_extent(sizes, strides, 0) if math.prod(sizes) else 0
    return tensor_from_storage(allocate(extent * kind.itemsize), kind, sizes, strides)


@cpu("full")
def full(size, fill_value, *, dtype=None, layout=None, device=None, pin_memory=None):
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()
    kind = dtype or of_number(fill_value)
    made = empty(check_sizes(size), kind)
    made._impl.array.fill(number(fill_value, kind.numpy))
    return made


def arange_length(start, end, step) -> int:
    """How many values `arange` gives; RuntimeError when `step` leads away from `end` or is 0."""
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not all(math.isfinite(value) for value in (start, end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    return math.ceil((end - start) / step)


def arange_dtype(values, given: dtype | None) -> dtype:
    """int64 for ints, the default dtype when a float is among them."""
    return given or (get_default_dtype() if any(isinstance(value, float) for value in values) else int64)


@cpu("arange.start_step")
def arange(start, end, step=1, *, dtype=None, layout=None, device=None, pin_memory=None):
    start, end, step = (value.item() if isinstance(value, Tensor) else value for value in (start, end, step))
    kind = arange_dtype((start, end, step), dtype)
    count = arange_length(start, end, step)
    exact = np.float64 if kind.is_floating_point else np.int64
    return make(exact(start) + np.arange(count, dtype=exact) * exact(step), kind)


@cpu("clone")
def clone(self, *, memory_format=None):
    impl = self._impl
    made = wrap(empty_impl(impl.sizes, impl.dtype, format_strides(impl.sizes, impl.strides, memory_format)))
    made._impl.array[...] = impl.array
    return made


@cpu("_to_copy")
def to_copy(self, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, memory_format=None):
    impl = self._impl
    kind = dtype or impl.dtype
    strides = format_strides(impl.sizes, impl.strides, memory_format)
    if as_device(device) == META and device is not None:
        return aten("empty_strided")(impl.sizes, strides, dtype=kind, device=META)
    made = empty(impl.sizes, kind, strides)
    made._impl.array[...] = impl.array if kind is impl.dtype else convert(impl.array, kind.numpy)
    return made


def check_writable(self: Tensor, name: str) -> None:
    """RuntimeError when several indices of `self` name one element."""
    impl = self._impl
    if has_internal_overlap(impl.sizes, impl.strides):
        raise RuntimeError(
            f"unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            f"Please clone() the tensor before performing the operation. ({name})"
        )


@cpu("copy_")
def copy_(self, src, non_blocking=False):
    target, source = self._impl, src._impl
    check_writable(self, "copy_")
    if broadcast_shapes(target.sizes, source.sizes) != target.sizes:
        raise RuntimeError(
            f"output with shape {list(target.sizes)} doesn't match the broadcast shape "
            f"{list(broadcast_shapes(target.sizes, source.sizes))}"
        )
    same = source.dtype is target.dtype
    target.array[...] = source.array if same else convert(source.array, target.dtype.numpy)
    return self


@cpu("fill_.Scalar")
def fill_(self, value):
    check_writable(self, "fill_")
    impl = self._impl
    if isinstance(value, Tensor):
        value = value.item()
    if isinstance(value, complex) and not impl.dtype.is_complex:
        raise RuntimeError(f"value cannot be converted to type {impl.dtype.name} without overflow")
    impl.array[...] = number(value, impl.dtype.numpy)
    return self


@cpu("_local_scalar_dense")
def local_scalar_dense(self):
    impl = self._impl
    if impl.numel != 1:
        raise RuntimeError(f"a Tensor with {impl.numel} elements cannot be converted to Scalar")
    return impl.array.reshape(()).tolist() if impl.dtype.name != "bfloat16" else float(impl.array.reshape(()))


@cpu("equal")
def equal(self, other):
    if self.dtype is not other.dtype:
        raise RuntimeError(f"Expected object of data type {self.dtype} but got data type {other.dtype} for argument 'other'")
    return bool(np.array_equal(self._impl.array, other._impl.array))
