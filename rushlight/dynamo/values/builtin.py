"""Python's builtins and standard functions, as the symbolic interpreter runs them on tracked values."""

from __future__ import annotations

import abc
import builtins
import collections
import copy
import functools
import itertools
import math
import operator
import sys
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from rushlight.core.dtype import finfo, iinfo
from rushlight.core.tensor import Tensor
from rushlight.dynamo.errors import FrameNeeded, GraphBreak, Raised
from rushlight.dynamo.sources import Source
from rushlight.dynamo.values.base import BINARY, COMPARISONS, IN_PLACE, Value
from rushlight.dynamo.values.constant import ConstantValue, fold, raised
from rushlight.dynamo.values.containers import (
    NONE,
    DictValue,
    DictViewValue,
    IteratorValue,
    RangeValue,
    SequenceValue,
    SetValue,
    SliceValue,
    WrappedIteratorValue,
    iterate,
    sort_values,
)
from rushlight.dynamo.values.function import PartialValue
from rushlight.dynamo.values.objects import ClassValue, ObjectValue, SuperValue
from rushlight.dynamo.values.tensor import TensorValue

if TYPE_CHECKING:
    from rushlight.dynamo.program import ProgramWriter
    from rushlight.dynamo.translator import Translator

HANDLERS: dict[Any, Callable] = {}
# Functions without effects whose results depend on nothing but constant arguments.
PURE = frozenset({
    abs, bin, chr, divmod, format, hex, oct, ord, pow, repr, round, ascii, callable, hash, complex, bytes,
    *(value for value in vars(math).values() if callable(value)), operator.index,
    *BINARY.values(), *COMPARISONS.values(), operator.neg, operator.pos, operator.invert, operator.not_,
})  # fmt: skip


class BuiltinValue(Value):
    """A function or class that is built in or of the standard library."""

    def __init__(self, function: Any, source: Source | None = None) -> None:
        self.function = function
        self.source = source

    def python_type(self) -> type:
        return type(self.function)

    def is_constant(self) -> bool:
        return True

    def constant(self) -> Any:
        return self.function

    def truth(self, tx: Translator) -> bool:
        return True

    def same_as(self, other: Value) -> bool:
        return other.is_constant() and other.constant() is self.function

    def attribute(self, tx: Translator, name: str) -> Value:
        return tx.wrap_constant_attribute(self.function, name)

    def call(self, tx: Translator, args: list[Value], kwargs: dict[str, Value]) -> Value:
        handler = HANDLERS.get(self.function)
        if handler is not None:
            try:
                return handler(tx, *args, **kwargs)
            except TypeError as error:
                if error.__traceback__.tb_next is None:  # the arguments do not fit the handler
                    raise GraphBreak(f"{self}() with these arguments") from None
                raise
        if self.function in PURE and all(value.is_constant() for value in (*args, *kwargs.values())):
            return fold(self.function, *args, **kwargs)
        if self.function in PURE and any(isinstance(value, TensorValue) for value in args):
            return tx.call_in_graph("call_function", self.function, args, kwargs)
        raise GraphBreak(f"a call of {self}, which the capture does not know", "call it outside of the compiled part")

    def node(self, tx: Translator) -> Any:
        return self.function

    def write(self, writer: ProgramWriter) -> str:
        return writer.name_of(self.function, getattr(self.function, "__name__", "builtin"))

    def __str__(self) -> str:
        return f"{getattr(self.function, '__module__', '')}.{getattr(self.function, '__qualname__', self.function)}".lstrip(".")


def handles(*functions: Any) -> Callable:
    """Register what runs in the place of builtin functions: called with the translator and the tracked arguments."""

    def register(handler: Callable) -> Callable:
        for function in functions:
            HANDLERS[function] = handler
        return handler

    return register


