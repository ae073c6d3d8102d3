"""NumPy arrays in captured functions: they are tensors of the graph, and NumPy's functions and methods become nodes.

The graph breaks at an operation that this module does not know (no counterpart, an unknown argument, an error), and NumPy runs
it.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.core.dtype import from_numpy_dtype
from rushlight.core.lazy_module import LazyModule
from rushlight.core.tensor import Tensor, from_numpy
from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.handlers import HANDLERS, METHODS
from rushlight.dynamo.rules import RULES
from rushlight.dynamo.sources import Source
from rushlight.dynamo.values.base import BINARY, COMPARISONS, Raised, Value
from rushlight.dynamo.values.constant import NONE, NUMPY_NUMBERS, ConstantValue, FixedValue, from_python, raised
from rushlight.dynamo.values.sequences import SequenceValue, SliceValue
from rushlight.dynamo.values.tensor import TensorValue

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following, Writer

array_functions = LazyModule("rushlight.dynamo.array_functions")
_UFUNCS = {
    "+": "add", "-": "subtract", "*": "multiply", "/": "divide", "//": "floor_divide", "%": "remainder", "**": "power",
    "@": "matmul", "<<": "left_shift", ">>": "right_shift", "&": "bitwise_and", "|": "bitwise_or", "^": "bitwise_xor",
    "<": "less", "<=": "less_equal", "==": "equal", "!=": "not_equal", ">": "greater", ">=": "greater_equal",
}  # fmt: skip
_UNARY = {"-": "negative", "+": "positive", "~": "invert"}
_CALLABLES = (np.ufunc, type(np.sum), types.FunctionType, types.BuiltinFunctionType)


class ArrayValue(Value):
    """An array, tracked as the tensor that holds its values."""

    kind = np.ndarray

    def __init__(self, tensor: TensorValue, source: Source | None = None) -> None:
        self.tensor = tensor
        self.source = source

    def python_type(self) -> type:
        return np.ndarray

    @property
    def dtype(self) -> np.dtype:
        """Return the array's dtype."""
        return self.tensor.fake.dtype.numpy

    def truth(self, tx: Following) -> bool:
        raise GraphBreak("a branch on the value of an array", "use np.where, or keep the branch outside the compiled part")

    def length(self, tx: Following) -> Value:
        if not self.tensor.fake.dim():
            raise raised(TypeError("len() of unsized object"))
        return from_python(self.tensor.fake.shape[0])

    def items_of(self, tx: Following) -> list[Value]:
        if not self.tensor.fake.dim():
            raise raised(TypeError("iteration over a 0-d array"))
        return [ArrayValue(item) for item in self.tensor.items_of(tx)]

    def same_as(self, other: Value) -> bool:
        return isinstance(other, ArrayValue) and self.tensor.same_as(other.tensor)

    def attribute(self, tx: Following, name: str) -> Value:
        fake = self.tensor.fake
        if name == "shape":
            return SequenceValue([from_python(size) for size in fake.shape], tuple)
        if name in ("ndim", "itemsize"):
            return ConstantValue(getattr(fake, name))
        if name == "strides":
            return SequenceValue([from_python(stride * fake.itemsize) for stride in fake.stride()], tuple)
        if name == "nbytes":
            return from_python(fake.numel() * fake.itemsize)
        if name == "size":
            return from_python(fake.numel())
        if name == "dtype":
            return ConstantValue(self.dtype)
        if name == "T":
            return call(tx, array_functions.transpose, [self], {})
        if name in ("real", "imag"):
            return call(tx, getattr(array_functions, name), [self], {})
        if name == "tolist":
            return tx.bound_method(self, name)
        if name in array_functions.METHODS:
            return ArrayMethodValue(self, name)
        raise GraphBreak(f"attribute {name!r} of an array of NumPy")

    def method(self, tx: Following, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name == "tolist":
            return self.tensor.method(tx, name, args, kwargs)
        return super().method(tx, name, args, kwargs)

    def item(self, tx: Following, key: Value) -> Value:
        return call(tx, array_functions.item, [self, key], {})

    def set_item(self, tx: Following, key: Value, value: Value) -> None:
        if not isinstance(value, ArrayValue) and not value.is_constant():
            raise GraphBreak(f"writing {value} into an array")
        self.tensor.set_item(tx, _to_tensors(tx, key), _to_tensors(tx, value))

    def write(self, writer: Writer) -> str:
        text = f"{writer.expression(self.tensor)}.numpy()"
        return text if self.tensor.fake.dim() else f"{text}[()]"

    def __str__(self) -> str:
        return f"an array of shape {list(self.tensor.fake.shape)}"


class ArrayMethodValue(Value):
    """A method of an array."""

    def __init__(self, array: ArrayValue, name: str) -> None:
        self.array = array
        self.name = name

    def call(self, tx: Following, args: list[Value], kwargs: dict[str, Value]) -> Value:
        function = array_functions.METHODS[self.name]
        if self.name in ("reshape", "transpose") and len(args) > 1:
            args = [SequenceValue(args, tuple)]
        return call(tx, function, [self.array, *args], kwargs)


class ArrayFunctionValue(FixedValue):
    """A NumPy function that has a counterpart on tensors."""

    def call(self, tx: Following, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return call(tx, counterparts()[self.value], args, kwargs)

    def attribute(self, tx: Following, name: str) -> Value:
        return tx.wrap_constant_attribute(self.value, name)

    def __str__(self) -> str:
        return f"numpy.{self.value.__name__}"


@functools.cache
def counterparts() -> dict[Any, Callable]:
    """Return numPy function -> its counterpart on tensors."""
    return array_functions.functions()


def is_array_function(value: object) -> bool:
    """Return whether captures have a counterpart for a NumPy function."""
    if not isinstance(value, _CALLABLES) or not str(getattr(value, "__module__", "numpy")).startswith("numpy"):
        return False
    return value in counterparts()


def is_array(value: object) -> bool:
    """Return whether a tensor can share an array's memory."""
    if type(value) is not np.ndarray or not value.dtype.isnative or not value.flags.writeable or not RULES.trace_numpy:
        return False
    try:
        from_numpy_dtype(value.dtype)
    except TypeError:
        return False
    return not any(stride < 0 or stride % value.itemsize for stride in value.strides)


# Functions that read tensors like arrays; most of NumPy's functions call methods of the tensor instead.
_READS_TENSORS = ("array", "asarray", "zeros_like", "ones_like", "full_like")


def call(tx: Following, function: Callable, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Add a node that calls a function of `array_functions`; its results are arrays."""
    if function.__name__ in _READS_TENSORS:
        args = [array_of(tx, value) if isinstance(value, TensorValue) else value for value in args]
    if any(isinstance(value, TensorValue) for value in args):
        raise GraphBreak(f"np.{function.__name__} of a tensor", "call it on tensor.numpy()")
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError as error:
        raise GraphBreak(f"np.{function.__name__} with these arguments: {error}") from None
    try:
        keywords = {name: _to_tensors(tx, value) for name, value in kwargs.items()}
        made = tx.call_in_graph("call_function", function, [_to_tensors(tx, value) for value in args], keywords)
    except Raised as error:
        raise GraphBreak(f"np.{function.__name__}: {error}", "NumPy itself runs it") from None
    return _wrap_arrays(made)


def _wrap_arrays(made: Value) -> Value:
    if isinstance(made, TensorValue):
        return ArrayValue(made)
    return SequenceValue([_wrap_arrays(item) for item in made.items], made.kind)


def _to_tensors(tx: Following, value: Value) -> Value:
    """Convert arrays in an argument to tensors, and NumPy's dtypes to this library's."""
    if isinstance(value, ArrayValue):
        return value.tensor
    if isinstance(value, SequenceValue):
        return SequenceValue([_to_tensors(tx, item) for item in value.items], value.kind)
    if isinstance(value, SliceValue):
        return value
    known = getattr(value, "value", None)
    if isinstance(known, NUMPY_NUMBERS):
        return tx.wrap_constant(from_numpy(np.asarray(known)))
    return ConstantValue(from_numpy_dtype(np.dtype(known))) if isinstance(known, np.dtype) or _is_scalar_type(known) else value


def _is_scalar_type(value: object) -> bool:
    return isinstance(value, type) and (issubclass(value, np.generic) or value in (bool, int, float, complex))


def binary(tx: Following, symbol: str, left: Value, right: Value) -> Value:
    """Evaluate `left symbol right` where at least one is an array."""
    plain = symbol if symbol in BINARY or symbol in COMPARISONS else symbol[:-1]
    for value in (left, right):
        is_number = value.is_constant() and isinstance(value.constant(), bool | int | float | complex)
        if not (is_number or isinstance(value, ArrayValue)):
            raise GraphBreak(f"{left} {symbol} {right}")
    made = call(tx, array_functions.ELEMENTWISE[_UFUNCS[plain]], [left, right], {})
    if plain == symbol or not isinstance(left, ArrayValue):
        return made
    call(tx, array_functions.assigned, [left, made], {})
    return left


def unary(tx: Following, symbol: str, value: ArrayValue) -> Value:
    """Evaluate `-value`, `+value` or `~value` of an array."""
    return call(tx, array_functions.ELEMENTWISE[_UNARY[symbol]], [value], {})


def array_of(tx: Following, tensor: TensorValue, force: Value = NONE) -> Value:
    """Evaluate `tensor.numpy()`."""
    if tensor.fake.requires_grad:
        if not (force.is_constant() and force.constant()):
            raise raised(RuntimeError(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
            ))  # fmt: skip
        tensor = tx.call_in_graph("call_method", "detach", [tensor], {})
    if tensor.fake.dtype.numpy.hasobject or tensor.fake.dtype.name == "bfloat16":
        raise raised(TypeError("Got unsupported ScalarType BFloat16"))
    return ArrayValue(tensor)


def _from_numpy(tx: Following, array: Value) -> Value:
    if not isinstance(array, ArrayValue):
        raise GraphBreak(f"from_numpy of {array}")
    return array.tensor


HANDLERS[from_numpy] = _from_numpy
HANDLERS[Tensor.numpy] = METHODS["numpy"] = array_of


