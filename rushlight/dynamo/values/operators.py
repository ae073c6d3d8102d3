"""Python's operators on tracked values."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rushlight.core.size import Size
from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.values import arrays
from rushlight.dynamo.values.arrays import ArrayValue
from rushlight.dynamo.values.base import BINARY, COMPARISONS, IN_PLACE, Value
from rushlight.dynamo.values.constant import ConstantValue, fold, raised
from rushlight.dynamo.values.identities import IdValue
from rushlight.dynamo.values.inheriting import InheritingValue, is_written_in_python, plainly
from rushlight.dynamo.values.later_numbers import later
from rushlight.dynamo.values.mappings import DictValue, DictViewValue
from rushlight.dynamo.values.objects import ObjectValue, OpaqueValue
from rushlight.dynamo.values.open_floats import arithmetic, compared
from rushlight.dynamo.values.open_quotients import quotient
from rushlight.dynamo.values.sequences import SequenceValue
from rushlight.dynamo.values.sets import SetValue, operand
from rushlight.dynamo.values.tensor import TensorValue
from rushlight.dynamo.values.texts import text_of

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following


def binary(tx: Following, symbol: str, left: Value, right: Value) -> Value:
    """Evaluate `left symbol right`, for arithmetic; symbols that end in "=" are in place."""
    in_place = symbol.endswith("=")
    function = (IN_PLACE if in_place else BINARY)[symbol]
    plain = symbol[:-1] if in_place else symbol
    if isinstance(left, InheritingValue) or isinstance(right, InheritingValue):
        found = _apply_inherited(tx, symbol, left, right, BINARY[plain].__name__.strip("_"))
        if found is not None:
            return found
    if isinstance(left, ArrayValue) or isinstance(right, ArrayValue):
        return arrays.binary(tx, symbol, left, right)
    if isinstance(left, TensorValue) or isinstance(right, TensorValue):
        if not isinstance(left, ObjectValue) and not isinstance(right, ObjectValue):
            return tx.call_in_graph("call_function", function, [left, right], {})
    number = later(tx, BINARY[plain], [left, right])
    if number is not None:
        return number
    opened = quotient(plain, left, right) if plain in "/*" else None
    opened = opened or arithmetic(plain, left, right)
    if opened is not None:
        return opened
    if left.is_constant() and right.is_constant() and not (_is_open(left) or _is_open(right)):
        return fold(BINARY[plain], left, right)
    if isinstance(left, SequenceValue) and plain in "+*":
        return _sequence_arithmetic(tx, symbol, left, right)
    if plain == "*" and isinstance(right, SequenceValue):
        return _sequence_arithmetic(tx, "*", right, left)
    if plain == "%" and left.python_type() in (str, bytes):
        return fold(operator.mod, left, ConstantValue(_formatting_values(tx, right)))
    if plain == "|" and isinstance(left, DictValue) and isinstance(right, DictValue):
        target = left if in_place else DictValue(dict(left.items), left.kind)
        target.method(tx, "update", [right], {})
        return target
    if plain in _SET_METHODS and isinstance(left, SetValue | DictViewValue) and isinstance(right, SetValue | DictViewValue):
        return _set_arithmetic(tx, plain, in_place, left, right)
    return by_methods(tx, function, in_place, left, right)


def _is_open(value: Value) -> bool:
    """Return whether a value is a sequence with open integers, which its use as a constant would specialize."""
    return isinstance(value, SequenceValue) and value.is_open()


def _apply_inherited(tx: Following, symbol: str, left: Value, right: Value, name: str) -> Value | None:
    """Return an operation that a user's class inherits from its built-in base; None if the class overrides it."""
    in_place = symbol.endswith("=")
    methods = (f"__{name}__", f"__r{name}__", *([f"__i{name}__"] if in_place else []))
    one, other = left, right
    for method in methods:
        one, other = plainly(one, method), plainly(other, method)
    own = [value for value in (left, right) if isinstance(value, InheritingValue)]
    if any(is_written_in_python(value.kind, method) for value in own for method in methods):
        return None
    found = binary(tx, symbol, one, other)
    return left if in_place and found is one and left is not one else found


def _formatting_values(tx: Following, right: Value) -> Any:
    """Return the right operand of `%`. Objects are replaced by their text, which `%d` and the like reject."""
    if isinstance(right, SequenceValue) and right.kind is tuple:
        return tuple(_formatting_values(tx, item) for item in right.items)
    return text_of(tx, right, str).constant() if isinstance(right, ObjectValue) else right.snapshot()


