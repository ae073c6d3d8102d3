"""`tensor`, `as_tensor` and their relatives: tensors from Python data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rushlight.core.device import as_device, device
from rushlight.core.dtype import dtype, float64, from_numpy_dtype, get_default_dtype
from rushlight.core.tensor import Tensor, from_numpy, tensor_from_array
from rushlight.ops.bindings import _PYTHON_TYPES
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


def _shape_of(data: object) -> tuple[int, ...]:
    shape = []
    while isinstance(data, list | tuple):
        shape.append(len(data))
        if not data:
            break
        data = data[0]
    if isinstance(data, Tensor | np.ndarray):
        shape += list(data.shape)
    return tuple(shape)


def _array_of(data: object) -> np.ndarray:
    """Nested sequences of numbers or tensors as an array; ValueError where they are ragged."""
    if isinstance(data, Tensor):
        return data.detach().numpy()
    if isinstance(data, np.ndarray | np.generic):
        return np.asarray(data)
    if isinstance(data, Sequence) and not isinstance(data, str):
        flattened = [_array_of(item) if isinstance(item, Tensor | np.ndarray) else item for item in data]
        try:
            return np.array(flattened)
        except ValueError:
            raise ValueError(
                f"expected sequences of equal length in every dimension, got ragged nesting (first shape {_shape_of(data)})"
            ) from None
    if isinstance(data, bool | int | float | complex):
        return np.array(data)
    raise TypeError(f"new(): invalid data type '{type(data).__name__}'; expected a number, a sequence of numbers or an array")


def _inferred(array: np.ndarray, data: object) -> dtype:
    if isinstance(data, Tensor):
        return data.dtype
    if isinstance(data, np.ndarray | np.generic):
        return from_numpy_dtype(array.dtype)
    if array.dtype.kind == "f" and not _holds_arrays(data):
        return get_default_dtype()
    if array.dtype.kind == "c":
        return get_default_dtype().to_complex()
    if array.size == 0 and array.dtype == float64.numpy:
        return get_default_dtype()
    return from_numpy_dtype(array.dtype)


def _holds_arrays(data: object) -> bool:
    while isinstance(data, list | tuple) and data:
        data = data[0]
    return isinstance(data, Tensor | np.ndarray | np.generic)


def tensor(
    data: object,
    *,
    dtype: dtype | None = None,
    device: device | str | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A new tensor that copies `data`: a number, nested sequences, an array or a tensor.

    The dtype is that of the data (floats take the default dtype) unless given. ValueError for ragged sequences, TypeError
    for anything that is not a number.
    """
    array = _array_of(data)
    if array.dtype.kind in "OUS":
        raise TypeError(f"new(): invalid data type '{array.dtype}'; expected numbers")
    kind = _PYTHON_TYPES.get(dtype, dtype) or _inferred(array, data)
    made = tensor_from_array(np.array(array, kind.numpy, order="C"), kind)
    made = aten.lift_fresh.default(made)
    if device is not None and as_device(device) != made.device:
        made = made.to(device)
    return made.requires_grad_() if requires_grad else made


def as_tensor(data: object, dtype: dtype | None = None, device: device | str | None = None) -> Tensor:
    """`data` as a tensor, sharing memory with arrays and tensors where no conversion is needed."""
    if isinstance(data, Tensor):
        return data.to(dtype=dtype, device=device)
    if isinstance(data, np.ndarray) and data.flags.writeable:
        return from_numpy(data).to(dtype=dtype, device=device)
    return tensor(data, dtype=dtype, device=device)


asarray = as_tensor


def frombuffer(
    buffer: object, *, dtype: dtype, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """A 1-D tensor over the memory of an object with the buffer protocol."""
    made = tensor_from_array(np.frombuffer(buffer, dtype.numpy, count, offset), dtype)
    return made.requires_grad_(requires_grad)
