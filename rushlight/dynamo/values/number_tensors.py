"""Open numbers in calls of the library: passed as 0-d tensors where eager passes a number.

In: a call with tracked arguments. Out: the same call, where a 0-d tensor, an input of the graph, replaces each open float if
the function takes tensors there. Functions that fill with a tensor's value first make a tensor and then fill it.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from rushlight.core.dtype import bfloat16, bool_, dtype, float16, float32, float64, get_default_dtype, int64
from rushlight.dynamo.sources import NumberTensor
from rushlight.dynamo.values.base import Value
from rushlight.dynamo.values.constant import ConstantValue
from rushlight.dynamo.values.open_floats import OpenFloat, OpenFloatValue, is_open_float, open_float
from rushlight.dynamo.values.open_quotients import OpenQuotientValue
from rushlight.dynamo.values.sequences import SequenceValue
from rushlight.dynamo.values.symbolic import SymbolicValue
from rushlight.dynamo.values.tensor import TensorValue
from rushlight.ops.construct import tensor

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following

_OPEN = (OpenFloatValue, OpenQuotientValue)
# Names of the library's operations on a tensor and a number: operators, functions and methods.
_ARITHMETIC = frozenset("add sub mul truediv div true_divide subtract multiply divide pow mod remainder".split())
_IN_PLACE = frozenset("iadd isub imul itruediv add_ sub_ mul_ div_ pow_ fill_".split())
_COMPARISONS = frozenset("lt le gt ge eq ne less less_equal greater greater_equal not_equal".split())
_BOUNDED = frozenset("clamp clip clamp_ clip_ clamp_min clamp_max".split())
_SELECTIONS = frozenset("where masked_fill masked_fill_ lerp lerp_".split())
_TAKES_TENSORS = _ARITHMETIC | _IN_PLACE | _COMPARISONS | _BOUNDED | _SELECTIONS
_FILL_POSITIONS = {"full": 1, "full_like": 1, "new_full": 2}  # function -> position of its fill value
_SUMS = frozenset("add sub add_ sub_".split())
_OPERANDS = frozenset("other exponent min max value".split())  # keyword names of number arguments
_HALVES, _EXACT = (float16, bfloat16), (float32, float64)


def call_with_tensors(tx: Following, op: str, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """Return the call with tensors instead of numbers; None if it has no such numbers, or if that would change results."""
    name = target if isinstance(target, str) else getattr(target, "__name__", "")
    if name in _FILL_POSITIONS:
        return _call_fill(tx, op, target, args, kwargs, _FILL_POSITIONS[name])
    values = [*args, *kwargs.values()]
    if any(type(value) in _OPEN for value in values) or _makes_a_float(name, args):
        return _with_numbers_as_tensors(tx, name, op, target, args, kwargs)
    if name in _BOUNDED and _has_mixed_bounds(values):
        return _with_numbers_as_tensors(tx, name, op, target, args, kwargs)
    return None


def _makes_a_float(name: str, args: list[Value]) -> bool:
    """Return whether eager converts an open integer to a float: a dividend, or the base of a power of floats."""
    if name not in ("truediv", "pow") or type(args[0]) is not SymbolicValue:
        return False
    return name == "truediv" or args[1].fake.dtype.is_floating_point


def _has_mixed_bounds(values: list[Value]) -> bool:
    """Return whether one bound is a number and the other a tensor, which eager converts to a number."""
    tensors = [value.fake for value in values if isinstance(value, TensorValue)]
    if len(values) != 3 or len(tensors) != 2 or type(values[0]) is not TensorValue:
        return False
    return tensors[0].dim() > 0 and not (tensors[1].dim() or tensors[1].requires_grad)


def _call_fill(
    tx: Following, op: str, target: Any, args: list[Value], kwargs: dict[str, Value], position: int
) -> Value | None:  # fmt: skip
    """Evaluate `full` and the like with a fill value that is no constant."""
    fill = kwargs.get("fill_value", args[position] if len(args) > position else None)
    is_tensor = isinstance(fill, TensorValue) and not (fill.fake.dim() or fill.fake.requires_grad)
    if not is_tensor and type(fill) not in _OPEN:
        return None
    chosen = kwargs["dtype"].constant() if "dtype" in kwargs else None
    own = args[0].fake.dtype if args and isinstance(args[0], TensorValue) else None
    kind = chosen or own or (_dtype_of_number(fill.fake.dtype) if is_tensor else get_default_dtype())
    if (fill.fake.dtype.is_complex and not kind.is_complex) if is_tensor else not kind.is_floating_point:
        return None
    blank = ConstantValue(0)
    given = [blank if value is fill else value for value in args]
    named = {key: blank if value is fill else value for key, value in kwargs.items()} | {"dtype": ConstantValue(kind)}
    made = tx.call_in_graph(op, target, given, named)
    return tx.call_in_graph("call_method", "fill_", [made, _as_tensor(tx, fill, kind, False)], {})


def _dtype_of_number(kind: dtype) -> dtype:
    """Return the dtype that `full` chooses for a number that `item()` returns for a tensor of dtype `kind`."""
    if kind.is_complex:
        return get_default_dtype().to_complex()
    return get_default_dtype() if kind.is_floating_point else kind if kind is bool_ else int64


def _with_numbers_as_tensors(
    tx: Following, name: str, op: str, target: Any, args: list[Value], kwargs: dict[str, Value]
) -> Value | None:  # fmt: skip
    if name in _SUMS and list(kwargs) == ["alpha"] and len(args) == 2:
        return _call_scaled(tx, op, target, args, kwargs["alpha"])
    kinds = {value.fake.dtype for value in _promoting_operands(name, args) if isinstance(value, TensorValue)}
    if name not in _TAKES_TENSORS or len(kinds) != 1 or not kwargs.keys() <= _OPERANDS:
        return None
    kind = kinds.pop()
    if kind in _HALVES and name in _ARITHMETIC and isinstance(args[0], TensorValue):
        return _compute_in_float32(tx, op, target, args, kwargs, kind)
    number_kind = kind if kind.is_floating_point else kind.to_real() if kind.is_complex else get_default_dtype()
    if number_kind is not kind and name not in _ARITHMETIC | _COMPARISONS:
        return None  # storing the number in the tensor would round it differently
    as_tensors = name in _BOUNDED  # their bounds must be both numbers or both tensors
    given = [_as_tensor(tx, value, number_kind, as_tensors) for value in args]
    named = {key: _as_tensor(tx, value, number_kind, as_tensors) for key, value in kwargs.items()}
    if any(type(value) in _OPEN for value in [*given, *named.values()]):
        return None
    return tx.call_in_graph(op, target, given, named)


def _promoting_operands(name: str, args: list[Value]) -> list[Value]:
    """Return the operands that decide the result's dtype."""
    if name == "where":
        return args[1:]
    return args[:1] if name in _SELECTIONS | _BOUNDED else args