def binary(tx: Translator, symbol: str, left: Value, right: Value) -> Value:
    """`left symbol right`, for arithmetic; symbols that end in "=" are in place."""
    in_place = symbol.endswith("=")
    function = (IN_PLACE if in_place else BINARY)[symbol]
    plain = symbol[:-1] if in_place else symbol
    if isinstance(left, TensorValue) or isinstance(right, TensorValue):
        if not isinstance(left, ObjectValue) and not isinstance(right, ObjectValue):
            return tx.call_in_graph("call_function", function, [left, right], {})
    if left.is_constant() and right.is_constant():
        return fold(BINARY[plain], left, right)
    if isinstance(left, SequenceValue) and plain in "+*":
        return _sequence_arithmetic(tx, symbol, left, right)
    if plain == "*" and isinstance(right, SequenceValue):
        return _sequence_arithmetic(tx, "*", right, left)
    if plain == "%" and left.python_type() is str:
        raise GraphBreak("formatting a value that is not a constant")
    if plain == "|" and isinstance(left, DictValue) and isinstance(right, DictValue):
        target = left if in_place else DictValue(dict(left.items), left.kind)
        target.method(tx, "update", [right], {})
        return target
    if isinstance(left, SetValue | DictViewValue) and plain in "|&-^":
        names = {"|": "union", "&": "intersection", "-": "difference", "^": "symmetric_difference"}
        made = SetValue(dict.fromkeys(tx.key(item) for item in left.items_of(tx)), getattr(left, "kind", set))
        return made.method(tx, names[plain], [right], {})
    return _by_methods(tx, function, in_place, left, right)


def _by_methods(tx: Translator, function: Callable, in_place: bool, left: Value, right: Value) -> Value:
    """By the special methods of objects."""
    name = function.__name__.strip("_")
    base = name[1:] if in_place else name
    attempts = [(left, f"__i{base}__", right)] if in_place else []
    attempts += [(left, f"__{base}__", right), (right, f"__r{base}__", left)]
    for owner, method, other in attempts:
        if isinstance(owner, ObjectValue) and hasattr(owner.kind, method):
            result = owner.method(tx, method, [other], {})
            if not (result.is_constant() and result.constant() is NotImplemented):
                return result
    left_name, right_name = left.python_type().__name__, right.python_type().__name__
    raise raised(TypeError(f"unsupported operand type(s) for {base}: '{left_name}' and '{right_name}'"))


def _sequence_arithmetic(tx: Translator, symbol: str, left: SequenceValue, right: Value) -> Value:
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
    return SequenceValue(items, tuple if hasattr(left.kind, "_fields") else left.kind)


def compare(tx: Translator, symbol: str, left: Value, right: Value) -> Value:
    """`left symbol right`, for comparisons."""
    function = COMPARISONS[symbol]
    if isinstance(left, TensorValue) or isinstance(right, TensorValue):
        other = right if isinstance(left, TensorValue) else left
        if symbol in ("==", "!=") and other.is_constant() and other.constant() is None:
            return ConstantValue(symbol == "!=")
        return tx.call_in_graph("call_function", function, [left, right], {})
    if left.is_constant() and right.is_constant():
        return fold(function, left, right)
    if isinstance(left, ObjectValue) or isinstance(right, ObjectValue):
        return _compare_objects(tx, function, left, right)
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
    if symbol in ("==", "!="):
        return ConstantValue((left is right) == (symbol == "=="))
    raise GraphBreak(f"the comparison {left} {symbol} {right}")


def _compare_objects(tx: Translator, function: Callable, left: Value, right: Value) -> Value:
    reflected = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
    name = function.__name__
    for owner, method, other in ((left, name, right), (right, reflected[name], left)):
        plain = getattr(object, f"__{method}__")
        if isinstance(owner, ObjectValue) and getattr(owner.kind, f"__{method}__", None) is not plain:
            result = owner.method(tx, f"__{method}__", [other], {})
            if not (result.is_constant() and result.constant() is NotImplemented):
                return result
    if name in ("eq", "ne"):
        return ConstantValue((left is right) == (name == "eq"))
    raise raised(TypeError(f"'{name}' not supported between these objects"))


def _compare_sequences(tx: Translator, symbol: str, left: SequenceValue, right: SequenceValue) -> Value:
    if left.is_mutable != right.is_mutable and symbol in ("==", "!="):
        return ConstantValue(symbol == "!=")
    for one, other in zip(left.items, right.items, strict=False):
        if one is not other and not compare(tx, "==", one, other).truth(tx):
            return ConstantValue(symbol == "!=") if symbol in ("==", "!=") else compare(tx, symbol, one, other)
    return fold(COMPARISONS[symbol], ConstantValue(len(left.items)), ConstantValue(len(right.items)))


@handles(len)
def _len(tx: Translator, value: Value) -> Value:
    return value.length(tx)


