"""Sets of constants. Changes are also made on a real set, which gives the order of the items."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.process_facts import note_order
from rushlight.dynamo.sources import Source
from rushlight.dynamo.values.base import MAKERS, Value
from rushlight.dynamo.values.constant import NONE, ConstantValue, from_python, raised
from rushlight.dynamo.values.iterators import special_method

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following, Writer

READING = frozenset({
    "union", "intersection", "difference", "symmetric_difference", "copy", "issubset", "issuperset", "isdisjoint",
})  # fmt: skip
_ITEM_METHODS = frozenset({"add", "discard", "remove", "pop", "clear"})
_ITERABLE_METHODS = frozenset({"update", "intersection_update", "difference_update", "symmetric_difference_update"})


class SetValue(Value):
    """A set or frozenset of constants, made from a real set or from items in their order of insertion."""

    def __init__(self, items: Iterable, kind: type, source: Source | None = None) -> None:
        self.first = list(items)
        self.model = items if kind is frozenset and type(items) is frozenset else kind(items)
        self.kind = kind
        self.source = source
        self.changes: list[tuple[str, list]] = []
        self.is_part = False  # True for the built-in part of an instance of a user's subclass
        self._is_real = isinstance(items, set | frozenset)

    @property
    def items(self) -> list[Any]:
        """Return the items in the set's order."""
        note_order(self.model)
        if not self.changes:
            return list(self.first if self._is_real else self.model)
        if self._is_real and list(self.kind(self.first)) != self.first:
            raise GraphBreak("the order of a set that was changed")
        return list(self.model)

    def python_type(self) -> type:
        return self.kind

    def is_constant(self) -> bool:
        return self.kind is frozenset

    def constant(self) -> Any:
        return self.model if self.is_constant() else super().constant()

    def snapshot(self) -> Any:
        if list(self.model) != self.items:
            raise GraphBreak("the order of a set that was changed")
        return self.model

    def truth(self, tx: Following) -> bool:
        return bool(self.model)

    def length(self, tx: Following) -> Value:
        return ConstantValue(len(self.model))

    def items_of(self, tx: Following) -> list[Value]:
        return [tx.key_value(key) for key in self.items]

    def same_as(self, other: Value) -> bool:
        return self is other

    def attribute(self, tx: Following, name: str) -> Value:
        return tx.bound_method(self, name)

    def method(self, tx: Following, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if not hasattr(self.kind, name):
            raise raised(AttributeError(f"'{self.kind.__name__}' object has no attribute '{name}'"))
        if kwargs:
            raise GraphBreak(f"{self.kind.__name__}.{name}() with keyword arguments")
        if name == "__contains__":
            return ConstantValue(tx.key(args[0]) in self.model)
        if name in _ITEM_METHODS:
            return self._change(tx, name, [tx.key(value) for value in args])
        if name in READING or name in _ITERABLE_METHODS:
            operands = [operand(tx, value) for value in args]
            return self._change(tx, name, operands) if name in _ITERABLE_METHODS else self._call_read_only(name, operands)
        return special_method(self, tx, name, args)

    def _call_read_only(self, name: str, operands: list) -> Value:
        found = self._run(name, operands)
        return SetValue(found, type(found)) if isinstance(found, set | frozenset) else from_python(found)

    def _run(self, name: str, arguments: list) -> Any:
        try:
            return getattr(self.model, name)(*arguments)
        except (KeyError, TypeError) as error:
            raise raised(error) from None

    def _change(self, tx: Following, name: str, arguments: list) -> Value:
        if name == "pop" and self.items != list(self.model):
            raise GraphBreak("the order of a set that is changed")
        found = self._run(name, arguments)
        tx.effects.mutates(self)
        if name == "pop":
            self.changes.append(("discard", [found]))
            return tx.key_value(found)
        self.changes.append((name, arguments))
        return NONE

    def write(self, writer: Writer) -> str:
        if self.kind is frozenset:
            return writer.name_of(self.model, "frozenset")
        made = writer.begin(self, f"{writer.name_of(set, 'set')}({_write_list(writer, self.first)})")
        for line in self.write_back(writer, made):
            writer.statement(line)
        return made

    def write_back(self, writer: Writer, target: str) -> list[str]:
        """Return statements that make the same changes to the object `target`."""
        lines = []
        for name, arguments in self.changes:
            listed = map(writer.key, arguments) if name in _ITEM_METHODS else (_text(writer, one) for one in arguments)
            given = ", ".join(listed)
            lines.append(f"set.{name}({target}, {given})" if self.is_part else f"{target}.{name}({given})")
        return lines


def operand(tx: Following, value: Value) -> Any:
    """Return an argument of a set method: a real set, or a list of keys."""
    return value.model if isinstance(value, SetValue) else [tx.key(item) for item in value.items_of(tx)]


def _write_list(writer: Writer, items: list) -> str:
    return f"[{', '.join(map(writer.key, items))}]"


def _text(writer: Writer, argument: Any) -> str:
    return _write_list(writer, argument) if isinstance(argument, list) else f"{{*{_write_list(writer, list(argument))}}}"


MAKERS[set] = lambda value: SetValue(value, set)
MAKERS[frozenset] = lambda value: SetValue(value, frozenset)
