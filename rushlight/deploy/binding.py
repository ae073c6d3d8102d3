"""Call an exported model from Python with NumPy arrays, through its C interface. Needs only NumPy.

This file is copied into the wheels that `wheel.py` writes, so it imports nothing of the project.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

_RANK = 8
_DTYPES = [
    None, "float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64",
    "complex128",
]  # fmt: skip
_NONE, _BOOL, _INT, _FLOAT, _STRING, _TENSOR, _LIST, _TUPLE, _DICT = range(9)


class ModelError(RuntimeError):
    """The model's error message for a failed call."""


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_int32), ("sizes", ctypes.c_int64 * _RANK),
        ("strides", ctypes.c_int64 * _RANK),
    ]  # fmt: skip


class _String(ctypes.Structure):
    _fields_ = [("text", ctypes.POINTER(ctypes.c_char)), ("size", ctypes.c_size_t)]


class _List(ctypes.Structure):
    _fields_ = [("items", ctypes.c_void_p), ("count", ctypes.c_size_t)]


class _As(ctypes.Union):
    _fields_ = [
        ("integer", ctypes.c_int64), ("real", ctypes.c_double), ("string", _String), ("tensor", _Tensor), ("list", _List),
    ]  # fmt: skip


class _Value(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("as_", _As)]


class _Parameter(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p), ("kind", ctypes.c_int), ("dtype", ctypes.c_int), ("rank", ctypes.c_int32),
        ("sizes", ctypes.c_int64 * _RANK), ("least", ctypes.c_int64 * _RANK), ("most", ctypes.c_int64 * _RANK),
        ("text", ctypes.c_char_p), ("written", ctypes.c_bool),
    ]  # fmt: skip


class _Method(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p), ("inputs", ctypes.POINTER(_Parameter)), ("input_count", ctypes.c_size_t),
        ("outputs", ctypes.POINTER(_Parameter)), ("output_count", ctypes.c_size_t),
    ]  # fmt: skip