@handles(isinstance)
def _isinstance(tx: Translator, value: Value, kinds: Value) -> Value:
    wanted = kinds.constant()
    kind = value.python_type()
    for one in wanted if isinstance(wanted, tuple) else (wanted,):
        check = type(one).__dict__.get("__instancecheck__") if isinstance(one, type) else None
        if isinstance(one, type) and check is None and issubclass(kind, one):
            return ConstantValue(True)
        if not isinstance(one, type) or check is not None:
            try:
                if issubclass(kind, one):
                    return ConstantValue(True)
            except TypeError as error:
                raise raised(error) from None
    return ConstantValue(False)


@handles(issubclass)
def _issubclass(tx: Translator, kind: Value, kinds: Value) -> Value:
    return fold(issubclass, kind, kinds)


@handles(getattr)
def _getattr(tx: Translator, value: Value, name: Value, *default: Value) -> Value:
    try:
        return value.attribute(tx, name.constant())
    except Raised as error:
        if default and issubclass(error.value.python_type(), AttributeError):
            return default[0]
        raise


@handles(hasattr)
def _hasattr(tx: Translator, value: Value, name: Value) -> Value:
    try:
        value.attribute(tx, name.constant())
    except Raised as error:
        if issubclass(error.value.python_type(), AttributeError):
            return ConstantValue(False)
        raise
    return ConstantValue(True)


@handles(setattr)
def _setattr(tx: Translator, value: Value, name: Value, new: Value) -> Value:
    value.set_attribute(tx, name.constant(), new)
    return NONE


@handles(delattr)
def _delattr(tx: Translator, value: Value, name: Value) -> Value:
    value.delete_attribute(tx, name.constant())
    return NONE


@handles(bool)
def _bool(tx: Translator, value: Value = ConstantValue(False)) -> Value:  # noqa: B008
    return ConstantValue(value.truth(tx))


@handles(operator.not_)
def _not(tx: Translator, value: Value) -> Value:
    return ConstantValue(not value.truth(tx))


def _conversion(kind: type) -> Callable:
    def convert(tx: Translator, *args: Value, **kwargs: Value) -> Value:
        if args and isinstance(args[0], ObjectValue):
            return args[0].method(tx, f"__{kind.__name__}__", [], {})
        if args and hasattr(args[0], "real") and kind is str:
            return ConstantValue(str(args[0].real()))
        return fold(kind, *args, **kwargs)

    return convert


for _kind in (int, float, str):
    HANDLERS[_kind] = _conversion(_kind)


@handles(type)
def _type(tx: Translator, value: Value) -> Value:
    return tx.wrap_class(value.python_type())


@handles(id)
def _id(tx: Translator, value: Value) -> Value:
    raise GraphBreak("the id of an object")


@handles(list)
def _list(tx: Translator, values: Value | None = None) -> Value:
    return SequenceValue([] if values is None else values.items_of(tx), list)


@handles(tuple)
def _tuple(tx: Translator, values: Value | None = None) -> Value:
    return SequenceValue([] if values is None else values.items_of(tx), tuple)


@handles(collections.deque)
def _deque(tx: Translator, values: Value | None = None) -> Value:
    return SequenceValue([] if values is None else values.items_of(tx), collections.deque)


@handles(dict)
def _dict(tx: Translator, values: Value | None = None, **named: Value) -> Value:
    made = DictValue({}, dict)
    made.method(tx, "update", [] if values is None else [values], named)
    return made


@handles(collections.OrderedDict)
def _ordered_dict(tx: Translator, values: Value | None = None, **named: Value) -> Value:
    made = DictValue({}, collections.OrderedDict)
    made.method(tx, "update", [] if values is None else [values], named)
    return made


@handles(collections.defaultdict)
def _defaultdict(tx: Translator, factory: Value = NONE, values: Value | None = None, **named: Value) -> Value:
    made = DictValue({}, collections.defaultdict, None, factory)
    made.method(tx, "update", [] if values is None else [values], named)
    return made


@handles(set, frozenset)
def _set(tx: Translator, values: Value | None = None) -> Value:
    return SetValue({} if values is None else dict.fromkeys(tx.key(item) for item in values.items_of(tx)), set)


HANDLERS[frozenset] = lambda tx, values=None: SetValue(_set(tx, values).items, frozenset)


@handles(range)
def _range(tx: Translator, *bounds: Value) -> Value:
    found = fold(range, *bounds)
    return RangeValue(found.constant())


