"""Containers: lists, tuples, named tuples, deques, dicts, sets, ranges, slices, and iterators over them.

Their items are tracked values. A list, dict or set that came from outside and was changed is written back by the generated
code.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from rushlight.core.size import Size
from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.sources import Source
from rushlight.dynamo.values.base import MAKERS, Value
from rushlight.dynamo.values.constant import ConstantValue, fold, from_python, raised

if TYPE_CHECKING:
    from rushlight.dynamo.program import ProgramWriter
    from rushlight.dynamo.translator import Translator

NONE = ConstantValue(None)


class SequenceValue(Value):
    """A list, tuple, Size, named tuple or deque."""

    def __init__(self, items: list[Value], kind: type, source: Source | None = None) -> None:
        self.items = items
        self.kind = kind
        self.source = source

    @property
    def is_mutable(self) -> bool:
        """Whether items may change in place."""
        return not issubclass(self.kind, tuple)

    def python_type(self) -> type:
        return self.kind

    def is_constant(self) -> bool:
        return not self.is_mutable and all(item.is_constant() for item in self.items)

    def constant(self) -> Any:
        if self.is_mutable:
            raise GraphBreak(f"{self} may change, so it is no constant")
        values = [item.constant() for item in self.items]
        return self.kind(*values) if hasattr(self.kind, "_fields") else self.kind(values)

    def truth(self, tx: Translator) -> bool:
        return bool(self.items)

    def length(self, tx: Translator) -> Value:
        return ConstantValue(len(self.items))

    def items_of(self, tx: Translator) -> list[Value]:
        return list(self.items)

    def same_as(self, other: Value) -> bool:
        return self is other

    def item(self, tx: Translator, key: Value) -> Value:
        index = key.constant()
        if isinstance(index, slice):
            return SequenceValue(self.items[index], tuple if hasattr(self.kind, "_fields") else self.kind)
        try:
            return self.items[index]
        except (IndexError, TypeError) as error:
            raise raised(type(error)(str(error).replace("list", self.kind.__name__))) from None

    def set_item(self, tx: Translator, key: Value, value: Value) -> None:
        self._check_mutable("__setitem__")
        index = key.constant()
        tx.effects.mutates(self)
        try:
            self.items[index] = value.items_of(tx) if isinstance(index, slice) else value
        except (IndexError, ValueError, TypeError) as error:
            raise raised(error) from None

    def delete_item(self, tx: Translator, key: Value) -> None:
        self._check_mutable("__delitem__")
        tx.effects.mutates(self)
        try:
            del self.items[key.constant()]
        except (IndexError, TypeError) as error:
            raise raised(error) from None

    def _check_mutable(self, name: str) -> None:
        if not self.is_mutable:
            raise raised(TypeError(f"'{self.kind.__name__}' object does not support item assignment"))

    def attribute(self, tx: Translator, name: str) -> Value:
        fields = getattr(self.kind, "_fields", ())
        if name in fields:
            return self.items[fields.index(name)]
        if name == "maxlen" and issubclass(self.kind, collections.deque):
            raise GraphBreak("the maximal length of a deque")
        return tx.bound_method(self, name)

    def method(self, tx: Translator, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        handler = _SEQUENCE_METHODS.get(name)
        if handler is not None and (self.is_mutable or name in ("index", "count", "__contains__")) and hasattr(self.kind, name):
            return handler(self, tx, *args, **kwargs)
        if name == "numel" and self.kind is Size:
            return fold(lambda size: size.numel(), self)
        if name == "_asdict" and hasattr(self.kind, "_fields"):
            return DictValue(dict(zip(self.kind._fields, self.items, strict=True)), dict)
        if name == "_replace" and hasattr(self.kind, "_fields"):
            items = [kwargs.get(field, item) for field, item in zip(self.kind._fields, self.items, strict=True)]
            return SequenceValue(items, self.kind)
        if not hasattr(self.kind, name):
            raise raised(AttributeError(f"'{self.kind.__name__}' object has no attribute '{name}'"))
        return _unknown_method(self, name)

    def node(self, tx: Translator) -> Any:
        items = [item.node(tx) for item in self.items]
        if hasattr(self.kind, "_fields"):
            return self.kind(*items)
        return items if self.is_mutable else tuple(items)

    def write(self, writer: ProgramWriter) -> str:
        items = ", ".join(writer.expression(item) for item in self.items)
        if self.kind is list:
            return f"[{items}]"
        if self.kind is tuple:
            return f"({items},)" if len(self.items) == 1 else f"({items})"
        name = writer.name_of(self.kind, self.kind.__name__)
        return f"{name}({items})" if hasattr(self.kind, "_fields") else f"{name}([{items}])"

    def write_back(self, writer: ProgramWriter, target: str) -> list[str]:
        """Statements that give the object `target` these items."""
        items = ", ".join(writer.expression(item) for item in self.items)
        if self.kind is list:
            return [f"{target}[:] = [{items}]"]
        return [f"{target}.clear()", f"{target}.extend([{items}])"]


def _unknown_method(self: Value, name: str) -> Value:
    raise GraphBreak(f"method {name!r} of {self}")


def _find(self: SequenceValue, tx: Translator, wanted: Value) -> Iterator[int]:
    for index, item in enumerate(self.items):
        if item is wanted or tx.compare("==", item, wanted).truth(tx):
            yield index


def _append(self: SequenceValue, tx: Translator, value: Value) -> Value:
    tx.effects.mutates(self)
    self.items.append(value)
    return NONE


def _appendleft(self: SequenceValue, tx: Translator, value: Value) -> Value:
    tx.effects.mutates(self)
    self.items.insert(0, value)
    return NONE


def _extend(self: SequenceValue, tx: Translator, values: Value) -> Value:
    added = values.items_of(tx)
    tx.effects.mutates(self)
    self.items.extend(added)
    return NONE


def _insert(self: SequenceValue, tx: Translator, index: Value, value: Value) -> Value:
    tx.effects.mutates(self)
    self.items.insert(index.constant(), value)
    return NONE


def _pop(self: SequenceValue, tx: Translator, index: Value | None = None) -> Value:
    tx.effects.mutates(self)
    try:
        return self.items.pop(-1 if index is None else index.constant())
    except IndexError as error:
        raise raised(error) from None


def _popleft(self: SequenceValue, tx: Translator) -> Value:
    return _pop(self, tx, ConstantValue(0))


def _remove(self: SequenceValue, tx: Translator, value: Value) -> Value:
    index = next(_find(self, tx, value), None)
    if index is None:
        raise raised(ValueError("list.remove(x): x not in list"))
    tx.effects.mutates(self)
    del self.items[index]
    return NONE


def _clear(self: Value, tx: Translator) -> Value:
    tx.effects.mutates(self)
    self.items.clear()
    return NONE


def _reverse(self: SequenceValue, tx: Translator) -> Value:
    tx.effects.mutates(self)
    self.items.reverse()
    return NONE


def _sort(self: SequenceValue, tx: Translator, key: Value = NONE, reverse: Value = ConstantValue(False)) -> Value:  # noqa: B008
    ordered = sort_values(tx, self.items, key, reverse)
    tx.effects.mutates(self)
    self.items[:] = ordered
    return NONE


def _copy(self: SequenceValue, tx: Translator) -> Value:
    return SequenceValue(list(self.items), self.kind)


def _index(self: SequenceValue, tx: Translator, value: Value) -> Value:
    index = next(_find(self, tx, value), None)
    if index is None:
        raise raised(ValueError(f"{value} is not in {self.kind.__name__}"))
    return ConstantValue(index)


def _count(self: SequenceValue, tx: Translator, value: Value) -> Value:
    return ConstantValue(sum(1 for _ in _find(self, tx, value)))


def _contains(self: SequenceValue, tx: Translator, value: Value) -> Value:
    return ConstantValue(next(_find(self, tx, value), None) is not None)


_SEQUENCE_METHODS: dict[str, Callable] = {
    "append": _append, "appendleft": _appendleft, "extend": _extend, "insert": _insert, "pop": _pop, "popleft": _popleft,
    "remove": _remove, "clear": _clear, "reverse": _reverse, "sort": _sort, "copy": _copy, "index": _index,
    "count": _count, "__contains__": _contains,
}  # fmt: skip


def sort_values(tx: Translator, values: list[Value], key: Value, reverse: Value) -> list[Value]:
    """The values sorted as `sorted` does, by constant keys."""
    keyed = values if key.is_constant() else [key.call(tx, [value], {}) for value in values]
    order = [value.constant() for value in keyed]
    try:
        positions = sorted(range(len(values)), key=order.__getitem__, reverse=reverse.truth(tx))
    except TypeError as error:
        raise raised(error) from None
    return [values[position] for position in positions]


class DictValue(Value):
    """A dict, OrderedDict or defaultdict with constant keys."""

    def __init__(self, items: dict[Any, Value], kind: type, source: Source | None = None,
                 default_factory: Value | None = None) -> None:  # fmt: skip
        self.items = items
        self.kind = kind
        self.source = source
        self.default_factory = default_factory

    def python_type(self) -> type:
        return self.kind

    def truth(self, tx: Translator) -> bool:
        return bool(self.items)

    def length(self, tx: Translator) -> Value:
        return ConstantValue(len(self.items))

    def items_of(self, tx: Translator) -> list[Value]:
        return [tx.key_value(key) for key in self.items]

    def same_as(self, other: Value) -> bool:
        return self is other

    def item(self, tx: Translator, key: Value) -> Value:
        found = self.items.get(tx.key(key))
        if found is not None:
            return found
        if self.default_factory is not None and not _is_none(self.default_factory):
            made = self.default_factory.call(tx, [], {})
            self.set_item(tx, key, made)
            return made
        raise raised(KeyError(tx.key(key)))

    def set_item(self, tx: Translator, key: Value, value: Value) -> None:
        tx.effects.mutates(self)
        self.items[tx.key(key)] = value

    def delete_item(self, tx: Translator, key: Value) -> None:
        if tx.key(key) not in self.items:
            raise raised(KeyError(tx.key(key)))
        tx.effects.mutates(self)
        del self.items[tx.key(key)]

    def attribute(self, tx: Translator, name: str) -> Value:
        return tx.bound_method(self, name)

    def method(self, tx: Translator, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        handler = _DICT_METHODS.get(name)
        if handler is None:
            if not hasattr(self.kind, name):
                raise raised(AttributeError(f"'{self.kind.__name__}' object has no attribute '{name}'"))
            return _unknown_method(self, name)
        return handler(self, tx, *args, **kwargs)

    def node(self, tx: Translator) -> Any:
        return {key: value.node(tx) for key, value in self.items.items()}

    def write(self, writer: ProgramWriter) -> str:
        text = self._literal(writer)
        if self.kind is dict:
            return text
        name = writer.name_of(self.kind, self.kind.__name__)
        if self.default_factory is not None:
            return f"{name}({writer.expression(self.default_factory)}, {text})"
        return f"{name}({text})"

    def _literal(self, writer: ProgramWriter) -> str:
        return "{" + ", ".join(f"{writer.key(key)}: {writer.expression(value)}" for key, value in self.items.items()) + "}"

    def write_back(self, writer: ProgramWriter, target: str) -> list[str]:
        """Statements that give the object `target` these items."""
        made = writer.keep(self._literal(writer))
        return [f"{target}.clear()", f"{target}.update({made})"]


def _is_none(value: Value) -> bool:
    return value.is_constant() and value.constant() is None


def _pairs(self: DictValue, tx: Translator) -> list[Value]:
    return [SequenceValue([tx.key_value(key), value], tuple) for key, value in self.items.items()]


def _get(self: DictValue, tx: Translator, key: Value, default: Value = NONE) -> Value:
    return self.items.get(tx.key(key), default)


def _setdefault(self: DictValue, tx: Translator, key: Value, default: Value = NONE) -> Value:
    if tx.key(key) not in self.items:
        self.set_item(tx, key, default)
    return self.items[tx.key(key)]


def _dict_pop(self: DictValue, tx: Translator, key: Value, default: Value | None = None) -> Value:
    if tx.key(key) in self.items:
        tx.effects.mutates(self)
        return self.items.pop(tx.key(key))
    if default is None:
        raise raised(KeyError(tx.key(key)))
    return default


def _update(self: DictValue, tx: Translator, other: Value | None = None, **named: Value) -> Value:
    tx.effects.mutates(self)
    if isinstance(other, DictValue):
        self.items.update(other.items)
    elif other is not None:
        for pair in other.items_of(tx):
            key, value = pair.items_of(tx)
            self.items[tx.key(key)] = value
    self.items.update(named)
    return NONE


def _popitem(self: DictValue, tx: Translator) -> Value:
    if not self.items:
        raise raised(KeyError("popitem(): dictionary is empty"))
    tx.effects.mutates(self)
    key, value = self.items.popitem()
    return SequenceValue([tx.key_value(key), value], tuple)


_DICT_METHODS: dict[str, Callable] = {
    "get": _get, "setdefault": _setdefault, "pop": _dict_pop, "update": _update, "popitem": _popitem, "clear": _clear,
    "keys": lambda self, tx: DictViewValue(self, "keys"), "values": lambda self, tx: DictViewValue(self, "values"),
    "items": lambda self, tx: DictViewValue(self, "items"),
    "copy": lambda self, tx: DictValue(dict(self.items), self.kind, None, self.default_factory),
    "__contains__": lambda self, tx, key: ConstantValue(tx.key(key) in self.items),
}  # fmt: skip


def _move_to_end(self: DictValue, tx: Translator, key: Value, last: Value = ConstantValue(True)) -> Value:  # noqa: B008
    tx.effects.mutates(self)
    value = self.items.pop(tx.key(key))
    rest = dict(self.items)
    self.items.clear()
    self.items.update({**rest, tx.key(key): value} if last.truth(tx) else {tx.key(key): value, **rest})
    return NONE


class DictViewValue(Value):
    """`keys()`, `values()` or `items()` of a dict."""

    def __init__(self, owner: DictValue, which: str) -> None:
        self.owner = owner
        self.which = which

    def python_type(self) -> type:
        return type(getattr({}, self.which)())

    def truth(self, tx: Translator) -> bool:
        return bool(self.owner.items)

    def length(self, tx: Translator) -> Value:
        return ConstantValue(len(self.owner.items))

    def items_of(self, tx: Translator) -> list[Value]:
        if self.which == "keys":
            return self.owner.items_of(tx)
        return list(self.owner.items.values()) if self.which == "values" else _pairs(self.owner, tx)

    def method(self, tx: Translator, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name == "__contains__" and self.which == "keys":
            return ConstantValue(tx.key(args[0]) in self.owner.items)
        return SequenceValue(self.items_of(tx), list).method(tx, name, args, kwargs)

    def write(self, writer: ProgramWriter) -> str:
        return f"{writer.expression(self.owner)}.{self.which}()"


class SetValue(Value):
    """A set or frozenset of constants."""

    def __init__(self, items: dict[Any, None], kind: type, source: Source | None = None) -> None:
        self.items = items
        self.kind = kind
        self.source = source

    def python_type(self) -> type:
        return self.kind

    def truth(self, tx: Translator) -> bool:
        return bool(self.items)

    def length(self, tx: Translator) -> Value:
        return ConstantValue(len(self.items))

    def items_of(self, tx: Translator) -> list[Value]:
        # A real set's order, which depends on the hashes.
        return [tx.key_value(key) for key in set(self.items)]

    def same_as(self, other: Value) -> bool:
        return self is other

    def attribute(self, tx: Translator, name: str) -> Value:
        return tx.bound_method(self, name)

    def method(self, tx: Translator, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name == "__contains__":
            return ConstantValue(tx.key(args[0]) in self.items)
        if name in ("add", "discard", "remove", "update", "clear", "pop"):
            return self._change(tx, name, args)
        others = [{tx.key(item) for item in value.items_of(tx)} for value in args]
        if name in _SET_METHODS:
            result = getattr(self.kind(self.items), name)(*others)
            return SetValue(dict.fromkeys(result), self.kind) if isinstance(result, set | frozenset) else from_python(result)
        return _unknown_method(self, name)

    def _change(self, tx: Translator, name: str, args: list[Value]) -> Value:
        tx.effects.mutates(self)
        changed = set(self.items)
        try:
            if name == "update":
                changed.update(*({tx.key(item) for item in value.items_of(tx)} for value in args))
                result = None
            else:
                result = getattr(changed, name)(*(tx.key(value) for value in args))
        except KeyError as error:
            raise raised(error) from None
        self.items = dict.fromkeys(changed)
        return tx.key_value(result) if name == "pop" else NONE

    def write(self, writer: ProgramWriter) -> str:
        items = ", ".join(map(writer.key, self.items))
        return f"{writer.name_of(self.kind, self.kind.__name__)}([{items}])"

    def write_back(self, writer: ProgramWriter, target: str) -> list[str]:
        """Statements that give the object `target` these items."""
        made = writer.keep(self.write(writer))
        return [f"{target}.clear()", f"{target}.update({made})"]


_SET_METHODS = frozenset({
    "union", "intersection", "difference", "symmetric_difference", "copy", "issubset", "issuperset", "isdisjoint",
})  # fmt: skip
_DICT_METHODS["move_to_end"] = _move_to_end


class RangeValue(ConstantValue):
    """A range of known numbers."""

    def length(self, tx: Translator) -> Value:
        return ConstantValue(len(self.value))

    def items_of(self, tx: Translator) -> list[Value]:
        if len(self.value) > 100_000:
            hint = "loop inside a function that is not compiled"
            raise GraphBreak(f"a loop over {len(self.value)} numbers would be unrolled", hint)
        return [ConstantValue(number) for number in self.value]

    def same_as(self, other: Value) -> bool:
        return self is other


class SliceValue(Value):
    """A slice."""

    def __init__(self, parts: list[Value]) -> None:
        self.parts = parts

    def python_type(self) -> type:
        return slice

    def is_constant(self) -> bool:
        return all(part.is_constant() for part in self.parts)

    def constant(self) -> Any:
        return slice(*[part.constant() for part in self.parts])

    def attribute(self, tx: Translator, name: str) -> Value:
        return self.parts[("start", "stop", "step").index(name)]

    def node(self, tx: Translator) -> Any:
        return slice(*[part.node(tx) for part in self.parts])

    def write(self, writer: ProgramWriter) -> str:
        return f"slice({', '.join(writer.expression(part) for part in self.parts)})"


class IteratorValue(Value):
    """An iterator over tracked values, some of which may have been taken."""

    def __init__(self, items: Iterator[Value]) -> None:
        self.items = items

    def python_type(self) -> type:
        return type(iter(()))

    def truth(self, tx: Translator) -> bool:
        return True

    def items_of(self, tx: Translator) -> list[Value]:
        return list(self.items)

    def next(self, tx: Translator) -> Value | None:
        """The next value, None at the end."""
        return next(self.items, None)

    def same_as(self, other: Value) -> bool:
        return self is other

    def write(self, writer: ProgramWriter) -> str:
        remaining = list(self.items)
        self.items = iter(remaining)
        return f"iter([{', '.join(writer.expression(item) for item in remaining)}])"


def iterate(tx: Translator, value: Value) -> IteratorValue:
    """`iter(value)`. A list is followed while it changes; other containers are read at once."""
    if isinstance(value, IteratorValue):
        return value
    if isinstance(value, SequenceValue) and value.is_mutable:
        return IteratorValue(_following(value))
    return IteratorValue(iter(value.items_of(tx)))


def _following(owner: SequenceValue) -> Iterator[Value]:
    index = 0
    while index < len(owner.items):
        yield owner.items[index]
        index += 1


def _sequence_maker(kind: type) -> Callable[[Any], Value]:
    return lambda value: SequenceValue([from_python(item) for item in value], kind)


MAKERS.update({kind: _sequence_maker(kind) for kind in (list, tuple, Size)})
MAKERS[dict] = lambda value: DictValue({key: from_python(item) for key, item in value.items()}, dict)
MAKERS[set] = lambda value: SetValue(dict.fromkeys(value), set)
MAKERS[frozenset] = lambda value: SetValue(dict.fromkeys(value), frozenset)
MAKERS[range] = RangeValue
MAKERS[slice] = lambda value: SliceValue([from_python(part) for part in (value.start, value.stop, value.step)])