class Model:
    """A handle of an exported model. Its methods are attributes: `model.forward(x)`.

    Tensors are NumPy arrays (bfloat16 as uint16, unless the package ml_dtypes is installed), and results are copies. An input
    that a method writes to, as its signature says, is an array that can be written to in place. Only one
    thread at a time may use a handle; `share` makes handles for more threads.
    """

    def __init__(self, library: str | os.PathLike, name: str, weights: str | os.PathLike | None = None):
        """Load the built library `library` of the model `name`; `weights` is the weights' file, None where they are embedded.
        Raises ModelError on failure."""
        self._library = ctypes.CDLL(os.fspath(library))
        self._name = name
        self._methods = self._read_methods()
        self._handle = ctypes.c_void_p()
        message = ctypes.create_string_buffer(512)
        path = None if weights is None else os.fsencode(weights)
        if self._call("create", ctypes.c_char_p(path), ctypes.byref(self._handle), message, ctypes.c_size_t(512)):
            raise ModelError(message.value.decode(errors="replace"))

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._bind_function("destroy", None)(self._handle)
            self._handle = None

    def _bind_function(self, name: str, result: Any = ctypes.c_int) -> Any:
        found = getattr(self._library, f"{self._name}_{name}")
        found.restype = result
        return found

    def _call(self, name: str, *arguments: Any) -> int:
        return self._bind_function(name)(*arguments)

    def _check(self, status: int) -> None:
        if status:
            raise ModelError(self._bind_function("error", ctypes.c_char_p)(self._handle).decode(errors="replace"))

    def _read_methods(self) -> dict[str, tuple[int, _Method]]:
        found = {}
        for index in range(self._bind_function("method_count", ctypes.c_size_t)()):
            method = self._bind_function("method_at", ctypes.POINTER(_Method))(ctypes.c_size_t(index)).contents
            found[method.name.decode()] = (index, method)
        return found

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._methods:
            raise AttributeError(f"the model {self._name} has no method {name!r}; it has {', '.join(self._methods)}")
        return lambda *values: self._run(name, values)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._methods]

    def __repr__(self) -> str:
        return "\n".join([f"<model {self._name}>", *map(self.signature, self._methods)])

    def signature(self, method: str) -> str:
        """Return a method's inputs and outputs: `forward(x: float32[n, 3]) -> result: float32[n, 2]`."""
        found = self._methods[method][1]
        inputs = ", ".join(found.inputs[position].text.decode() for position in range(found.input_count))
        outputs = ", ".join(found.outputs[position].text.decode() for position in range(found.output_count))
        return f"{method}({inputs}) -> {outputs}"

    def __call__(self, *values: Any) -> Any:
        """Call the first method."""
        return self._run(next(iter(self._methods)), values)

    def share(self) -> Model:
        """Return another handle over the same weights, with its own state."""
        made = object.__new__(type(self))
        made._library, made._name, made._methods, made._handle = self._library, self._name, self._methods, ctypes.c_void_p()
        if self._call("share", self._handle, ctypes.byref(made._handle)):
            raise ModelError("there is no memory for another handle")
        return made

    def reset(self) -> None:
        """Reset the state to that at export."""
        self._check(self._call("reset", self._handle))

    def set_threads(self, threads: int) -> None:
        """Set the number of threads of a call."""
        self._check(self._call("set_threads", self._handle, ctypes.c_int(max(0, min(threads, 1 << 30)))))

    def seed(self, seed: int) -> None:
        """Seed the random numbers."""
        self._bind_function("seed", None)(self._handle, ctypes.c_uint64(seed))

    def _run(self, name: str, values: Sequence[Any]) -> Any:
        index, method = self._methods[name]
        if len(values) != method.input_count:
            raise TypeError(f"{self.signature(name)} takes {method.input_count} arguments, got {len(values)}")
        kept: list[Any] = []
        inputs, outputs = (_Value * max(len(values), 1))(), (_Value * max(method.output_count, 1))()
        for position, value in enumerate(values):
            declared = method.inputs[position]
            inputs[position] = _python_to_value(value, kept, declared.name.decode() if declared.written else None)
        counts = ctypes.c_size_t(len(values)), ctypes.c_size_t(method.output_count)
        self._check(self._call("run", self._handle, ctypes.c_size_t(index), inputs, counts[0], outputs, counts[1]))
        results = [_value_to_python(outputs[position]) for position in range(method.output_count)]
        return results[0] if len(results) == 1 else tuple(results)


def _python_to_value(given: Any, kept: list[Any], written: str | None = None) -> _Value:
    """Return a value for the model, whose memory `kept` holds. `written` is the input's name if the model writes to it."""
    made = _Value()
    if given is None:
        made.kind = _NONE
    elif isinstance(given, bool | np.bool_):
        made.kind, made.as_.integer = _BOOL, int(given)
    elif isinstance(given, int | np.integer) and not isinstance(given, np.ndarray):
        if not -(1 << 63) <= int(given) < 1 << 63:
            raise OverflowError(f"ints of a model have 64 bits, got {given}")
        made.kind, made.as_.integer = _INT, int(given)
    elif isinstance(given, float) or isinstance(given, np.floating):
        made.kind, made.as_.real = _FLOAT, float(given)
    elif isinstance(given, str):
        content = given.encode()
        held = ctypes.create_string_buffer(content, max(len(content), 1))
        kept.append(held)
        made.kind = _STRING
        made.as_.string.text, made.as_.string.size = ctypes.cast(held, ctypes.POINTER(ctypes.c_char)), len(content)
    elif isinstance(given, list | tuple | dict):
        made.kind = _LIST if isinstance(given, list) else _TUPLE if isinstance(given, tuple) else _DICT
        items = [each for pair in given.items() for each in pair] if isinstance(given, dict) else list(given)
        held = (_Value * max(len(items), 1))()
        kept.append(held)
        for position, item in enumerate(items):
            held[position] = _python_to_value(item, kept, written)
        made.as_.list.items, made.as_.list.count = ctypes.addressof(held), len(items)
    else:
        if written is not None:
            _check_writable(given, written)
        made.kind, made.as_.tensor = _TENSOR, _array_to_tensor(np.asarray(given), kept)
    return made


