"""Objects of user classes that inherit from a built-in container, number or text."""

from __future__ import annotations

import collections
import types
from typing import TYPE_CHECKING, Any

from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.sources import Attribute, PlainItem, Source
from rushlight.dynamo.stability import look_up
from rushlight.dynamo.values.base import Raised, Value
from rushlight.dynamo.values.constant import NONE, ConstantValue, fold
from rushlight.dynamo.values.iterators import IteratorValue
from rushlight.dynamo.values.mappings import DictValue
from rushlight.dynamo.values.objects import ObjectValue
from rushlight.dynamo.values.sequences import SequenceValue
from rushlight.dynamo.values.sets import SetValue

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following, Writer

_FIELD = type(collections.namedtuple("_Example", "field").field)
_IMMUTABLE = (int, float, complex, str, bytes)
_SEQUENCES = (list, tuple, collections.deque)
_MAPPINGS = (collections.OrderedDict, collections.defaultdict, dict)
_SETS = (set, frozenset)
def built_in_base(kind: type) -> type | None:
    """Return the supported built-in class that a Python class inherits from; None if there is none."""
    if kind.__module__ == "builtins" or not kind.__flags__ & (1 << 9):
        return None
    bases = [base for base in kind.__mro__ if base in (*_IMMUTABLE, *_SEQUENCES, *_MAPPINGS, *_SETS)]
    others = [base for base in kind.__mro__ if not base.__flags__ & (1 << 9) and base is not object and base not in bases]
    return bases[0] if bases and not others else None


def is_plain_named_tuple(kind: type) -> bool:
    """Return whether a class is that of a named tuple whose objects are their fields alone, without attributes or operators."""
    if not (issubclass(kind, tuple) and hasattr(kind, "_fields")):
        return False
    return not kind.__dictoffset__ and not any(is_written_in_python(kind, name) for name in _OVERRIDDEN)


_OVERRIDDEN = ("__getitem__", "__iter__", "__len__", "__contains__", "__add__", "__eq__", "__getattribute__", "__bool__")


def is_written_in_python(kind: type, name: str) -> bool:
    """Return whether a class implements a method in Python."""
    return isinstance(look_up(kind, name), types.FunctionType)


