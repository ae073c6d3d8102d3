"""Checks that several operators' Meta rules share."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.core.dtype import dtype, int32, int64
from rushlight.core.strides import channels_last_strides, has_internal_overlap
from rushlight.core.tensor import Tensor


def not_implemented(name: str, kind: dtype) -> NotImplementedError:
    """What an operator raises for a dtype that it does not take."""
    return NotImplementedError(f"\"{name}\" not implemented for '{kind.scalar_name}'")


def require_floating(name: str, tensor: Tensor) -> None:
    """NotImplementedError unless the tensor's dtype is a (real) floating one."""
    if not tensor.dtype.is_floating_point:
        raise not_implemented(name, tensor.dtype)


def require_index(name: str, index: Tensor) -> None:
    """RuntimeError unless `index` is int32 or int64, or empty."""
    if index.dtype not in (int32, int64) and index.numel():
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index, but got {index.dtype}")


def require_same_dtype(name: str, expected: dtype, **others: Tensor | None) -> None:
    """RuntimeError unless every given tensor has the dtype `expected`."""
    for role, tensor in others.items():
        if tensor is not None and tensor.dtype is not expected:
            raise RuntimeError(f"{name}: expected {role} to have dtype {expected}, but got {tensor.dtype}")


def check_writable(self: Tensor, name: str) -> None:
    """RuntimeError when several indices of `self` name one element."""
    impl = self._impl
    if 0 in impl.strides and has_internal_overlap(impl.sizes, impl.strides):
        raise RuntimeError(
            f"unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            f"Please clone() the tensor before performing the operation. ({name})"
        )


def dims_of(value: int | Sequence[int], count: int, name: str, role: str) -> tuple[int, ...]:
    """One int per spatial dimension, from an int, a list of one, or a list of `count`; RuntimeError otherwise."""
    values = (value,) if isinstance(value, int) else tuple(int(item) for item in value)
    if len(values) == 1:
        return values * count
    if len(values) != count:
        raise RuntimeError(f"{name}: {role} must be a single int or a tuple of {count} ints, but got {list(values)}")
    return values


def is_channels_last(tensor: Tensor) -> bool:
    """Whether the strides of a 4- or 5-dimensional tensor put the channels innermost (ambiguous ones do not)."""
    sizes, strides = tensor._impl.sizes, tensor._impl.strides
    if len(sizes) not in (4, 5) or strides[1] == 0:
        return False
    least = 0
    for dim in (1, *range(len(sizes) - 1, 1, -1), 0):
        if sizes[dim] == 0 or strides[dim] < least or (dim == 0 and least == strides[1]):
            return False
        least = strides[dim] * sizes[dim]
    return True


def kept_format_strides(sizes: tuple[int, ...], *tensors: Tensor) -> tuple[int, ...] | None:
    """Channels-last strides when one of `tensors` is channels-last, else None for row-major."""
    return channels_last_strides(sizes) if any(is_channels_last(tensor) for tensor in tensors) else None
