"""`tensor`, `as_tensor` and their relatives: tensors from Python data."""

from __future__ import annotations

import math
import warnings
from array import array as python_array
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from rushlight.core import function_modes
from rushlight.core.device import device, gpus, present_device
from rushlight.core.dispatch_key import DispatchKey, bit
from rushlight.core.dlpack import from_dlpack
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
from rushlight.core.lazy_module import LazyModule
from rushlight.core.overrides import ask, asks_modes
from rushlight.core.storage import UntypedStorage
from rushlight.core.symbolic import SymFloat, SymInt
from rushlight.core.tensor import Tensor, from_numpy, tensor_from_array, tensor_from_storage, wrap
from rushlight.core.tensor_impl import empty_impl
from rushlight.core.thread_state import state
from rushlight.core.typed_storage import TypedStorage
from rushlight.ops.cpu.common import convert
from rushlight.ops.packet import namespaces

interchange = LazyModule("rushlight.cuda.interchange")
aten = namespaces.namespace("aten")
NO_PINNED_MEMORY = (
    "pin_memory=True requires a CUDA or other accelerator backend; no pinned memory allocator is available on this system."
)
_NOT_WRITABLE = (
    "The given buffer is not writable, and tensors are: writing to this tensor changes memory that is meant to stay. Copy the "
    "buffer first, or make it writable."
)
MAX_DIMENSIONS = 64
_TRACER = bit(DispatchKey.Tracer)
# Python's number types, given as a dtype.
PYTHON_TYPES = {float: float64, int: int64, bool: bool_, complex: complex128}


def _array_of(data: object) -> np.ndarray:
    """Return nested sequences of numbers or tensors as an array; ValueError if they are ragged."""
    if isinstance(data, Tensor):
        return data.numpy(force=True)
    if isinstance(data, TypedStorage | UntypedStorage):
        return np.asarray(data.tolist())
    if isinstance(data, np.ndarray | np.generic):
        return np.asarray(data)
    if isinstance(data, Sequence) and not isinstance(data, str):
        _check_lengths(data)
        return np.array(_plain(data))
    if isinstance(data, bool | int | float | complex):
        return np.array(data)
    if hasattr(data, "__array__"):
        return np.asarray(data)
    if hasattr(data, "__len__") and hasattr(data, "__getitem__") and not isinstance(data, str | dict):
        return _array_of(_items(data))
    raise TypeError(f"new(): invalid data type '{type(data).__name__}'; expected a number, a sequence of numbers or an array")


def _items(data: Any) -> list:
    """Return the items of an object with sequence methods; ValueError where they can't be read."""
    try:
        return [data[index] for index in range(len(data))]
    except (TypeError, IndexError, KeyError):
        raise ValueError(f"could not determine the shape of object type '{type(data).__name__}'") from None


def _plain(data: object) -> object:
    """Return `data` with tensors inside nested sequences converted to arrays."""
    if isinstance(data, Tensor):
        return data.numpy(force=True)
    return [_plain(item) for item in data] if isinstance(data, list | tuple) else data


def _check_lengths(data: Sequence) -> None:
    level: list = [data]
    outer: set[int] = set()
    dim = 0
    while level and all(isinstance(item, list | tuple) for item in level):
        if dim > MAX_DIMENSIONS:
            raise ValueError(f"too many dimensions '{type(level[0]).__name__}'")
        lengths = {len(item) for item in level}
        if len(lengths) > 1:
            expected = len(level[0])
            found = next(len(item) for item in level if len(item) != expected)
            raise ValueError(f"expected sequence of length {expected} at dim {dim} (got {found})")
        outer.update(map(id, level))
        level = [part for item in level for part in item]
        dim += 1
    if any(id(item) in outer for item in level if isinstance(item, list)):
        raise TypeError("new(): self-referential lists are incompatible with tensors")
    if any(isinstance(item, list | tuple) for item in level):
        raise ValueError(f"expected numbers or sequences at dim {dim}, got both")


def _infer_dtype(array: np.ndarray, data: object) -> dtype:
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
    """Return the dtypes of the tensors, arrays and NumPy numbers in nested sequences, if there are any."""
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


def requiring_gradient(made: Tensor) -> Tensor:
    """Return a new tensor that requires grad; RuntimeError for a dtype that cannot."""
    if not (made.dtype.is_floating_point or made.dtype.is_complex):
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    return made.requires_grad_()


def _non_defaults(**arguments: object) -> dict[str, object]:
    """Return the arguments that differ from their defaults."""
    return {name: value for name, value in arguments.items() if value is not None and value is not False}