_SET_METHODS = {"|": "union", "&": "intersection", "-": "difference", "^": "symmetric_difference"}


def _set_arithmetic(tx: Following, symbol: str, in_place: bool, left: Value, right: Value) -> Value:
    name = _SET_METHODS[symbol]
    if in_place and left.python_type() is set:
        left.method(tx, "update" if name == "union" else f"{name}_update", [right], {})
        return left
    made = left if isinstance(left, SetValue) else SetValue(operand(tx, left), set)
    return made.method(tx, name, [right], {})


def by_methods(tx: Following, function: Callable, in_place: bool, left: Value, right: Value) -> Value:
    """Return an operation by the special methods of objects."""
    name = function.__name__.strip("_")
    base = name[1:] if in_place else name
    attempts = [(left, f"__i{base}__", right)] if in_place else []
    plain = [(left, f"__{base}__", right), (right, f"__r{base}__", left)]
    if isinstance(right, ObjectValue) and issubclass(right.kind, left.python_type()) and right.kind is not left.python_type():
        plain.reverse()  # Python tries the reflected method of a subclass first
    attempts += plain
    for owner, method, other in attempts:
        if isinstance(owner, ObjectValue) and hasattr(owner.kind, method):
            result = owner.method(tx, method, [other], {})
            if not (result.is_constant() and result.constant() is NotImplemented):
                return result
    for owner, method, other in plain:
        knows_not = owner.is_constant() and isinstance(other, ObjectValue) and not isinstance(other, InheritingValue)
        if not isinstance(owner, ObjectValue) and hasattr(owner.python_type(), method) and not knows_not:
            raise GraphBreak(f"{function.__name__} of {left} and {right}")
    symbol = next((symbol for symbol, one in {**BINARY, **IN_PLACE}.items() if one is function), f"{base}()")
    symbol = {"**": "** or pow()"}.get(symbol, symbol)
    left_name, right_name = left.python_type().__name__, right.python_type().__name__
    raise raised(TypeError(f"unsupported operand type(s) for {symbol}: '{left_name}' and '{right_name}'"))


def _sequence_arithmetic(tx: Following, symbol: str, left: SequenceValue, right: Value) -> Value:
    if symbol.startswith("*"):
        items = left.items * right.constant()
    elif symbol == "+=" and left.is_mutable:
        items = left.items + right.items_of(tx)
    elif isinstance(right, SequenceValue) and (left.is_mutable == right.is_mutable):
        items = left.items + right.items
    else:
        kind = left.kind.__name__
        raise raised(TypeError(f'can only concatenate {kind} (not "{right.python_type().__name__}") to {kind}'))
    if symbol.endswith("=") and left.is_mutable:
        tx.effects.mutates(left)
        left.items[:] = items
        return left
    kind = Size if isinstance(right, SequenceValue) and right.kind is Size else left.kind
    return SequenceValue(items, tuple if hasattr(kind, "_fields") else kind)


def compare(tx: Following, symbol: str, left: Value, right: Value) -> Value:
    """Evaluate `left symbol right`, for comparisons."""
    function = COMPARISONS[symbol]
    name = f"__{function.__name__}__"
    left, right = plainly(left, name), plainly(right, name)
    if isinstance(left, ArrayValue) or isinstance(right, ArrayValue):
        return arrays.binary(tx, symbol, left, right)
    if isinstance(left, TensorValue) or isinstance(right, TensorValue):
        other = right if isinstance(left, TensorValue) else left
        if symbol in ("==", "!=") and other.is_constant() and other.constant() is None:
            return ConstantValue(symbol == "!=")
        return tx.call_in_graph("call_function", function, [left, right], {})
    if isinstance(left, SequenceValue) and isinstance(right, SequenceValue) and (left.is_open() or right.is_open()):
        return _compare_sequences(tx, symbol, left, right)
    if symbol in ("==", "!=") and isinstance(left, IdValue) != isinstance(right, IdValue):
        left, right = tx.known_id(left), tx.known_id(right)
    number = later(tx, function, [left, right])
    if number is not None:
        return number
    opened = compared(tx, symbol, left, right)
    if opened is not None:
        return opened
    if left.is_constant() and right.is_constant():
        return fold(function, left, right)
    if isinstance(left, ObjectValue) or isinstance(right, ObjectValue):
        return _compare_objects(tx, symbol, left, right)
    if isinstance(left, SequenceValue) and isinstance(right, SequenceValue):
        return _compare_sequences(tx, symbol, left, right)
    if isinstance(left, DictValue) and isinstance(right, DictValue) and symbol in ("==", "!="):
        equal = left.items.keys() == right.items.keys() and all(
            compare(tx, "==", value, right.items[key]).truth(tx) for key, value in left.items.items()
        )
        return ConstantValue(equal == (symbol == "=="))
    if isinstance(left, SetValue | DictViewValue) and isinstance(right, SetValue | DictViewValue):
        sets = [ConstantValue(frozenset(tx.key(item) for item in value.items_of(tx))) for value in (left, right)]
        return fold(function, *sets)
    return _compare_without_methods(symbol, left, right)