def contents_of(tx: Following, base: type, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Return the contents after `base.__new__`: mutable containers start empty."""
    if base in _IMMUTABLE:
        return fold(base, *args, **kwargs)
    if base in _MAPPINGS:
        return DictValue({}, base)
    if base in _SETS:
        items = args[0].items_of(tx) if args and base is frozenset else []
        return SetValue([tx.key(item) for item in items], base)
    return SequenceValue(args[0].items_of(tx) if args and base is tuple else [], base)


class InheritingValue(ObjectValue):
    """An object of a class that inherits from a built-in one; `contents` is the value of that built-in part."""

    def __init__(self, kind: type, contents: Value, real: object = None, source: Source | None = None) -> None:
        super().__init__(kind, real, source)
        self.contents = contents

    @property
    def base(self) -> type:
        """Return the built-in base class."""
        return self.contents.python_type()

    def _is_own(self, name: str) -> bool:
        return is_written_in_python(self.kind, name)

    def initialize(self, tx: Following, args: list[Value], kwargs: dict[str, Value]) -> None:
        """Evaluate `__init__` of the built-in class."""
        if self.base is collections.defaultdict:
            self.contents.default_factory, args = (args[0] if args else NONE), args[1:]
        if self.base is list and args:
            self.contents.method(tx, "extend", args, kwargs)
        elif self.base is collections.deque and args:
            if len(args) > 1 or kwargs:
                raise GraphBreak("a deque with a maximal length")
            self.contents.method(tx, "extend", args, kwargs)
        elif args or kwargs:
            if self.base in (*_MAPPINGS, set):
                self.contents.method(tx, "update", args, kwargs)

    def is_iterated_plainly(self) -> bool:
        """Return whether built-in classes read the contents directly, without a method of the class."""
        return not self._is_own("__iter__")

    def truth(self, tx: Following) -> bool:
        return super().truth(tx) if self._is_own("__bool__") or self._is_own("__len__") else self.contents.truth(tx)

    def length(self, tx: Following) -> Value:
        return super().length(tx) if self._is_own("__len__") else self.contents.length(tx)

    def items_of(self, tx: Following) -> list[Value]:
        return super().items_of(tx) if self._is_own("__iter__") else self.contents.items_of(tx)

    def backwards(self, tx: Following) -> Value:
        """Evaluate `reversed(value)`."""
        if self._is_own("__reversed__") or self._is_own("__getitem__") or self._is_own("__len__"):
            return super().backwards(tx)
        return IteratorValue(iter(self.items_of(tx)[::-1]), reversed, runs_code=True)

    def iterator(self, tx: Following) -> Value | None:
        if self._is_own("__iter__"):
            return self.method(tx, "__iter__", [], {})
        return self.contents.iterator(tx) or IteratorValue(iter(self.contents.items_of(tx)))

    def item(self, tx: Following, key: Value) -> Value:
        if self._is_own("__getitem__"):
            return super().item(tx, key)
        return self.plain_item(tx, key)

    def plain_item(self, tx: Following, key: Value) -> Value:
        """Evaluate `base.__getitem__`, which calls `__missing__`."""
        try:
            return self.contents.item(tx, key)
        except Raised as error:
            if self._is_own("__missing__") and issubclass(error.value.python_type(), KeyError):
                return self.method(tx, "__missing__", [key], {})
            raise

    def set_item(self, tx: Following, key: Value, value: Value) -> None:
        super().set_item(tx, key, value) if self._is_own("__setitem__") else self.contents.set_item(tx, key, value)

    def delete_item(self, tx: Following, key: Value) -> None:
        super().delete_item(tx, key) if self._is_own("__delitem__") else self.contents.delete_item(tx, key)

    def method(self, tx: Following, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name not in self.written and self._is_of_base(name):
            return self.plain_method(tx, name, args, kwargs)
        return super().method(tx, name, args, kwargs)

    def _is_of_base(self, name: str) -> bool:
        found = look_up(self.kind, name)
        return isinstance(found, types.MethodDescriptorType | types.WrapperDescriptorType | types.ClassMethodDescriptorType)

    def plain_method(self, tx: Following, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Return a method of the built-in base class."""
        if name == "__init__":
            self.initialize(tx, args, kwargs)
            return NONE
        if name in ("__setattr__", "__delattr__", "__getattribute__", "__hash__", "__reduce_ex__", "__repr__", "__str__"):
            return super().method(tx, name, args, kwargs)
        if name == "__getitem__":
            return self.plain_item(tx, *args)
        return self.contents.method(tx, name, args, kwargs)

    def snapshot(self) -> Any:
        if isinstance(self.contents, ConstantValue):
            return self.contents.constant()
        return super().snapshot()

    def plain_attribute(self, tx: Following, name: str) -> Value:
        fields = getattr(self.kind, "_fields", ()) if self.base is tuple else ()
        if name in fields and isinstance(look_up(self.kind, name), _FIELD):
            return self.contents.items[fields.index(name)]
        return super().plain_attribute(tx, name)

    def node(self, tx: Following) -> Any:
        if self._is_own("__iter__") or self._is_own("__getitem__"):
            return super().node(tx)
        return self.contents.node(tx)

    def write(self, writer: Writer) -> str:
        kind, base = writer.name_of(self.kind, self.kind.__name__), writer.name_of(self.base, self.base.__name__)
        if self.contents.is_constant() or isinstance(self.contents, SequenceValue) and not self.contents.is_mutable:
            made = writer.begin(self, f"{base}.__new__({kind}, {writer.expression(self.contents)})")
        elif self.base is frozenset:
            made = writer.begin(self, f"{base}.__new__({kind}, {self.contents.write(writer)})")
        else:
            made = writer.begin(self, f"{base}.__new__({kind})")
            filled = "extend" if isinstance(self.contents, SequenceValue) else "update"
            if self.base is collections.defaultdict:
                writer.statement(f"{made}.default_factory = {writer.expression(self.contents.default_factory)}")
            writer.statement(f"{base}.{filled}({made}, {writer.expression(self.contents)})")
        for line in self.write_back(writer, made):
            writer.statement(line)
        return made


def plainly(value: Value, method: str) -> Value:
    """Return the value an operator acts on: the built-in contents, if the object's class does not override `method`."""
    if not isinstance(value, InheritingValue) or is_written_in_python(value.kind, method):
        return value
    return value.contents


def is_own_constant(value: Value) -> bool:
    """Return whether a value is a number or text of a user's class."""
    return isinstance(value, InheritingValue) and isinstance(value.contents, ConstantValue)


def from_outside(tx: Following, value: Any, base: type, place: Source) -> InheritingValue | None:
    """Track a real object whose class inherits from `base`; None if its contents cannot be read without its own code."""
    contents = _real_contents(tx, value, base, place)
    return None if contents is None else InheritingValue(type(value), contents, value, place)


def _real_contents(tx: Following, value: Any, base: type, place: Source) -> Value | None:
    if base in _IMMUTABLE:
        plain = base(*base.__getnewargs__(value))
        tx.guards.add(f"{base.__name__}.__repr__({place}) == {base.__repr__(plain)!r}", place, "value")
        return ConstantValue(plain)
    if base in _MAPPINGS:
        made = _real_dict(tx, value, base, place)
    elif base in (list, tuple):
        found = list(base.__iter__(value))
        items = [tx.later(item, PlainItem(place, base, index)) for index, item in enumerate(found)]
        made = SequenceValue(items, base, place, lambda: tx.guards.same_length(place, found))
    else:
        made = _real_set(tx, value, base, place) if base in _SETS else None
    if made is not None:
        made.is_part = True
    return made


def _real_dict(tx: Following, value: Any, base: type, place: Source) -> DictValue | None:
    keys = list(base.__iter__(value))
    # A guard of the keys would run the user's `__iter__`.
    is_asked = base is collections.OrderedDict and is_written_in_python(type(value), "__iter__")
    if is_asked or not all(map(tx.session.is_key, keys)):
        return None
    items = {
        key: tx.later(dict.__getitem__(value, key), PlainItem(place, dict, tx.session.key_text(key))) for key in keys
    }  # fmt: skip
    factory = None
    if base is collections.defaultdict:
        factory = tx.wrap(value.default_factory, Attribute(place, "default_factory"))
    return DictValue(items, base, place, factory, lambda: tx.guards.same_items(place, keys, "keys", base))


def _real_set(tx: Following, value: Any, base: type, place: Source) -> SetValue | None:
    items = base.copy(value)
    if is_written_in_python(type(value), "__iter__") or not all(map(tx.session.is_key, items)):
        return None
    tx.guards.same_items(place, list(base.__iter__(value)), "items")
    return SetValue(base(items), base, place)
