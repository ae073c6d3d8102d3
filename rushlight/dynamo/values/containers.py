"""Containers: lists, tuples, named tuples, deques, dicts, sets, ranges, slices, and iterators over them.

Their items are tracked values. A list, dict or set that came from outside and was changed is written back by the generated
code.
"""

from __future__ import annotations

import collections
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from rushlight.core.size import Size
from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.sources import Source
from rushlight.dynamo.values.base import MAKERS, PendingValue, Value, realize_all, realized
from rushlight.dynamo.values.constant import ConstantValue, fold, from_python, raised

if TYPE_CHECKING:
    from rushlight.dynamo.program import ProgramWriter
    from rushlight.dynamo.translator import Translator

NONE = ConstantValue(None)


class SequenceValue(Value):
    """A list, tuple, Size, named tuple or deque.

    Items of one from outside may be pending, and its length is guarded (by `assume`) when something depends on it.
    """

    def __init__(self, items: list[Value], kind: type, source: Source | None = None,
                 assume: Callable[[], None] | None = None) -> None:  # fmt: skip
        self.held = items
        self.kind = kind
        self.source = source
        self.assume = assume

    @property
    def items(self) -> list[Value]:
        """All items, which thereby are guarded."""
        return realize_all(self.counted())

    @items.setter
    def items(self, items: list[Value]) -> None:
        self.held = items

    def counted(self) -> list[Value]:
        """The items as they are, with only their number guarded."""
        if self.assume is not None:
            self.assume()
            self.assume = None
        return self.held

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
        return bool(self.counted())

    def length(self, tx: Translator) -> Value:
        return ConstantValue(len(self.counted()))

    def items_of(self, tx: Translator) -> list[Value]:
        return list(self.items)

    def same_as(self, other: Value) -> bool:
        return self is other

    def item(self, tx: Translator, key: Value) -> Value:
        index = self._index_of(tx, key)
        if isinstance(index, slice):
            kind = tuple if hasattr(self.kind, "_fields") else self.kind
            if kind is collections.deque:
                raise raised(TypeError("sequence index must be integer, not 'slice'"))
            try:
                return SequenceValue(self.counted()[index], kind)
            except (TypeError, ValueError) as error:
                raise raised(error) from None
        held = self.held if type(index) is int and 0 <= index < len(self.held) else self.counted()
        try:
            return realized(held[index])
        except IndexError:
            name = "deque" if self.kind is collections.deque else f"{'list' if self.kind is list else 'tuple'} index"
            raise raised(IndexError(f"{name} {'index ' if name == 'deque' else ''}out of range")) from None
        except TypeError as error:
            raise raised(TypeError(str(error).replace("list", self.kind.__name__))) from None

    def _index_of(self, tx: Translator, key: Value) -> Any:
        """An index as a number or slice; objects give theirs by `__index__`."""
        if not key.is_constant() and not isinstance(key, SliceValue):
            kind = key.python_type()
            if not hasattr(kind, "__index__"):
                name = self.kind.__name__ if self.kind in (list, collections.deque) else "tuple"
                raise raised(TypeError(f"{name} indices must be integers or slices, not {kind.__name__}"))
            key = key.method(tx, "__index__", [], {})
        return key.constant()

    def set_item(self, tx: Translator, key: Value, value: Value) -> None:
        self._check_mutable("assignment")
        index = self._index_of(tx, key)
        added = value.items_of(tx) if isinstance(index, slice) else value
        tx.effects.mutates(self)
        try:
            self.counted()[index] = added
        except (IndexError, ValueError, TypeError) as error:
            raise raised(self._spoken(error)) from None

    def delete_item(self, tx: Translator, key: Value) -> None:
        self._check_mutable("deletion")
        index = self._index_of(tx, key)
        tx.effects.mutates(self)
        try:
            del self.counted()[index]
        except (IndexError, TypeError) as error:
            raise raised(self._spoken(error)) from None

    def _spoken(self, error: Exception) -> Exception:
        """A list's error in the words of a deque."""
        return IndexError("deque index out of range") if self.kind is not list and isinstance(error, IndexError) else error

    def _check_mutable(self, what: str) -> None:
        if not self.is_mutable:
            verb = "doesn't" if what == "deletion" else "does not"
            raise raised(TypeError(f"'{self.kind.__name__}' object {verb} support item {what}"))

    def attribute(self, tx: Translator, name: str) -> Value:
        fields = getattr(self.kind, "_fields", ())
        if name in fields:
            return realized(self.held[fields.index(name)])
        member = getattr(self.kind, name, None)
        if fields and name not in ("_asdict", "_replace", "_make") and isinstance(member, types.FunctionType | property):
            if isinstance(member, property):
                return tx.wrap_constant(member.fget).call(tx, [self], {})
            return tx.method_of(self, tx.wrap_constant(member))
        if name == "maxlen" and issubclass(self.kind, collections.deque):
            raise GraphBreak("the maximal length of a deque")
        return tx.bound_method(self, name)

    def method(self, tx: Translator, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        handler = _SEQUENCE_METHODS.get(name)
        if handler is not None and (self.is_mutable or name in ("index", "count", "__contains__")) and hasattr(self.kind, name):
            return call_handler(handler, self, tx, args, kwargs)
        if name == "numel" and self.kind is Size:
            return fold(lambda size: size.numel(), self)
        if name == "_asdict" and hasattr(self.kind, "_fields"):
            return DictValue(dict(zip(self.kind._fields, self.items, strict=True)), dict)
        if name == "_replace" and hasattr(self.kind, "_fields"):
            items = [kwargs.get(field, item) for field, item in zip(self.kind._fields, self.items, strict=True)]
            return SequenceValue(items, self.kind)
        if not hasattr(self.kind, name):
            raise raised(AttributeError(f"'{self.kind.__name__}' object has no attribute '{name}'"))
        if name.startswith("__") or not hasattr(self.kind, "_fields"):
            return special_method(self, tx, name, args)
        return self.attribute(tx, name).call(tx, args, kwargs)

    def node(self, tx: Translator) -> Any:
        items = [item.node(tx) for item in self.items]
        if hasattr(self.kind, "_fields"):
            return self.kind(*items)
        return items if self.is_mutable else tuple(items)

    def write(self, writer: ProgramWriter) -> str:
        items = ", ".join(writer.expression(item) for item in self.counted())
        if self.kind is list:
            return f"[{items}]"
        if self.kind is tuple:
            return f"({items},)" if len(self.items) == 1 else f"({items})"
        name = writer.name_of(self.kind, self.kind.__name__)
        return f"{name}({items})" if hasattr(self.kind, "_fields") else f"{name}([{items}])"

    def write_back(self, writer: ProgramWriter, target: str) -> list[str]:
        """Statements that give the object `target` these items."""
        items = ", ".join(writer.expression(item) for item in self.counted())
        if self.kind is list:
            return [f"{target}[:] = [{items}]"]
        return [f"{target}.clear()", f"{target}.extend([{items}])"]


def _unknown_method(self: Value, name: str) -> Value:
    raise GraphBreak(f"method {name!r} of {self}")


def call_handler(handler: Callable, self: Value, tx: Translator, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Run what stands for a builtin method; arguments that do not fit it are Python's to refuse."""
    try:
        return handler(self, tx, *args, **kwargs)
    except TypeError as error:
        if error.__traceback__.tb_next is None:
            raise GraphBreak(f"arguments that a method of {self} does not take") from None
        raise


def special_method(self: Value, tx: Translator, name: str, args: list[Value]) -> Value:
    """The special methods of containers, called by name."""
    if name == "__getitem__":
        return self.item(tx, *args)
    if name == "__setitem__":
        self.set_item(tx, *args)
        return NONE
    if name == "__delitem__":
        self.delete_item(tx, *args)
        return NONE
    if name == "__len__":
        return self.length(tx)
    if name == "__iter__":
        return iterate(tx, self)
    return _unknown_method(self, name)


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
    """A dict, OrderedDict or defaultdict with constant keys.

    Values of one from outside may be pending; its keys are guarded (by `assume`) when something depends on all of them.
    """

    def __init__(self, items: dict[Any, Value], kind: type, source: Source | None = None,
                 default_factory: Value | None = None, assume: Callable[[], None] | None = None) -> None:  # fmt: skip
        self.held = items
        self.kind = kind
        self.source = source
        self.default_factory = default_factory
        self.assume = assume

    @property
    def items(self) -> dict[Any, Value]:
        """All items, which thereby are guarded."""
        held = self.keyed()
        for key, value in held.items():
            if type(value) is PendingValue:
                held[key] = value.realize()
        return held

    def keyed(self) -> dict[Any, Value]:
        """The items as they are, with only their keys guarded."""
        if self.assume is not None:
            self.assume()
            self.assume = None
        return self.held

    def find(self, tx: Translator, key: Any) -> Value | None:
        """The value of a key, None where there is none; only this is guarded."""
        found = self.held.get(key)
        if self.assume is not None:
            if type(key) in (str, int, bool, type(None)):
                text = f"{key!r} {'not in' if found is None else 'in'} {self.source}"
                tx.guards.add(text, self.source, "whether there is a key")
            else:
                self.keyed()
        return found

    def python_type(self) -> type:
        return self.kind

    def truth(self, tx: Translator) -> bool:
        return bool(self.keyed())

    def length(self, tx: Translator) -> Value:
        return ConstantValue(len(self.keyed()))

    def items_of(self, tx: Translator) -> list[Value]:
        return [tx.key_value(key) for key in self.keyed()]

    def same_as(self, other: Value) -> bool:
        return self is other

    def item(self, tx: Translator, key: Value) -> Value:
        found = self.find(tx, tx.key(key))
        if found is not None:
            return realized(found)
        if self.default_factory is not None and not _is_none(self.default_factory):
            made = self.default_factory.call(tx, [], {})
            self.set_item(tx, key, made)
            return made
        raise raised(KeyError(tx.key(key)))

    def set_item(self, tx: Translator, key: Value, value: Value) -> None:
        tx.effects.mutates(self)
        self.keyed()[tx.key(key)] = value

    def delete_item(self, tx: Translator, key: Value) -> None:
        if self.find(tx, tx.key(key)) is None:
            raise raised(KeyError(tx.key(key)))
        tx.effects.mutates(self)
        del self.keyed()[tx.key(key)]

    def attribute(self, tx: Translator, name: str) -> Value:
        return tx.bound_method(self, name)

    def method(self, tx: Translator, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        handler = _DICT_METHODS.get(name)
        if handler is None:
            if not hasattr(self.kind, name):
                raise raised(AttributeError(f"'{self.kind.__name__}' object has no attribute '{name}'"))
            return special_method(self, tx, name, args)
        if name == "move_to_end" and self.kind is not collections.OrderedDict:
            raise raised(AttributeError(f"'{self.kind.__name__}' object has no attribute '{name}'"))
        if name == "popitem" and self.kind is collections.OrderedDict:
            return call_handler(_ordered_popitem, self, tx, args, kwargs)
        return call_handler(handler, self, tx, args, kwargs)

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
        return "{" + ", ".join(f"{writer.key(key)}: {writer.expression(value)}" for key, value in self.keyed().items()) + "}"

    def write_back(self, writer: ProgramWriter, target: str) -> list[str]:
        """Statements that give the object `target` these items."""
        made = writer.keep(self._literal(writer))
        return [f"{target}.clear()", f"{target}.update({made})"]


def _is_none(value: Value) -> bool:
    return value.is_constant() and value.constant() is None


def _pairs(self: DictValue, tx: Translator) -> list[Value]:
    return [SequenceValue([tx.key_value(key), value], tuple) for key, value in self.items.items()]


def _get(self: DictValue, tx: Translator, key: Value, default: Value = NONE) -> Value:
    found = self.find(tx, tx.key(key))
    return default if found is None else realized(found)


def _setdefault(self: DictValue, tx: Translator, key: Value, default: Value = NONE) -> Value:
    found = self.find(tx, tx.key(key))
    if found is None:
        self.set_item(tx, key, default)
        return default
    return realized(found)


def _dict_pop(self: DictValue, tx: Translator, key: Value, default: Value | None = None) -> Value:
    if self.find(tx, tx.key(key)) is not None:
        tx.effects.mutates(self)
        return realized(self.keyed().pop(tx.key(key)))
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
    "__contains__": lambda self, tx, key: ConstantValue(self.find(tx, tx.key(key)) is not None),
}  # fmt: skip


def _ordered_popitem(self: DictValue, tx: Translator, last: Value = ConstantValue(True)) -> Value:  # noqa: B008
    if last.truth(tx) or not self.items:
        return _popitem(self, tx)
    tx.effects.mutates(self)
    key = next(iter(self.items))
    return SequenceValue([tx.key_value(key), self.items.pop(key)], tuple)


def _move_to_end(self: DictValue, tx: Translator, key: Value, last: Value = ConstantValue(True)) -> Value:  # noqa: B008
    if tx.key(key) not in self.items:
        raise raised(KeyError(tx.key(key)))
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
        return bool(self.owner.keyed())

    def length(self, tx: Translator) -> Value:
        return ConstantValue(len(self.owner.keyed()))

    def items_of(self, tx: Translator) -> list[Value]:
        if self.which == "keys":
            return self.owner.items_of(tx)
        return list(self.owner.items.values()) if self.which == "values" else _pairs(self.owner, tx)

    def method(self, tx: Translator, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name == "__contains__" and self.which == "keys":
            return ConstantValue(self.owner.find(tx, tx.key(args[0])) is not None)
        if name == "__contains__":
            return SequenceValue(self.items_of(tx), list).method(tx, name, args, kwargs)
        if name in _SET_METHODS and self.which != "values":
            return SetValue({tx.key(item): None for item in self.items_of(tx)}, set).method(tx, name, args, kwargs)
        return special_method(self, tx, name, args)

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
        self.check_length()
        return [ConstantValue(number) for number in self.value]

    def check_length(self) -> None:
        """A graph break for a range whose loop would be unrolled without end."""
        if len(self.value) > 100_000:
            hint = "loop inside a function that is not compiled"
            raise GraphBreak(f"a loop over {len(self.value)} numbers would be unrolled", hint)

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
    """An iterator over tracked values, some of which may have been taken.

    `runs_code` tells that taking a value runs code of the program, which must not happen before its time.
    """

    def __init__(self, items: Iterator[Value], kind: type | None = None, runs_code: bool = False) -> None:
        self.items = items
        self.kind = kind
        self.runs_code = runs_code

    def python_type(self) -> type:
        return super().python_type() if self.kind is None else self.kind

    def truth(self, tx: Translator) -> bool:
        return True

    def items_of(self, tx: Translator) -> list[Value]:
        return list(self.items)

    def next(self, tx: Translator) -> Value | None:
        """The next value, None at the end."""
        return next(self.items, None)

    def same_as(self, other: Value) -> bool:
        return self is other

    def method(self, tx: Translator, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name == "__iter__":
            return self
        if name == "__next__":
            return tx.next_or_raise(self)
        return _unknown_method(self, name)

    def write(self, writer: ProgramWriter) -> str:
        if self.runs_code:
            raise GraphBreak("a generator or lazy iterator that is not at its end cannot be made again")
        remaining = list(self.items)
        self.items = iter(remaining)
        return f"iter([{', '.join(writer.expression(item) for item in remaining)}])"


class SequenceIteratorValue(IteratorValue):
    """An iterator over a list, tuple or range, which may change meanwhile. `index` is -1 at its end."""

    def __init__(self, owner: SequenceValue | RangeValue) -> None:
        super().__init__(self._taken(), type(iter(owner.python_type()(()) if isinstance(owner, SequenceValue) else range(0))))
        self.owner = owner
        self.index = 0

    def _taken(self) -> Iterator[Value]:
        while self.index < self._count():
            self.index += 1
            if isinstance(self.owner, RangeValue):
                yield ConstantValue(self.owner.value[self.index - 1])
            else:
                yield realized(self.owner.held[self.index - 1])
        self.index = -1

    def _count(self) -> int:
        return len(self.owner.value if isinstance(self.owner, RangeValue) else self.owner.counted())

    def write(self, writer: ProgramWriter) -> str:
        if self.index < 0:
            return "iter(())"
        made = writer.keep(f"iter({writer.expression(self.owner)})")
        if self.index:
            writer.statement(f"{made}.__setstate__({self.index})")
        return made


class DictIteratorValue(IteratorValue):
    """An iterator over a dict or a view of one: the dict must keep its size."""

    def __init__(self, owner: DictValue, which: str, items: list[Value]) -> None:
        super().__init__(self._taken(items), type(iter(getattr({}, which)())))
        self.owner = owner
        self.which = which
        self.size = len(owner.keyed())
        self.index = 0

    def _taken(self, items: list[Value]) -> Iterator[Value]:
        while self.index < len(items):
            self._check_size()
            self.index += 1
            yield items[self.index - 1]
        self._check_size()
        self.index = -1

    def _check_size(self) -> None:
        if len(self.owner.held) != self.size:
            raise raised(RuntimeError("dictionary changed size during iteration"))

    def write(self, writer: ProgramWriter) -> str:
        if self.index < 0:
            return "iter(())"
        if self.owner.source is not None and writer.is_changed(self.owner) or len(self.owner.held) != self.size:
            raise GraphBreak("an iterator over a dict that has changed")
        return f"{writer.name_of(advanced, 'advanced')}(iter({writer.expression(self.owner)}.{self.which}()), {self.index})"


class WrappedIteratorValue(IteratorValue):
    """`enumerate`, `zip`, `map` or `filter` over the iterators `inner`; `count` is how many values were taken."""

    def __init__(self, kind: type, items: Iterator[Value], inner: list[Value], function: Value | None = None, start: int = 0):
        super().__init__(self._counted(items), kind)
        self.inner = inner
        self.function = function
        self.count = start

    def _counted(self, items: Iterator[Value]) -> Iterator[Value]:
        for item in items:
            self.count += 1
            yield item

    def write(self, writer: ProgramWriter) -> str:
        parts = [writer.expression(value) for value in (*([self.function] if self.function else []), *self.inner)]
        parts += [str(self.count)] if self.kind is enumerate else []
        return f"{writer.name_of(self.kind, self.kind.__name__)}({', '.join(parts)})"


def advanced(iterator: Iterator, count: int) -> Iterator:
    """An iterator from which `count` values have been taken."""
    for _ in range(count):
        next(iterator)
    return iterator


def iterate(tx: Translator, value: Value) -> IteratorValue:
    """`iter(value)`. Lists and dicts are followed while they change; other containers are read at once."""
    if isinstance(value, IteratorValue):
        return value
    if isinstance(value, RangeValue):
        value.check_length()
        return SequenceIteratorValue(value)
    if isinstance(value, SequenceValue) and value.kind in (list, tuple):
        return SequenceIteratorValue(value)
    if isinstance(value, DictValue):
        return DictIteratorValue(value, "keys", value.items_of(tx))
    if isinstance(value, DictViewValue):
        return DictIteratorValue(value.owner, value.which, value.items_of(tx))
    return IteratorValue(iter(value.items_of(tx)))


def _sequence_maker(kind: type) -> Callable[[Any], Value]:
    return lambda value: SequenceValue([from_python(item) for item in value], kind)


MAKERS.update({kind: _sequence_maker(kind) for kind in (list, tuple, Size)})
MAKERS[dict] = lambda value: DictValue({key: from_python(item) for key, item in value.items()}, dict)
MAKERS[set] = lambda value: SetValue(dict.fromkeys(value), set)
MAKERS[frozenset] = lambda value: SetValue(dict.fromkeys(value), frozenset)
MAKERS[range] = RangeValue
MAKERS[slice] = lambda value: SliceValue([from_python(part) for part in (value.start, value.stop, value.step)])