def _check_writable(given: Any, name: str) -> None:
    """Raise for an input that the model cannot write to in place."""
    if not isinstance(given, np.ndarray):
        raise TypeError(f"the model writes to {name}, so it must be a NumPy array, got {type(given).__name__}")
    if not _is_native(given):
        raise TypeError(
            f"the model writes to {name}, so it must be an aligned array in native byte order with strides that are positive "
            f"multiples of an element's size, got dtype {given.dtype.str} and strides {given.strides} in bytes: pass a copy"
        )
    if not given.flags.writeable:
        raise ValueError(f"the model writes to {name}, and the array is read-only: pass a copy")


def _is_native(array: np.ndarray) -> bool:
    """Return whether the model can use an array's memory as it is."""
    whole_steps = all(step >= 0 and step % max(array.itemsize, 1) == 0 for step in array.strides)
    return array.dtype.isnative and array.flags.aligned and whole_steps


def _array_to_tensor(array: np.ndarray, kept: list[Any]) -> _Tensor:
    kind = "bfloat16" if array.dtype == np.uint16 else array.dtype.name
    if kind not in _DTYPES:
        raise TypeError(f"arrays are of {', '.join(_DTYPES[1:])} (bfloat16 as uint16), got {array.dtype}")
    if array.ndim > _RANK:
        raise ValueError(f"arrays have at most {_RANK} dimensions, got {array.ndim}")
    if not _is_native(array):
        array = array.astype(array.dtype.newbyteorder("="))
    kept.append(array)
    made = _Tensor(array.ctypes.data, _DTYPES.index(kind), array.ndim)
    for dim in range(array.ndim):
        made.sizes[dim], made.strides[dim] = array.shape[dim], array.strides[dim] // array.itemsize
    return made


def _value_to_python(value: _Value) -> Any:
    kind = value.kind
    if kind == _TENSOR:
        return _tensor_to_array(value.as_.tensor)
    if kind in (_LIST, _TUPLE, _DICT):
        items = (_Value * value.as_.list.count).from_address(value.as_.list.items) if value.as_.list.count else ()
        found = [_value_to_python(item) for item in items]
        return found if kind == _LIST else tuple(found) if kind == _TUPLE else dict(zip(found[::2], found[1::2], strict=True))
    if kind == _STRING:
        return ctypes.string_at(value.as_.string.text, value.as_.string.size).decode(errors="replace")
    return {_NONE: None, _BOOL: bool(value.as_.integer), _INT: value.as_.integer, _FLOAT: value.as_.real}[kind]


def _dtype(name: str) -> np.dtype:
    if name != "bfloat16":
        return np.dtype(name)
    try:
        import ml_dtypes
    except ImportError:
        return np.dtype(np.uint16)
    return np.dtype(ml_dtypes.bfloat16)


def _tensor_to_array(tensor: _Tensor) -> np.ndarray:
    kind, sizes = _dtype(_DTYPES[tensor.dtype]), tuple(tensor.sizes[: tensor.rank])
    if 0 in sizes:
        return np.empty(sizes, kind)
    strides = [step * kind.itemsize for step in tensor.strides[: tensor.rank]]
    reach = sum((size - 1) * step for size, step in zip(sizes, strides, strict=True)) + kind.itemsize
    memory = np.frombuffer((ctypes.c_char * reach).from_address(tensor.data), np.uint8)
    return np.lib.stride_tricks.as_strided(memory[: kind.itemsize].view(kind), sizes, strides).copy()
