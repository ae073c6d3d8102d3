"""Checks that several operators' Meta rules share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rushlight.core.dtype import dtype, int32, int64
from rushlight.core.size import whole_number
from rushlight.core.strides import channels_last_strides, has_internal_overlap, is_non_overlapping_and_dense
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import TensorImpl


def not_implemented(name: str, kind: dtype) -> NotImplementedError:
    """Return the error of an operator for an unsupported dtype."""
    return NotImplementedError(f"\"{name}\" not implemented for '{kind.scalar_name}'")


def require_floating(name: str, tensor: Tensor) -> None:
    """Raise NotImplementedError unless the tensor's dtype is a (real) floating one."""
    if not tensor.dtype.is_floating_point:
        raise not_implemented(name, tensor.dtype)


def require_index(name: str, index: Tensor) -> None:
    """Raise RuntimeError unless `index` is int32 or int64, or empty."""
    if index.dtype not in (int32, int64) and index.numel():
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index, but got {index.dtype}")


def require_same_dtype(name: str, expected: dtype, **others: Tensor | None) -> None:
    """Raise RuntimeError unless every given tensor has the dtype `expected`."""
    for role, tensor in others.items():
        if tensor is not None and tensor.dtype is not expected:
            raise RuntimeError(
                f"{name}: expected scalar type {expected.scalar_name} but found {tensor.dtype.scalar_name} for {role}"
            )


def check_writable(self: Tensor, name: str) -> None:
    """Raise RuntimeError if several indices of `self` refer to one element."""
    impl = self._impl
    if 0 in impl.strides and has_internal_overlap(impl.sizes, impl.strides):
        raise RuntimeError(
            f"unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            f"Please clone() the tensor before performing the operation. ({name})"
        )


def shared_memory(first: TensorImpl, second: TensorImpl) -> str:
    """Return how two tensors' memory overlaps: "" for no or unknown overlap, "fully" for the same elements in order, "partly"
    otherwise.

    Only dense tensors are compared; for others the overlap would take a search.
    """
    if first.storage is not second.storage or 0 in first.sizes or 0 in second.sizes:
        return ""
    for impl in (first, second):
        if not is_non_overlapping_and_dense(impl.sizes, impl.strides):
            return ""
    starts = [impl.storage_offset * impl.dtype.itemsize for impl in (first, second)]
    ends = [start + impl.numel * impl.dtype.itemsize for start, impl in zip(starts, (first, second), strict=True)]
    if starts[0] == starts[1] and ends[0] == ends[1]:
        return "fully" if first.strides == second.strides else "partly"
    return "partly" if starts[0] < ends[1] and starts[1] < ends[0] else ""


def check_operands(self: Tensor, name: str, operands: Iterable[object], reads_later: bool = False) -> None:
    """Raise RuntimeError if a tensor among `operands` overlaps `self`, to which operator `name` writes while it reads them.

    A full overlap is fine, unless the operator reads elements after it wrote others (`reads_later`).
    """
    impl = self._impl
    for operand in operands:
        if operand is self and not reads_later:
            continue
        if isinstance(operand, Tensor) and operand._impl.storage is impl.storage:
            shared = shared_memory(impl, operand._impl)
            if shared == "partly" or (shared and reads_later):
                raise RuntimeError(
                    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
                    f"memory location. Please clone() the tensor before performing the operation. ({name})"
                )


def dims_of(value: int | Sequence[int], count: int, name: str, role: str) -> tuple[int, ...]:
    """Return one int per spatial dimension, from an int, a list of one, or a list of `count`; RuntimeError otherwise."""
    values = (value,) if isinstance(value, int) else tuple(whole_number(item) for item in value)
    if len(values) == 1:
        return values * count
    if len(values) != count:
        raise RuntimeError(f"{name}: {role} must be a single int or a tuple of {count} ints, but got {list(values)}")
    return values


def is_channels_last(tensor: Tensor) -> bool:
    """Return whether a 4- or 5-dimensional tensor has channels-last strides; ambiguous strides do not count."""
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
    """Return channels-last strides if one of `tensors` is channels-last, else None for row-major."""
    return channels_last_strides(sizes) if any(is_channels_last(tensor) for tensor in tensors) else None
