"""`tensor`, `as_tensor` and their relatives: tensors from Python data."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from rushlight.core.device import device, present_device
from rushlight.core.dtype import (
    QUANTIZED,
    bool_,
    complex128,
    dtype,
    float64,
    from_numpy_dtype,
    get_default_dtype,
    int64,
    of_number,
    promote_types,
)
from rushlight.core.tensor import Tensor, from_numpy, tensor_from_array, wrap
from rushlight.core.tensor_impl import empty_impl
from rushlight.core.thread_state import state
from rushlight.ops.cpu.common import convert
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")
NO_PINNED_MEMORY = (
    "pin_memory=True requires a CUDA or other accelerator backend; no pinned memory allocator is available on this system."
)
# Python's number types, given as a dtype.
PYTHON_TYPES = {float: float64, int: int64, bool: bool_, complex: complex128}


def _array_of(data: object) -> np.ndarray:
    """Nested sequences of numbers or tensors as an array; ValueError where they are ragged."""
    if isinstance(data, Tensor):
        return data.detach().numpy()
    if isinstance(data, np.ndarray | np.generic):
        return np.asarray(data)
    if isinstance(data, Sequence) and not isinstance(data, str):
        _check_lengths(data)
        return np.array(_plain(data))
    if isinstance(data, bool | int | float | complex):
        return np.array(data)
    if hasattr(data, "__array__"):
        return np.asarray(data)
    raise TypeError(f"new(): invalid data type '{type(data).__name__}'; expected a number, a sequence of numbers or an array")


def _plain(data: object) -> object:
    """`data` with the tensors in nested sequences as arrays."""
    if isinstance(data, Tensor):
        return data.detach().numpy()
    return [_plain(item) for item in data] if isinstance(data, list | tuple) else data


def _check_lengths(data: Sequence) -> None:
    level: list = [data]
    dim = 0
    while level and all(isinstance(item, list | tuple) for item in level):
        lengths = {len(item) for item in level}
        if len(lengths) > 1:
            expected = len(level[0])
            found = next(len(item) for item in level if len(item) != expected)
            raise ValueError(f"expected sequence of length {expected} at dim {dim} (got {found})")
        level = [part for item in level for part in item]
        dim += 1
    if any(isinstance(item, list | tuple) for item in level):
        raise ValueError(f"expected numbers or sequences at dim {dim}, got both")


def _inferred(array: np.ndarray, data: object) -> dtype:
    if isinstance(data, Tensor):
        return data.dtype
    if isinstance(data, np.ndarray | np.generic):
        return from_numpy_dtype(array.dtype)
    kinds = _kinds_of_elements(data)
    if kinds:
        return reduce(promote_types, kinds)
    if array.dtype.kind == "f":
        return get_default_dtype()
    if array.dtype.kind == "c":
        return get_default_dtype().to_complex()
    return from_numpy_dtype(array.dtype)


def _kinds_of_elements(data: object) -> list[dtype]:
    """The dtypes of what is in nested sequences, when tensors, arrays or NumPy numbers are among it."""
    while isinstance(data, list | tuple) and data and isinstance(data[0], list | tuple):
        data = [item for part in data for item in part]
    if not isinstance(data, list | tuple) or not any(isinstance(v, Tensor | np.ndarray | np.generic) for v in data):
        return []
    return [_kind_of(value) for value in data]


def _kind_of(value: object) -> dtype:
    if isinstance(value, Tensor):
        return value.dtype
    if isinstance(value, np.ndarray | np.generic):
        return from_numpy_dtype(value.dtype)
    return of_number(value)


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
    if pin_memory:
        raise RuntimeError(NO_PINNED_MEMORY)
    array = _array_of(data)
    if array.dtype.kind == "O" and all(isinstance(value, int) for value in array.flat):
        raise OverflowError("int too big to convert")
    if array.dtype.kind in "OUS":
        raise TypeError(f"new(): invalid data type '{array.dtype}'; expected numbers")
    kind = PYTHON_TYPES.get(dtype, dtype) if dtype is not None else _inferred(array, data)
    if kind.category == QUANTIZED:
        raise RuntimeError(f"a tensor of dtype {kind} is made of a float32 tensor, by quantize_per_tensor or _per_channel")
    if kind.is_integral and not isinstance(data, Tensor | np.ndarray | np.generic):
        _check_range(array, kind)
    made = wrap(empty_impl(array.shape, kind))
    made._impl.array[...] = convert(array, kind.numpy)
    made = aten.lift_fresh.default(made)
    device = state.default_device if device is None else device
    if device is not None and present_device(device).type != "cpu":
        made = aten.to.dtype_layout(made, device=device)
    return made.requires_grad_() if requires_grad else made


def _check_range(array: np.ndarray, kind: dtype) -> None:
    """RuntimeError for integers that the dtype does not hold; unsigned ones take negative numbers of their magnitude, too."""
    if array.dtype.kind not in "iu" or not array.size or kind.numpy.kind == "b" or array.dtype == kind.numpy:
        return
    limits = np.iinfo(kind.numpy)
    lowest = -limits.max if kind.numpy.kind == "u" else limits.min
    if int(array.max()) > limits.max or int(array.min()) < lowest:
        raise RuntimeError(f"value cannot be converted to type {kind.name} without overflow")


def as_tensor(data: object, dtype: dtype | None = None, device: device | str | None = None) -> Tensor:
    """`data` as a tensor, sharing memory with arrays and tensors where no conversion is needed."""
    device = state.default_device if device is None else device
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