def _call_scaled(tx: Following, op: str, target: Any, args: list[Value], alpha: Value) -> Value | None:
    """Evaluate `add` or `sub` with `alpha`."""
    if not all(isinstance(value, TensorValue) and value.fake.dtype in _EXACT for value in args):
        return None
    multiple = tx.call_in_graph("call_function", operator.mul, [args[1], alpha], {})
    return tx.call_in_graph(op, target, [args[0], multiple], {})


def _compute_in_float32(tx: Following, op: str, target: Any, args: list[Value], kwargs: dict[str, Value], kind: dtype) -> Value:
    """Return a half-precision tensor with a number on its right: eager computes in float32 and does not round the number
    first.
    """
    wide = [
        tx.call_in_graph("call_method", "to", [value, ConstantValue(float32)], {}) if isinstance(value, TensorValue) else value
        for value in args
    ]
    return tx.call_in_graph("call_method", "to", [tx.call_in_graph(op, target, wide, kwargs), ConstantValue(kind)], {})


def _as_tensor(tx: Following, value: Value, kind: dtype, constants_too: bool) -> Value:
    if type(value) in (*_OPEN, SymbolicValue) or (constants_too and type(value) is ConstantValue and value.value is not None):
        number = open_float(value)
        return value if number is None else number_tensor(tx, number, kind)
    return value


def number_tensor(tx: Following, number: OpenFloat, kind: dtype) -> Value:
    """Return an open number as a graph input."""
    return _add_number_input(tx, number.hint, number.text, number.symbols, kind)


def _add_number_input(tx: Following, hint: Any, text: str, symbols: frozenset, kind: dtype) -> Value:
    make = tx.guards.name(tensor, "tensor")
    source = NumberTensor(text, f"{make}({text}, dtype={tx.guards.name(kind, kind.name)})", symbols)
    return tx.session.number_tensor(hint, kind, source)


def tensor_of_numbers(tx: Following, data: Value, kind: dtype | None) -> Value | None:
    """Evaluate `torch.tensor(data)` with open numbers in it, as a graph input; None if none is open, or data holds other
    values.
    """
    found = _write_numbers(data)
    if found is None or not found[2]:
        return None
    hint, text, leaves = found
    symbols = frozenset().union(*[number.symbols for number in leaves])
    return _add_number_input(tx, hint, text, symbols, kind or tensor(hint).dtype)


def _write_numbers(data: Value) -> tuple[Any, str, list[OpenFloat]] | None:
    """Return the example values, the text and the open numbers of numbers in nested lists; None for other data."""
    if isinstance(data, SequenceValue):
        parts = [_write_numbers(item) for item in data.items]
        if None in parts:
            return None
        return [part[0] for part in parts], f"[{', '.join([part[1] for part in parts])}]", sum([part[2] for part in parts], [])
    number = open_float(data)
    return None if number is None else (number.hint, number.text, [number] if is_open_float(data) else [])