def tensor(
    data: object,
    *,
    dtype: dtype | None = None,
    device: device | str | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return a new tensor that copies `data`: a number, nested sequences, an array or a tensor.

    The dtype is that of the data (floats take the default dtype) unless given. ValueError for ragged sequences, TypeError
    for anything that is not a number.
    """
    if function_modes.entered and asks_modes():
        named = _non_defaults(dtype=dtype, device=device, requires_grad=requires_grad, pin_memory=pin_memory)
        return ask(tensor, (data,), named)
    if pin_memory and not gpus.count():
        raise RuntimeError(NO_PINNED_MEMORY)
    if state.include & _TRACER and (isinstance(data, Tensor) or (isinstance(data, int) and hasattr(data, "as_tensor"))):
        return _copy_recorded(data if isinstance(data, Tensor) else data.as_tensor(), dtype, device, requires_grad)
    if isinstance(data, TypedStorage | UntypedStorage):
        data = tensor_of_storage(data, PYTHON_TYPES.get(dtype, dtype))
    array = _array_of(data)
    if array.dtype.kind == "O" and any(_is_open(value) for value in array.flat):
        return _of_open_numbers(array, PYTHON_TYPES.get(dtype, dtype), device, requires_grad)
    if array.dtype.kind == "O" and all(isinstance(value, int | float) for value in array.flat):
        array = _within_64_bits(array, PYTHON_TYPES.get(dtype, dtype))
    if array.dtype.kind in "OUS":
        raise TypeError(f"new(): invalid data type '{array.dtype}'; expected numbers")
    kind = PYTHON_TYPES.get(dtype, dtype) if dtype is not None else _infer_dtype(array, data)
    if kind.category == QUANTIZED:
        raise RuntimeError(f"a tensor of dtype {kind} is made of a float32 tensor, by quantize_per_tensor or _per_channel")
    if kind.is_integral and not isinstance(data, Tensor | np.ndarray | np.generic):
        _check_range(array, kind)
    made = wrap(empty_impl(array.shape, kind))
    made._impl.array[...] = convert(array, kind.numpy)
    made = aten.lift_fresh.default(made)
    device = state.default_device if device is None else device
    if device is None and isinstance(data, Tensor):
        device = data._impl.device
    if device is not None and present_device(device).type != "cpu":
        made = aten.to.dtype_layout(made, device=device)
    elif pin_memory:
        made = made.pin_memory()
    return requiring_gradient(made) if requires_grad else made


def _is_open(value: object) -> bool:
    """Whether a number is a size that a capture leaves open, or that a trace records, or follows from such sizes."""
    return type(value) in (SymInt, SymFloat) or (isinstance(value, int) and hasattr(value, "as_tensor"))


def _of_open_numbers(array: np.ndarray, kind: dtype | None, device: device | str | None, requires_grad: bool) -> Tensor:
    """Return a tensor of numbers with open sizes among them, made by operators, so that captures and traces record it."""
    if kind is None:
        kind = reduce(promote_types, [of_number(value) for value in array.flat])
    made = [_of_open_number(value, kind, device) for value in array.flat]
    result = made[0] if not array.ndim else aten.reshape(aten.stack(made), array.shape)
    return requiring_gradient(result) if requires_grad else result


def _of_open_number(value: object, kind: dtype, device: device | str | None) -> Tensor:
    if _is_open(value) and type(value) not in (SymInt, SymFloat):
        return _copy_recorded(value.as_tensor(), kind, device, False)
    return aten.scalar_tensor(value, dtype=kind, device=device)


def _within_64_bits(array: np.ndarray, kind: dtype | None) -> np.ndarray:
    """Convert integers that no NumPy dtype holds to the wanted dtype; OverflowError where it can't hold them."""
    if kind is bool_:
        return array.astype(bool)
    has_floats = kind is None and any(isinstance(value, float) for value in array.flat)
    if not has_floats and (kind is None or not (kind.is_floating_point or kind.is_complex)):
        raise OverflowError("int too big to convert")
    return array.astype(np.float64)


def _copy_recorded(data: Tensor, kind: dtype | None, device: device | str | None, requires_grad: bool) -> Tensor:
    """Return a copy of a tensor through operators, so that traces record it."""
    kind = PYTHON_TYPES.get(kind, kind) if kind is not None else data.dtype
    copied = aten.to.dtype_layout(aten.detach(data), dtype=kind, device=device or data.device, copy=True)
    made = aten.detach(copied)
    return requiring_gradient(made) if requires_grad else made


def _check_range(array: np.ndarray, kind: dtype) -> None:
    """Raise RuntimeError for numbers out of the dtype's range; unsigned dtypes also accept negative integers of the same
    magnitude."""
    if array.dtype.kind not in "iuf" or not array.size or kind.numpy.kind == "b" or array.dtype == kind.numpy:
        return
    limits = np.iinfo(kind.numpy)
    lowest = limits.min if kind.is_signed or array.dtype.kind == "f" else -limits.max
    highest_found, lowest_found = array.max(), array.min()
    known = array.dtype.kind != "f" or bool(np.isfinite(highest_found) and np.isfinite(lowest_found))
    if not known or int(highest_found) > limits.max or math.floor(lowest_found) < lowest:
        raise RuntimeError(f"value cannot be converted to type {kind.name} without overflow")


def as_tensor(data: object, dtype: dtype | None = None, device: device | str | None = None) -> Tensor:
    """Return `data` as a tensor, sharing memory with arrays and tensors where no conversion is needed."""
    if function_modes.entered and asks_modes():
        return ask(as_tensor, (data,), _non_defaults(dtype=dtype, device=device))
    device = state.default_device if device is None else device
    if isinstance(data, Tensor):
        return data.to(dtype=dtype, device=device)
    if isinstance(data, np.ndarray) and data.flags.writeable:
        return from_numpy(data).to(dtype=dtype, device=device)
    if hasattr(data, "__cuda_array_interface__") and gpus.count():
        return interchange.from_array_interface(data).to(dtype=dtype, device=device)
    return tensor(data, dtype=dtype, device=device)


def asarray(
    obj: object,
    *,
    dtype: dtype | None = None,
    device: device | str | None = None,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return `obj` as a tensor: one that shares memory with tensors, arrays, buffers and storages, where that needs no
    conversion.

    `copy=True` forces new memory, `copy=False` forces sharing: ValueError where it cannot be shared.
    """
    if function_modes.entered and asks_modes():
        named = _non_defaults(dtype=dtype, device=device, requires_grad=requires_grad)
        if copy is not None:
            named["copy"] = copy
        return ask(asarray, (obj,), named)
    device = state.default_device if device is None else device
    source = _alias(obj, dtype)
    if source is None:
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        return tensor(obj, dtype=dtype, device=device, requires_grad=requires_grad)
    kind = PYTHON_TYPES.get(dtype, dtype) or source.dtype
    if copy is False and kind is not source.dtype:
        raise ValueError(f"can't alias tensor with dtype '{source.dtype.scalar_name}' into dtype '{kind.scalar_name}'.")
    made = aten.to.dtype_layout(source, dtype=kind, device=device, copy=bool(copy))
    if requires_grad and not made.requires_grad:
        return requiring_gradient(made.detach())
    return made if requires_grad or not made.requires_grad else made.detach()


def _alias(obj: object, kind: dtype | None) -> Tensor | None:
    """Return a tensor over the memory of `obj`; None where there is none to share."""
    if isinstance(obj, Tensor):
        return obj
    if isinstance(obj, np.ndarray):
        return from_numpy(obj)
    if isinstance(obj, TypedStorage | UntypedStorage):
        return tensor_of_storage(obj, kind)
    if hasattr(obj, "__dlpack__"):
        return from_dlpack(obj)
    if hasattr(obj, "__cuda_array_interface__") and gpus.count():
        return interchange.from_array_interface(obj)
    if isinstance(obj, bytearray | memoryview | bytes | python_array):
        return frombuffer(obj, dtype=kind or get_default_dtype())
    if type(obj).__name__ == "PyCapsule":
        return from_dlpack(obj)
    return None


def tensor_of_storage(storage: TypedStorage | UntypedStorage, kind: dtype | None = None) -> Tensor:
    """Return a 1-D tensor of `kind`, by default the default dtype, over a storage; RuntimeError for a typed one of another
    dtype."""
    own = kind or get_default_dtype()
    if isinstance(storage, TypedStorage) and storage.dtype is not own:
        raise RuntimeError(
            f"Expected a Storage of type {own.scalar_name} or an UntypedStorage, but got {storage.dtype.scalar_name}"
        )
    return tensor_from_storage(storage.untyped(), own, (storage.nbytes() // own.itemsize,), (1,))


def frombuffer(
    buffer: object, *, dtype: dtype, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """Return a 1-D tensor over the memory of an object with the buffer protocol: `count` elements from byte `offset` on, or
    all.

    ValueError for an object without the protocol and where the elements are not within its memory; a warning for memory that
    must not be written to.
    """
    if function_modes.entered and asks_modes():
        named = {"dtype": dtype, "count": count, "offset": offset, "requires_grad": requires_grad}
        return ask(frombuffer, (buffer,), named)
    try:
        length, is_writable = memoryview(buffer).nbytes, not memoryview(buffer).readonly
    except TypeError:
        raise ValueError(f"object does not implement Python buffer protocol. It is a {type(buffer).__name__}") from None
    _check_extent(length, dtype.itemsize, count, offset)
    if not is_writable:
        warnings.warn(_NOT_WRITABLE, UserWarning, stacklevel=2)
    made = tensor_from_array(np.frombuffer(buffer, dtype.numpy, count, offset), dtype)
    return requiring_gradient(made) if requires_grad else made


def _check_extent(length: int, itemsize: int, count: int, offset: int) -> None:
    """Raise ValueError unless `count` elements from byte `offset` on, or all that follow, lie within a buffer."""
    if length == 0 or count == 0:
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if not 0 <= offset < length:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({length} bytes) minus 1"
        )
    rest = length - offset
    if count < 0 and rest % itemsize:
        raise ValueError(
            f"buffer length ({rest} bytes) after offset ({offset} bytes) must be a multiple of element size ({itemsize})"
        )
    if count * itemsize > rest:
        raise ValueError(
            f"requested buffer length ({count} * {itemsize} bytes) after offset ({offset} bytes) must not be greater than "
            f"actual buffer length ({length} bytes)"
        )