@handles(slice)
def _slice(tx: Translator, *parts: Value) -> Value:
    padded = [NONE, *parts, NONE] if len(parts) == 1 else [*parts, *[NONE] * (3 - len(parts))]
    return SliceValue(padded)


@handles(iter)
def _iter(tx: Translator, value: Value) -> Value:
    if isinstance(value, ObjectValue):
        return value.method(tx, "__iter__", [], {})
    return iterate(tx, value)


@handles(next)
def _next(tx: Translator, iterator: Value, *default: Value) -> Value:
    try:
        return tx.next_or_raise(iterator)
    except Raised as error:
        if default and issubclass(error.value.python_type(), StopIteration):
            return default[0]
        raise


@handles(reversed)
def _reversed(tx: Translator, values: Value) -> Value:
    if isinstance(values, ObjectValue):
        return values.method(tx, "__reversed__", [], {})
    is_list = isinstance(values, SequenceValue) and values.is_mutable
    return IteratorValue(iter(values.items_of(tx)[::-1]), runs_code=is_list)


@handles(enumerate)
def _enumerate(tx: Translator, values: Value, start: Value = ConstantValue(0)) -> Value:  # noqa: B008
    first, inner = start.constant(), _iter(tx, values)
    pairs = (SequenceValue([ConstantValue(first + i), value], tuple) for i, value in enumerate(tx.drain(inner)))
    return WrappedIteratorValue(enumerate, pairs, [inner], start=first)


@handles(zip)
def _zip(tx: Translator, *values: Value, strict: Value = ConstantValue(False)) -> Value:  # noqa: B008
    inner = [_iter(tx, value) for value in values]
    if strict.truth(tx):
        return IteratorValue(_strictly(zip(*map(tx.drain, inner), strict=True)), zip, runs_code=True)
    groups = zip(*map(tx.drain, inner), strict=False)
    return WrappedIteratorValue(zip, (SequenceValue(list(group), tuple) for group in groups), inner)


def _strictly(groups: Iterator[tuple]) -> Iterator[Value]:
    try:
        for group in groups:
            yield SequenceValue(list(group), tuple)
    except ValueError as error:
        raise raised(error) from None


@handles(map)
def _map(tx: Translator, function: Value, *values: Value) -> Value:
    inner = [_iter(tx, value) for value in values]
    results = (function.call(tx, list(group), {}) for group in zip(*map(tx.drain, inner), strict=False))
    return WrappedIteratorValue(map, results, inner, function)


@handles(filter)
def _filter(tx: Translator, function: Value, values: Value) -> Value:
    keeps_true = function.is_constant() and function.constant() is None
    inner = _iter(tx, values)
    kept = (v for v in tx.drain(inner) if (v if keeps_true else function.call(tx, [v], {})).truth(tx))
    return WrappedIteratorValue(filter, kept, [inner], function)


def _runs_code(values: Value) -> bool:
    """Whether iterating runs code of the program, or may see a change before the next value is taken."""
    return not (isinstance(values, RangeValue) or (isinstance(values, SequenceValue) and not values.is_mutable))


@handles(sorted)
def _sorted(tx: Translator, values: Value, key: Value = NONE, reverse: Value = ConstantValue(False)) -> Value:  # noqa: B008
    return SequenceValue(sort_values(tx, values.items_of(tx), key, reverse), list)


@handles(sum)
def _sum(tx: Translator, values: Value, start: Value = ConstantValue(0)) -> Value:  # noqa: B008
    total = start
    for value in tx.lazily(values):
        total = binary(tx, "+", total, value)
    return total


@handles(any)
def _any(tx: Translator, values: Value) -> Value:
    return ConstantValue(any(value.truth(tx) for value in tx.lazily(values)))


@handles(all)
def _all(tx: Translator, values: Value) -> Value:
    return ConstantValue(all(value.truth(tx) for value in tx.lazily(values)))


def _extreme(symbol: str, name: str) -> Callable:
    def extreme(tx: Translator, *values: Value, key: Value = NONE, default: Value | None = None) -> Value:
        candidates = values[0].items_of(tx) if len(values) == 1 else list(values)
        if not candidates:
            if default is not None:
                return default
            raise raised(ValueError(f"{name}() iterable argument is empty"))
        has_key = not (key.is_constant() and key.constant() is None)
        best = candidates[0]
        best_key = key.call(tx, [best], {}) if has_key else best
        for value in candidates[1:]:
            value_key = key.call(tx, [value], {}) if has_key else value
            if compare(tx, symbol, value_key, best_key).truth(tx):
                best, best_key = value, value_key
        return best

    return extreme