def _compare_without_methods(symbol: str, left: Value, right: Value) -> Value:
    """Return a comparison that no method implements: by identity, or a TypeError."""
    if isinstance(left, OpaqueValue) or isinstance(right, OpaqueValue):
        raise GraphBreak(f"the comparison {left} {symbol} {right}")
    if symbol in ("==", "!="):
        return ConstantValue((left is right) == (symbol == "=="))
    kinds = f"'{left.python_type().__name__}' and '{right.python_type().__name__}'"
    raise raised(TypeError(f"'{symbol}' not supported between instances of {kinds}"))


def _compare_objects(tx: Following, symbol: str, left: Value, right: Value) -> Value:
    reflected = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
    name = COMPARISONS[symbol].__name__
    for owner, method, other in ((left, name, right), (right, reflected[name], left)):
        plain = getattr(object, f"__{method}__")
        if method == "ne" and isinstance(owner, ObjectValue) and owner.kind.__ne__ is plain is not owner.kind.__eq__:
            result = owner.method(tx, "__eq__", [other], {})
            if result.is_constant() and result.constant() is NotImplemented:
                continue
            return ConstantValue(not result.truth(tx))
        if isinstance(owner, ObjectValue) and getattr(owner.kind, f"__{method}__", None) is not plain:
            result = owner.method(tx, f"__{method}__", [other], {})
            if not (result.is_constant() and result.constant() is NotImplemented):
                return result
    return _compare_without_methods(symbol, left, right)


def _compare_sequences(tx: Following, symbol: str, left: SequenceValue, right: SequenceValue) -> Value:
    if left.is_mutable != right.is_mutable and symbol in ("==", "!="):
        return ConstantValue(symbol == "!=")
    for one, other in zip(left.items, right.items, strict=False):
        if one is not other and not compare(tx, "==", one, other).truth(tx):
            return ConstantValue(symbol == "!=") if symbol in ("==", "!=") else compare(tx, symbol, one, other)
    return fold(COMPARISONS[symbol], ConstantValue(len(left.items)), ConstantValue(len(right.items)))


def unary(tx: Following, symbol: str, value: Value) -> Value:
    """Evaluate `-value`, `+value` or `~value`."""
    function = {"-": operator.neg, "+": operator.pos, "~": operator.invert}[symbol]
    if isinstance(value, TensorValue):
        return tx.call_in_graph("call_function", function, [value], {})
    if isinstance(value, ArrayValue):
        return arrays.unary(tx, symbol, value)
    if isinstance(value, ObjectValue):
        return value.method(tx, f"__{function.__name__}__", [], {})
    return later(tx, function, [value]) or fold(function, value)


def contains(tx: Following, values: Value, wanted: Value) -> Value:
    """Evaluate `wanted in values`."""
    if isinstance(values, TensorValue):
        raise GraphBreak("whether a tensor contains a value")
    values = plainly(values, "__contains__")
    if isinstance(values, SequenceValue | DictValue | SetValue | DictViewValue):
        return values.method(tx, "__contains__", [wanted], {})
    if isinstance(values, ObjectValue):
        if hasattr(values.kind, "__contains__"):
            return ConstantValue(values.method(tx, "__contains__", [wanted], {}).truth(tx))
        return ConstantValue(any(one is wanted or compare(tx, "==", one, wanted).truth(tx) for one in tx.lazily(values)))
    if values.is_constant() and wanted.is_constant():
        return fold(operator.contains, values, wanted)
    return ConstantValue(any(one is wanted or compare(tx, "==", one, wanted).truth(tx) for one in values.items_of(tx)))
