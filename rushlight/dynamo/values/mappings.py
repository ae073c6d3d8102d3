"""Dicts with their views and iterators. Keys are constants.

Generated code writes changes back to dicts from outside.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.sources import Source
from rushlight.dynamo.values.base import MAKERS, PendingValue, Raised, Value, realized
from rushlight.dynamo.values.constant import NONE, ConstantValue, from_python, raised
from rushlight.dynamo.values.iterators import IteratorValue, advanced, call_handler, special_method
from rushlight.dynamo.values.sequences import SequenceValue
from rushlight.dynamo.values.sets import SetValue

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following, Writer


class DictValue(Value):
    """A dict, OrderedDict or defaultdict with constant keys.

    A dict from outside may have pending values. Its keys are guarded (by `assume`) when something depends on all of them.
    """

    def __init__(self, items: dict[Any, Value], kind: type, source: Source | None = None,
                 default_factory: Value | None = None, assume: Callable[[], None] | None = None) -> None:  # fmt: skip
        self.held = items
        self.kind = kind
        self.source = source
        self.default_factory = default_factory
        self.assume = assume
        self.stored: dict[Any, None] = {}  # keys that were written, in order
        self.is_rebuilt = False  # True after an item was removed or reordered
        self.is_part = False  # True for the built-in part of an instance of a user's subclass

    @property
    def items(self) -> dict[Any, Value]:
        """Return all items, realized and thereby guarded. For reading only."""
        held = self.keyed()
        for key, value in held.items():
            if type(value) is PendingValue:
                held[key] = value.realize()
        return held

    def keyed(self) -> dict[Any, Value]:
        """Return the items, possibly pending, with only the keys guarded."""
        if self.assume is not None:
            self.assume()
            self.assume = None
        return self.held

    def as_dict(self, tx: Following) -> DictValue:
        """Return the items as a dict that really holds them."""
        return self

    def find(self, tx: Following, key: Any) -> Value | None:
        """Return the value of a key, None if it is missing; guards only this key."""
        found = self.held.get(key)
        if self.assume is not None:
            if type(key) in (str, int, bool, type(None)):
                tx.guards.has_key(self.source, key, found is not None)
            else:
                self.keyed()
        return found

    def python_type(self) -> type:
        return self.kind

    def snapshot(self) -> Any:
        items = {key: item.snapshot() for key, item in self.items.items()}
        if self.default_factory is None:
            return self.kind(items)
        return self.kind(self.default_factory.constant(), items)

    def truth(self, tx: Following) -> bool:
        return bool(self.keyed())

    def length(self, tx: Following) -> Value:
        return ConstantValue(len(self.keyed()))

    def items_of(self, tx: Following) -> list[Value]:
        return [tx.key_value(key) for key in self.keyed()]

    def same_as(self, other: Value) -> bool:
        return self is other

    def iterator(self, tx: Following) -> Value:
        return DictIteratorValue(self, "keys", self.items_of(tx))

    def item(self, tx: Following, key: Value) -> Value:
        found = self.find(tx, tx.key(key))
        if found is not None:
            return realized(found)
        if self.default_factory is not None and not _is_none(self.default_factory):
            made = self.default_factory.call(tx, [], {})
            self.set_item(tx, key, made)
            return made
        raise raised(KeyError(tx.key(key)))

    def store(self, tx: Following, key: Any, value: Value) -> None:
        """Write an item."""
        self.find(tx, key)
        tx.effects.mutates(self)
        self.held[key] = value
        self.stored[key] = None

    def remove(self, tx: Following, key: Any) -> Value:
        """Remove an existing item."""
        tx.effects.mutates(self)
        self.is_rebuilt = True
        return realized(self.keyed().pop(key))

    def set_item(self, tx: Following, key: Value, value: Value) -> None:
        self.store(tx, tx.key(key), value)

    def delete_item(self, tx: Following, key: Value) -> None:
        if self.find(tx, tx.key(key)) is None:
            raise raised(KeyError(tx.key(key)))
        self.remove(tx, tx.key(key))

    def attribute(self, tx: Following, name: str) -> Value:
        if name == "default_factory" and self.default_factory is not None:
            return self.default_factory
        return tx.bound_method(self, name)

    def method(self, tx: Following, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
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

    def node(self, tx: Following) -> Any:
        return {key: value.node(tx) for key, value in self.items.items()}

    def write(self, writer: Writer) -> str:
        text = self._write_literal(writer)
        if self.kind is dict:
            return text
        name = writer.name_of(self.kind, self.kind.__name__)
        if self.default_factory is not None:
            return f"{name}({writer.expression(self.default_factory)}, {text})"
        return f"{name}({text})"

    def _write_literal(self, writer: Writer) -> str:
        return "{" + ", ".join(f"{writer.key(key)}: {writer.expression(value)}" for key, value in self.keyed().items()) + "}"

    def write_back(self, writer: Writer, target: str) -> list[str]:
        """Return statements that write these items to the object `target`."""
        if self.is_part:
            kind = writer.name_of(self.kind, self.kind.__name__)
            keys = self.keyed() if self.is_rebuilt else self.stored
            lines = [f"{kind}.clear({target})"] if self.is_rebuilt else []
            stored = {key: writer.expression(self.held[key]) for key in keys}
            return lines + [f"{kind}.__setitem__({target}, {writer.key(key)}, {text})" for key, text in stored.items()]
        if not self.is_rebuilt:
            return [f"{target}[{writer.key(key)}] = {writer.expression(self.held[key])}" for key in self.stored]
        made = writer.keep(self._write_literal(writer))
        return [f"{target}.clear()", f"{target}.update({made})"]


def _is_none(value: Value) -> bool:
    return value.is_constant() and value.constant() is None


def _pairs(self: DictValue, tx: Following) -> list[Value]:
    return [SequenceValue([tx.key_value(key), value], tuple) for key, value in self.items.items()]


def _get(self: DictValue, tx: Following, key: Value, default: Value = NONE) -> Value:
    found = self.find(tx, tx.key(key))
    return default if found is None else realized(found)


def _setdefault(self: DictValue, tx: Following, key: Value, default: Value = NONE) -> Value:
    found = self.find(tx, tx.key(key))
    if found is None:
        self.set_item(tx, key, default)
        return default
    return realized(found)


def _dict_pop(self: DictValue, tx: Following, key: Value, default: Value | None = None) -> Value:
    if self.find(tx, tx.key(key)) is not None:
        return self.remove(tx, tx.key(key))
    if default is None:
        raise raised(KeyError(tx.key(key)))
    return default


def _update(self: DictValue, tx: Following, other: Value | None = None, /, **named: Value) -> Value:
    pairs: list[tuple[Any, Value]] = []
    inherited = getattr(other, "contents", other)
    if isinstance(inherited, DictValue) and (inherited is other or other.is_iterated_plainly()):
        pairs = list(inherited.as_dict(tx).items.items())
    elif other is not None and hasattr(other.python_type(), "keys"):
        keys = other.method(tx, "keys", [], {}).items_of(tx)
        pairs = [(tx.key(key), tx.item(other, key)) for key in keys]
    elif other is not None:
        found = [_pair(tx, index, item) for index, item in enumerate(other.items_of(tx))]
        pairs = [(tx.key(key), value) for key, value in found]
    for key, value in [*pairs, *named.items()]:
        self.store(tx, key, value)
    return NONE


def _pair(tx: Following, index: int, item: Value) -> list[Value]:
    try:
        parts = item.items_of(tx)
    except Raised:
        raise raised(TypeError(f"cannot convert dictionary update sequence element #{index} to a sequence")) from None
    if len(parts) != 2:
        message = f"dictionary update sequence element #{index} has length {len(parts)}; 2 is required"
        raise raised(ValueError(message))
    return parts


def _popitem(self: DictValue, tx: Following) -> Value:
    if not self.items:
        raise raised(KeyError("popitem(): dictionary is empty"))
    key = next(reversed(self.items))
    return SequenceValue([tx.key_value(key), self.remove(tx, key)], tuple)


def _ordered_popitem(self: DictValue, tx: Following, last: Value = ConstantValue(True)) -> Value:  # noqa: B008
    if last.truth(tx) or not self.items:
        return _popitem(self, tx)
    key = next(iter(self.items))
    return SequenceValue([tx.key_value(key), self.remove(tx, key)], tuple)


def _move_to_end(self: DictValue, tx: Following, key: Value, last: Value = ConstantValue(True)) -> Value:  # noqa: B008
    if tx.key(key) not in self.items:
        raise raised(KeyError(tx.key(key)))
    value = self.remove(tx, tx.key(key))
    rest = dict(self.items)
    self.held = {**rest, tx.key(key): value} if last.truth(tx) else {tx.key(key): value, **rest}
    return NONE


def _clear(self: DictValue, tx: Following) -> Value:
    for key in list(self.keyed()):
        self.remove(tx, key)
    return NONE


_DICT_METHODS: dict[str, Callable] = {
    "get": _get, "setdefault": _setdefault, "pop": _dict_pop, "update": _update, "popitem": _popitem, "clear": _clear,
    "move_to_end": _move_to_end,
    "keys": lambda self, tx: DictViewValue(self, "keys"), "values": lambda self, tx: DictViewValue(self, "values"),
    "items": lambda self, tx: DictViewValue(self, "items"),
    "copy": lambda self, tx: DictValue(dict(self.items), self.kind, None, self.default_factory),
    "__contains__": lambda self, tx, key: ConstantValue(self.find(tx, tx.key(key)) is not None),
}  # fmt: skip


class DictViewValue(Value):
    """`keys()`, `values()` or `items()` of a dict."""

    def __init__(self, owner: DictValue, which: str) -> None:
        self.owner = owner
        self.which = which

    def python_type(self) -> type:
        return type(getattr({}, self.which)())

    def truth(self, tx: Following) -> bool:
        return bool(self.owner.keyed())

    def length(self, tx: Following) -> Value:
        return ConstantValue(len(self.owner.keyed()))

    def items_of(self, tx: Following) -> list[Value]:
        if self.which == "keys":
            return self.owner.items_of(tx)
        return list(self.owner.items.values()) if self.which == "values" else _pairs(self.owner, tx)

    def iterator(self, tx: Following) -> Value:
        return DictIteratorValue(self.owner, self.which, self.items_of(tx))

    def method(self, tx: Following, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name == "__contains__" and self.which == "keys":
            return ConstantValue(self.owner.find(tx, tx.key(args[0])) is not None)
        if name == "__contains__":
            return SequenceValue(self.items_of(tx), list).method(tx, name, args, kwargs)
        if name == "isdisjoint" and self.which != "values":
            return SetValue([tx.key(item) for item in self.items_of(tx)], set).method(tx, name, args, kwargs)
        return special_method(self, tx, name, args)

    def write(self, writer: Writer) -> str:
        return f"{writer.expression(self.owner)}.{self.which}()"


class DictIteratorValue(IteratorValue):
    """An iterator over a dict or its view; raises if the dict changes its size."""

    def __init__(self, owner: DictValue, which: str, items: list[Value]) -> None:
        super().__init__(self._iterate(items), type(iter(getattr({}, which)())))
        self.owner = owner
        self.which = which
        self.size = len(owner.keyed())
        self.index = 0

    def _iterate(self, items: list[Value]) -> Iterator[Value]:
        while self.index < len(items):
            self._check_size()
            self.index += 1
            yield items[self.index - 1]
        self._check_size()
        self.index = -1

    def _check_size(self) -> None:
        if len(self.owner.held) != self.size:
            raise raised(RuntimeError("dictionary changed size during iteration"))

    def write(self, writer: Writer) -> str:
        if self.index < 0:
            return "iter(())"
        if self.owner.source is not None and writer.is_changed(self.owner) or len(self.owner.held) != self.size:
            raise GraphBreak("an iterator over a dict that has changed")
        return f"{writer.name_of(advanced, 'advanced')}(iter({writer.expression(self.owner)}.{self.which}()), {self.index})"


MAKERS[dict] = lambda value: DictValue({key: from_python(item) for key, item in value.items()}, dict)