HANDLERS[min], HANDLERS[max] = _extreme("<", "min"), _extreme(">", "max")


@handles(super)
def _super(tx: Translator, *args: Value) -> Value:
    if not args:
        return tx.implicit_super()
    return SuperValue(args[0].constant(), args[1])


@handles(functools.partial)
def _partial(tx: Translator, function: Value, *args: Value, **kwargs: Value) -> Value:
    return PartialValue(functools.partial, function, list(args), kwargs)


@handles(functools.reduce)
def _reduce(tx: Translator, function: Value, values: Value, *start: Value) -> Value:
    source = iter([*start, *values.items_of(tx)])
    total = next(source, None)
    if total is None:
        raise raised(TypeError("reduce() of empty iterable with no initial value"))
    for value in source:
        total = function.call(tx, [total, value], {})
    return total


@handles(itertools.chain)
def _chain(tx: Translator, *values: Value) -> Value:
    chained = itertools.chain.from_iterable(map(tx.lazily, values))
    return IteratorValue(chained, itertools.chain, any(map(_runs_code, values)))


@handles(itertools.product)
def _product(tx: Translator, *values: Value, repeat: Value = ConstantValue(1)) -> Value:  # noqa: B008
    groups = itertools.product(*[value.items_of(tx) for value in values], repeat=repeat.constant())
    return IteratorValue(SequenceValue(list(group), tuple) for group in groups)


@handles(itertools.islice)
def _islice(tx: Translator, values: Value, *bounds: Value) -> Value:
    taken = itertools.islice(tx.lazily(values), *[bound.constant() for bound in bounds])
    return IteratorValue(taken, itertools.islice, _runs_code(values))


@handles(itertools.accumulate)
def _accumulate(tx: Translator, values: Value, function: Value | None = None) -> Value:
    def combine(left: Value, right: Value) -> Value:
        return binary(tx, "+", left, right) if function is None else function.call(tx, [left, right], {})

    return IteratorValue(itertools.accumulate(tx.lazily(values), combine), itertools.accumulate, runs_code=True)


@handles(eval, exec, globals, locals, vars, dir, breakpoint, sys._getframe, sys.exc_info, sys._current_frames)
def _frame(tx: Translator, *args: Value, **kwargs: Value) -> Value:
    kind = FrameNeeded if tx.parent is None else GraphBreak
    raise kind("a call that looks at the frame", "move it out of the compiled function")


@handles(print, input, open, compile)
def _effect(tx: Translator, *args: Value, **kwargs: Value) -> Value:
    raise GraphBreak("a call with an effect on the world", "move it out of the compiled function")


@handles(copy.copy)
def _copy(tx: Translator, value: Value) -> Value:
    if isinstance(value, SequenceValue | DictValue | SetValue):
        return value.method(tx, "copy", [], {})
    raise GraphBreak(f"a copy of {value}")


