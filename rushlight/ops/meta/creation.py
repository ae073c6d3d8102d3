"""Meta rules of creation, copies and in-place writes."""

from __future__ import annotations

import math

from rushlight.core.dtype import complex32, complex64, dtype, get_default_dtype, int64, of_number
from rushlight.core.layout import CHANNELS_LAST_RANKS, contiguous_format, memory_format
from rushlight.core.size import whole_number
from rushlight.core.strides import (
    broadcast_shapes,
    channels_last_strides,
    contiguous_strides,
    elementwise_strides,
    is_non_overlapping_and_dense,
)
from rushlight.ops.meta.checks import check_operands, check_writable
from rushlight.ops.meta.common import empty
from rushlight.ops.promotion import check_number
from rushlight.ops.registry import meta


def check_sizes(sizes) -> tuple[int, ...]:
    """Return the sizes as a tuple of ints; RuntimeError for negative ones."""
    sizes = tuple(whole_number(size) for size in sizes)
    if any(size < 0 for size in sizes):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(sizes)}: {list(sizes)}")
    return sizes


def format_strides(sizes: tuple, strides: tuple | None, wanted: memory_format | None) -> tuple[int, ...]:
    """Return strides of a copy: row-major, channels last, or (preserve) those of the source when it is dense."""
    if wanted in CHANNELS_LAST_RANKS:
        rank = CHANNELS_LAST_RANKS[wanted]
        if len(sizes) != rank:
            raise RuntimeError(f"required rank {rank} tensor to use {wanted.name} format, got rank {len(sizes)}")
        return channels_last_strides(sizes)
    if wanted is contiguous_format or strides is None:
        return contiguous_strides(sizes)
    if is_non_overlapping_and_dense(sizes, strides):
        return strides
    return elementwise_strides(sizes, [(sizes, strides)])


@meta("empty.memory_format")
def empty_kernel(size, *, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
    sizes = check_sizes(size)
    return empty(sizes, dtype or get_default_dtype(), format_strides(sizes, None, memory_format))


@meta("empty_strided")
def empty_strided(size, stride, *, dtype=None, layout=None, device=None, pin_memory=None):
    return empty(check_sizes(size), dtype or get_default_dtype(), tuple(stride))


@meta("full")
def full(size, fill_value, *, dtype=None, layout=None, device=None, pin_memory=None):
    kind = dtype or full_dtype(fill_value)
    check_number(fill_value, kind)
    return empty(check_sizes(size), kind)


def full_dtype(value: complex) -> dtype:
    """Return the dtype of `full` for a number; complex numbers are never halves."""
    kind = of_number(value)
    return complex64 if kind is complex32 else kind


def arange_length(start, end, step) -> int:
    """Return the length of `arange`; RuntimeError when `step` is 0 or leads away from `end`."""
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not all(isinstance(value, int) or math.isfinite(value) for value in (start, end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if all(isinstance(value, int) for value in (start, end, step)):
        return -((start - end) // step) if step > 0 else -((end - start) // -step)
    return math.ceil((end - start) / step)


def arange_dtype(values, given: dtype | None) -> dtype:
    """Return int64 for ints, the default dtype if a float is among them."""
    return given or (get_default_dtype() if any(isinstance(value, float) for value in values) else int64)


def arange_numbers(values, kind: dtype) -> list:
    """Return start, end and step as `arange` uses them: truncated to integers for int64."""
    return [int(value) if kind is int64 and isinstance(value, float) and math.isfinite(value) else value for value in values]


@meta("arange.start_step")
def arange(start, end, step=1, *, dtype=None, layout=None, device=None, pin_memory=None):
    kind = arange_dtype((start, end, step), dtype)
    return empty((arange_length(*arange_numbers((start, end, step), kind)),), kind)


@meta("randperm")
def randperm(n, *, dtype=None, layout=None, device=None, pin_memory=None, generator=None):
    return empty((n,), dtype or int64)


@meta("clone")
def clone(self, *, memory_format=None):
    impl = self._impl
    return empty(impl.sizes, impl.dtype, format_strides(impl.sizes, impl.strides, memory_format))


@meta("_to_copy")
def to_copy(self, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, memory_format=None):
    impl = self._impl
    if device is not None and str(device) == "cpu" and impl.device.type == "meta" and not impl.fake:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    return empty(impl.sizes, dtype or impl.dtype, format_strides(impl.sizes, impl.strides, memory_format))


@meta("copy_")
def copy_(self, src, non_blocking=False):
    if src._impl.device.type == "meta" and self._impl.device.type == "cpu" and not self._impl.fake:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    check_writable(self, "copy_")
    check_operands(self, "copy_", (src,))
    if broadcast_shapes(self._impl.sizes, src._impl.sizes) != self._impl.sizes:
        raise RuntimeError(
            f"output with shape {list(self.shape)} doesn't match the broadcast shape "
            f"{list(broadcast_shapes(self._impl.sizes, src._impl.sizes))}"
        )
    return self


@meta("fill_.Scalar")
def fill_(self, value):
    check_number(value, self.dtype)
    return self


@meta("random_.from", "bernoulli_.float")
def overwrite(self, *args, **kwargs):
    return self


@meta("_local_scalar_dense")
def local_scalar_dense(self):
    if not self._impl.fake:
        raise RuntimeError("Tensor.item() cannot be called on meta tensors")
    raise RuntimeError(
        "Tensor.item() cannot be called on fake tensors: the value is not known. Under compile, a value that steers Python "
        "code cannot be captured."
    )


@meta("equal")
def equal(self, other):
    return local_scalar_dense(self)

