"""CPU kernels that make tensors, copy them, convert them and fill them."""

from __future__ import annotations

import math

import numpy as np

from rushlight.core.determinism import DETERMINISM
from rushlight.core.device import META, as_device
from rushlight.core.dtype import NARROW_TYPES, complex32, get_default_dtype
from rushlight.core.storage import allocate
from rushlight.core.strides import broadcast_shapes, storage_extent
from rushlight.core.tensor import Tensor, tensor_from_storage, wrap
from rushlight.core.tensor_impl import TensorImpl, empty_impl
from rushlight.ops.cpu import native
from rushlight.ops.cpu.common import convert, empty, fill_if_deterministic, number
from rushlight.ops.meta.checks import check_operands, check_writable
from rushlight.ops.meta.creation import (
    arange_dtype,
    arange_length,
    arange_numbers,
    check_sizes,
    format_strides,
    full_dtype,
)
from rushlight.ops.promotion import check_number, result_type
from rushlight.ops.registry import aten, cpu


@cpu("empty.memory_format")
def empty_kernel(size, *, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
    sizes = check_sizes(size)
    made = empty(sizes, dtype or get_default_dtype(), format_strides(sizes, None, memory_format))
    return fill_if_deterministic(made) if DETERMINISM.asked else made


@cpu("empty_strided")
def empty_strided(size, stride, *, dtype=None, layout=None, device=None, pin_memory=None):
    sizes, strides, kind = check_sizes(size), tuple(stride), dtype or get_default_dtype()
    extent = storage_extent(sizes, strides, 0) if math.prod(sizes) else 0
    made = tensor_from_storage(allocate(extent * kind.itemsize), kind, sizes, strides)
    return fill_if_deterministic(made) if DETERMINISM.asked else made


@cpu("full")
def full(size, fill_value, *, dtype=None, layout=None, device=None, pin_memory=None):
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()
    kind = dtype or full_dtype(fill_value)
    check_number(fill_value, kind)
    made = empty(check_sizes(size), kind)
    # 0 and 1 need no conversion for any dtype.
    plain = type(fill_value) is int and 0 <= fill_value <= 1 and kind not in NARROW_TYPES
    made._impl.array.fill(fill_value if plain else number(fill_value, kind.numpy))
    return made


@cpu("arange.start_step")
def arange(start, end, step=1, *, dtype=None, layout=None, device=None, pin_memory=None):
    start, end, step = (value.item() if isinstance(value, Tensor) else value for value in (start, end, step))
    kind = arange_dtype((start, end, step), dtype)
    start, end, step = arange_numbers((start, end, step), kind)
    count = arange_length(start, end, step)
    exact = np.float64 if kind.is_floating_point else np.int64
    made = empty((count,), kind)
    made._impl.array[...] = exact(start) + np.arange(count, dtype=exact) * exact(step)
    return made


@cpu("clone")
def clone(self, *, memory_format=None):
    impl = self._impl
    made = wrap(empty_impl(impl.sizes, impl.dtype, format_strides(impl.sizes, impl.strides, memory_format)))
    native.assign(made._impl.array, impl.array)
    return made


@cpu("_to_copy")
def to_copy(self, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, memory_format=None):
    impl = self._impl
    kind = dtype or impl.dtype
    strides = format_strides(impl.sizes, impl.strides, memory_format)
    if as_device(device) == META and device is not None:
        return aten("empty_strided")(impl.sizes, strides, dtype=kind, device=META)
    made = empty(impl.sizes, kind, strides)
    _store(made._impl, impl)
    return made


@cpu("copy_")
def copy_(self, src, non_blocking=False):
    target, source = self._impl, src._impl
    check_writable(self, "copy_")
    check_operands(self, "copy_", (src,))
    if broadcast_shapes(target.sizes, source.sizes) != target.sizes:
        raise RuntimeError(
            f"output with shape {list(target.sizes)} doesn't match the broadcast shape "
            f"{list(broadcast_shapes(target.sizes, source.sizes))}"
        )
    _store(target, source)
    return self


def _store(target: TensorImpl, source: TensorImpl) -> None:
    """Write the elements of `source` to `target`, converted to its dtype."""
    if native.kernels is None or not native.kernels.copy(target.array, source.array):
        same = source.dtype is target.dtype
        target.array[...] = source.array if same else convert(source.array, target.dtype.numpy)


@cpu("fill_.Scalar")
def fill_(self, value):
    impl = self._impl
    if isinstance(value, Tensor):
        value = value.item()
    check_number(value, impl.dtype)
    impl.array[...] = number(value, impl.dtype.numpy)
    return self


@cpu("_local_scalar_dense")
def local_scalar_dense(self):
    impl = self._impl
    if impl.numel != 1:
        raise RuntimeError(f"a Tensor with {impl.numel} elements cannot be converted to Scalar")
    value = impl.array.reshape(())
    if impl.dtype is complex32:
        return complex(convert(value, np.dtype(np.complex64)))
    return float(value) if impl.dtype.is_floating_point else value.tolist()


@cpu("equal")
def equal(self, other):
    kind = result_type(self, other)
    arrays = (value._impl.array for value in (self, other))
    return bool(np.array_equal(*(array if array.dtype == kind.numpy else convert(array, kind.numpy) for array in arrays)))