class GetterValue(Value):
    """`operator.itemgetter` or `operator.attrgetter`."""

    def __init__(self, kind: type, keys: list[Value]) -> None:
        self.kind = kind
        self.keys = keys

    def python_type(self) -> type:
        return self.kind

    def truth(self, tx: Translator) -> bool:
        return True

    def call(self, tx: Translator, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if len(args) != 1 or kwargs:
            raise GraphBreak(f"{self.kind.__name__} with these arguments")
        found = [self._get(tx, args[0], key) for key in self.keys]
        return found[0] if len(found) == 1 else SequenceValue(found, tuple)

    def _get(self, tx: Translator, value: Value, key: Value) -> Value:
        if self.kind is operator.itemgetter:
            return tx.item(value, key)
        for name in key.constant().split("."):
            value = value.attribute(tx, name)
        return value

    def write(self, writer: ProgramWriter) -> str:
        return f"{writer.name_of(self.kind, self.kind.__name__)}({', '.join(writer.expression(key) for key in self.keys)})"


HANDLERS[operator.itemgetter] = lambda tx, key, *more: GetterValue(operator.itemgetter, [key, *more])
HANDLERS[operator.attrgetter] = lambda tx, name, *more: GetterValue(operator.attrgetter, [name, *more])


def _operator_handler(symbol: str, function: Callable) -> Callable:
    return lambda tx, left, right: function(tx, symbol, left, right)


for _symbol, _function in {**BINARY, **IN_PLACE}.items():
    HANDLERS[_function] = _operator_handler(_symbol, binary)
for _symbol, _function in COMPARISONS.items():
    HANDLERS[_function] = _operator_handler(_symbol, compare)
HANDLERS[operator.getitem] = lambda tx, value, key: tx.item(value, key)
HANDLERS[operator.is_] = lambda tx, one, other: ConstantValue(one.same_as(other))
HANDLERS[operator.is_not] = lambda tx, one, other: ConstantValue(not one.same_as(other))
HANDLERS[operator.truth] = _bool
HANDLERS[finfo] = lambda tx, *args: ConstantValue(finfo(*[value.constant() for value in args]))
HANDLERS[iinfo] = lambda tx, *args: ConstantValue(iinfo(*[value.constant() for value in args]))
HANDLERS[operator.contains] = lambda tx, values, value: tx.contains(values, value)
HANDLERS[callable] = lambda tx, value: ConstantValue("__call__" in dir(value.python_type()))
HANDLERS[object] = lambda tx: ObjectValue(object)


@handles(object.__setattr__)
def _plain_setattr(tx: Translator, owner: Value, name: Value, value: Value) -> Value:
    if not isinstance(owner, ObjectValue):
        raise GraphBreak(f"object.__setattr__ of {owner}")
    owner.set_plainly(tx, name.constant(), value)
    return NONE


_CALLABLES = frozenset({
    type, abc.ABCMeta, types.BuiltinFunctionType, types.FunctionType, types.WrapperDescriptorType, types.MethodDescriptorType,
})  # fmt: skip
BUILTIN_NAMES = frozenset(value for value in vars(builtins).values() if callable(value) and type(value).__hash__)


def is_builtin(value: object) -> bool:
    """Whether a callable is one of Python's own that this module handles."""
    if type(value) not in _CALLABLES:  # whose equality may be the program's
        return False
    return value in HANDLERS or value in PURE or value in BUILTIN_NAMES


def unary(tx: Translator, symbol: str, value: Value) -> Value:
    """`-value`, `+value` or `~value`."""
    function = {"-": operator.neg, "+": operator.pos, "~": operator.invert}[symbol]
    if isinstance(value, TensorValue):
        return tx.call_in_graph("call_function", function, [value], {})
    if isinstance(value, ObjectValue):
        return value.method(tx, f"__{function.__name__}__", [], {})
    return fold(function, value)


def contains(tx: Translator, values: Value, wanted: Value) -> Value:
    """`wanted in values`."""
    if isinstance(values, TensorValue):
        raise GraphBreak("whether a tensor contains a value")
    if isinstance(values, SequenceValue | DictValue | SetValue | DictViewValue):
        return values.method(tx, "__contains__", [wanted], {})
    if isinstance(values, ObjectValue):
        return ConstantValue(values.method(tx, "__contains__", [wanted], {}).truth(tx))
    if values.is_constant() and wanted.is_constant():
        return fold(operator.contains, values, wanted)
    return ConstantValue(any(one is wanted or compare(tx, "==", one, wanted).truth(tx) for one in values.items_of(tx)))


def make_class_value(kind: type, source: Source | None) -> Value:
    """A class as tracked value: builtin ones as functions that are handled."""
    if issubclass(kind, Tensor) or not is_builtin(kind):
        return ClassValue(kind, source)
    return BuiltinClassValue(kind, source)


class BuiltinClassValue(ClassValue):
    """A builtin class, whose calls have handlers."""

    def call(self, tx: Translator, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if issubclass(self.kind, BaseException):
            return tx.construct(self, args, kwargs)
        return BuiltinValue(self.kind).call(tx, args, kwargs)

    def attribute(self, tx: Translator, name: str) -> Value:
        if name == "fromkeys" and self.kind is dict:
            return BuiltinValue(dict.fromkeys)
        return super().attribute(tx, name)


HANDLERS[dict.fromkeys] = lambda tx, keys, value=NONE: DictValue({tx.key(key): value for key in keys.items_of(tx)}, dict)
HANDLERS[itertools.chain.from_iterable] = lambda tx, groups: IteratorValue(
    itertools.chain.from_iterable(tx.lazily(group) for group in groups.items_of(tx))
)
HANDLERS[math.prod] = lambda tx, values: functools.reduce(
    lambda one, other: binary(tx, "*", one, other), values.items_of(tx), ConstantValue(1)
)
