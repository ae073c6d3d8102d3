"""Objects of user classes, enum members, and opaque objects."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import threading
import types
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import TYPE_CHECKING, Any

from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.sources import Attribute, Item, OwnDict, Source
from rushlight.dynamo.stability import MISSING, look_up
from rushlight.dynamo.values.base import MAKERS, Raised, Value
from rushlight.dynamo.values.classes import plain_base
from rushlight.dynamo.values.constant import NONE, ConstantValue, raised
from rushlight.dynamo.values.function import BoundMethodValue, NamedMethodValue
from rushlight.dynamo.values.iterators import IteratorValue
from rushlight.dynamo.values.mappings import DictValue
from rushlight.nn.modules.module import Module

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following, Writer

CACHED = type(functools.lru_cache(int))  # the type of functions under lru_cache
_OBJECT_METHODS = ("__init__", "__setattr__", "__delattr__", "__hash__", "__eq__", "__ne__")


class ObjectValue(Value):
    """An instance of a Python class. `written` holds attributes that the program set; None marks a deleted one."""

    def __init__(self, kind: type, real: object = None, source: Source | None = None) -> None:
        self.kind = kind
        self.real = real
        self.source = source
        self.written: dict[str, Value | None] = {}
        self.moved: set[str] = set()  # attributes that were deleted and set again: they come last in `__dict__`

    def python_type(self) -> type:
        return self.kind

    def is_one_key(self) -> bool:
        """Return whether this is an unchanged real object that is hashed by identity."""
        plain = self.kind.__hash__ is object.__hash__ and self.kind.__eq__ is object.__eq__
        return self.real is not None and plain and not self.written

    def truth(self, tx: Following) -> bool:
        for name in ("__bool__", "__len__"):
            if isinstance(look_up(self.kind, name), types.FunctionType):
                found = self.method(tx, name, [], {})
                if name == "__bool__" and found.python_type() is not bool:
                    raise raised(TypeError(f"__bool__ should return bool, returned {found.python_type().__name__}"))
                return found.truth(tx)
        if look_up(self.kind, "__bool__") is MISSING and look_up(self.kind, "__len__") is MISSING:
            return True
        raise GraphBreak(f"the truth value of {self}")

    def length(self, tx: Following) -> Value:
        return self.method(tx, "__len__", [], {})

    def same_as(self, other: Value) -> bool:
        return self is other

    def attribute(self, tx: Following, name: str) -> Value:
        try:
            if self.answers_by_itself:
                getter = tx.class_member(self.kind, "__getattribute__", look_up(self.kind, "__getattribute__"))
                return getter.call(tx, [self, ConstantValue(name)], {})
            return self.plain_attribute(tx, name)
        except Raised as error:
            fallback = look_up(self.kind, "__getattr__")
            if not isinstance(fallback, types.FunctionType) or not issubclass(error.value.python_type(), AttributeError):
                raise
        return tx.class_member(self.kind, "__getattr__", fallback).call(tx, [self, ConstantValue(name)], {})

    def plain_attribute(self, tx: Following, name: str) -> Value:
        """Evaluate `object.__getattribute__`. `Raised` with an AttributeError if there is no attribute of that name."""
        if name == "__class__":
            return tx.wrap_class(self.kind)
        found = look_up(self.kind, name)
        if isinstance(found, property) or (found is not MISSING and hasattr(type(found), "__set__")):
            return self._descriptor(tx, name, found)
        own = self.own_attribute(tx, name)
        if own is not None:
            return own
        written = tx.effects.class_attribute(self.kind, name)
        if written is not None:
            return written
        if found is not MISSING:
            return self._class_attribute(tx, name, found)
        raise raised(AttributeError(f"'{self.kind.__name__}' object has no attribute '{name}'"))

    @property
    def answers_by_itself(self) -> bool:
        """Return whether the class defines `__getattribute__`."""
        getter = self.kind.__getattribute__
        return getter is not object.__getattribute__ and isinstance(getter, types.FunctionType)

    def place(self, name: str) -> Source | None:
        """Return a source for an instance's own attribute that runs no code of the class."""
        if self.source is None:
            return None
        return Item(OwnDict(self.source), name) if self.answers_by_itself else Attribute(self.source, name)

    def own_attribute(self, tx: Following, name: str) -> Value | None:
        """Return an attribute in the instance's `__dict__`; None if it is missing."""
        if name in self.written:
            return self.written[name]
        held = getattr(self.real, "__dict__", {}) if self.real is not None else {}
        if name in held:
            return tx.wrap(held[name], self.place(name))
        if self.real is not None and self.source is not None and hasattr(self.real, "__dict__"):
            if self.kind.__dictoffset__:
                tx.guards.no_own_attribute(self.source, name)
            else:  # native code does not find the dict that a `threading.local` has for each thread
                tx.guards.add(f"{name!r} not in {self.source.expression()}.__dict__", self.source, f"no attribute {name!r}")
        return None

    def own_names(self, tx: Following) -> list[str]:
        """Return the names in the instance's `__dict__`."""
        held = list(getattr(self.real, "__dict__", {})) if self.real is not None else []
        if self.moved:
            raise GraphBreak(f"all attributes of {self}, one of which was deleted and set again")
        if self.real is not None and not self.kind.__dictoffset__ and held:
            raise GraphBreak(f"all attributes of {self}")
        if self.real is not None and self.source is not None:
            tx.guards.same_items(OwnDict(self.source), held, "names of attributes", dict)
        return [name for name in dict.fromkeys([*held, *self.written]) if self.written.get(name, self) is not None]

    def write_attribute(self, tx: Following, name: str, value: Value) -> None:
        """Set an attribute in the instance's `__dict__`."""
        tx.effects.mutates(self)
        if name in self.written and self.written[name] is None:
            del self.written[name]
            self.moved.update([name] if self.real is not None else [])
        self.written[name] = value

    def _descriptor(self, tx: Following, name: str, found: Any) -> Value:
        if isinstance(found, property):
            if not isinstance(found.fget, types.FunctionType):
                raise GraphBreak(f"property {name!r} of {self}")
            tx.guard_member(self.kind, name, found)
            return tx.wrap_constant(found.fget).call(tx, [self], {})
        if isinstance(found, types.MemberDescriptorType) and name != "__dict__":  # a slot
            if name in self.written:
                written = self.written[name]
                if written is None:
                    raise raised(AttributeError(f"'{self.kind.__name__}' object has no attribute '{name}'"))
                return written
            if self.real is not None and hasattr(self.real, name):
                return tx.wrap(getattr(self.real, name), Attribute(self.source, name) if self.source else None)
            if self.source is not None:
                tx.guards.no_attribute(self.source, name)
            raise raised(AttributeError(f"'{self.kind.__name__}' object has no attribute '{name}'"))
        getter = look_up(type(found), "__get__")
        if isinstance(getter, types.FunctionType):
            tx.guard_member(self.kind, name, found)
            return tx.wrap_constant(getter).call(tx, [tx.wrap_constant(found), self, tx.wrap_class(self.kind)], {})
        if name == "__dict__" and isinstance(found, types.GetSetDescriptorType | types.MemberDescriptorType):
            return AttributesValue(self)
        raise GraphBreak(f"descriptor {name!r} of {self}")

    def _class_attribute(self, tx: Following, name: str, found: Any) -> Value:
        member = tx.class_member(self.kind, name, found)
        if isinstance(found, types.FunctionType):
            return BoundMethodValue(self, member)
        if isinstance(found, classmethod):
            return BoundMethodValue(tx.wrap_class(self.kind), member)
        if member is not None:
            return member
        if type(found) is CACHED:
            tx.guard_member(self.kind, name, found)
            return BoundMethodValue(self, tx.wrap_constant(found))
        if type(found) is functools.cached_property:
            tx.guard_member(self.kind, name, found)
            made = tx.wrap_constant(found.func).call(tx, [self], {})
            self.write_attribute(tx, found.attrname, made)
            return made
        if hasattr(type(found), "__get__"):
            tx.guard_member(self.kind, name, found)
            getter = look_up(type(found), "__get__")
            if isinstance(getter, types.FunctionType):
                return tx.wrap_constant(getter).call(tx, [tx.wrap_constant(found), self, tx.wrap_class(self.kind)], {})
            return NamedMethodValue(self, name)
        return tx.wrap(found, Attribute(tx.class_source(self.kind), name))

    def set_attribute(self, tx: Following, name: str, value: Value) -> None:
        setter = look_up(self.kind, "__setattr__")
        if isinstance(setter, types.FunctionType) and setter is not Module.__setattr__:
            tx.class_member(self.kind, "__setattr__", setter).call(tx, [self, ConstantValue(name), value], {})
            return
        self.set_plainly(tx, name, value)

    def set_plainly(self, tx: Following, name: str, value: Value) -> None:
        """Evaluate `object.__setattr__`."""
        found = look_up(self.kind, name)
        if isinstance(found, property):
            if found.fset is None:
                raise raised(AttributeError(f"property '{name}' of '{self.kind.__name__}' object has no setter"))
            tx.guard_member(self.kind, name, found)
            tx.wrap_constant(found.fset).call(tx, [self, value], {})
            return
        if found is not MISSING and hasattr(type(found), "__set__") and not isinstance(found, types.MemberDescriptorType):
            setter = look_up(type(found), "__set__")
            if name == "__dict__" or not isinstance(setter, types.FunctionType):
                raise GraphBreak(f"writing descriptor {name!r} of {self}")
            tx.guard_member(self.kind, name, found)
            tx.wrap_constant(setter).call(tx, [tx.wrap_constant(found), self, value], {})
            return
        has_dict = self.kind.__dictoffset__ or issubclass(self.kind, threading.local)  # a dict for each thread
        if not has_dict and not isinstance(found, types.MemberDescriptorType):
            text = f"'{self.kind.__name__}' object has no attribute '{name}'"
            text += " and no __dict__ for setting new attributes" if tx.python >= (3, 13) else ""
            read_only = f"'{self.kind.__name__}' object attribute '{name}' is read-only"
            raise raised(AttributeError(text if found is MISSING else read_only))
        self.write_attribute(tx, name, value)

    def delete_attribute(self, tx: Following, name: str) -> None:
        deleter = look_up(self.kind, "__delattr__")
        if isinstance(deleter, types.FunctionType):
            tx.class_member(self.kind, "__delattr__", deleter).call(tx, [self, ConstantValue(name)], {})
        else:
            self.delete_plainly(tx, name)

    def delete_plainly(self, tx: Following, name: str) -> None:
        """Evaluate `object.__delattr__`."""
        found = look_up(self.kind, name)
        if isinstance(found, property) and found.fdel is not None:
            tx.guard_member(self.kind, name, found)
            tx.wrap_constant(found.fdel).call(tx, [self], {})
            return
        if isinstance(found, types.MemberDescriptorType):
            self._descriptor(tx, name, found)
        elif found is not MISSING and hasattr(type(found), "__delete__"):
            raise GraphBreak(f"deleting attribute {name!r} of {self}")
        elif self.own_attribute(tx, name) is None:
            raise raised(AttributeError(f"'{self.kind.__name__}' object has no attribute '{name}'"))
        self.remove_attribute(tx, name)

    def remove_attribute(self, tx: Following, name: str) -> None:
        """Delete an existing attribute from the instance's `__dict__`."""
        tx.effects.mutates(self)
        if self.real is None and name not in getattr(self.kind, "__slots__", ()):
            del self.written[name]
        else:
            self.written[name] = None

    def call(self, tx: Following, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return self.method(tx, "__call__", args, kwargs)

    def method(self, tx: Following, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        found = look_up(self.kind, name)
        if found is MISSING and name.startswith("__"):
            raise raised(TypeError(f"'{self.kind.__name__}' object does not support {name}"))
        if found in (types.SimpleNamespace.__eq__, types.SimpleNamespace.__ne__):
            raise GraphBreak(f"the comparison of {self}")
        if name in _OBJECT_METHODS and not isinstance(found, types.FunctionType):
            return self.method_of_object(tx, name, args)
        value = self._class_attribute(tx, name, found) if name.startswith("__") else self.attribute(tx, name)
        if isinstance(value, NamedMethodValue) and value.owner is self:
            raise GraphBreak(f"method {name!r} of {self}, which is not written in Python")
        return value.call(tx, args, kwargs)

    def method_of_object(self, tx: Following, name: str, args: list[Value]) -> Value:
        """Return a method of `object`."""
        if name == "__setattr__":
            self.set_plainly(tx, args[0].constant(), args[1])
        elif name == "__delattr__":
            self.delete_plainly(tx, args[0].constant())
        elif name == "__getattribute__":
            return self.plain_attribute(tx, args[0].constant())
        elif name in ("__eq__", "__ne__"):
            return ConstantValue((self is args[0]) == (name == "__eq__")) if self is args[0] else ConstantValue(NotImplemented)
        elif name != "__init__":
            raise GraphBreak(f"{name} of {self}")
        return NONE

    def item(self, tx: Following, key: Value) -> Value:
        return self.method(tx, "__getitem__", [key], {})

    def set_item(self, tx: Following, key: Value, value: Value) -> None:
        self.method(tx, "__setitem__", [key, value], {})

    def delete_item(self, tx: Following, key: Value) -> None:
        self.method(tx, "__delitem__", [key], {})

    def iterator(self, tx: Following) -> Value | None:
        if look_up(self.kind, "__iter__") not in (MISSING, None):
            return self.method(tx, "__iter__", [], {})
        if look_up(self.kind, "__getitem__") is not MISSING and look_up(self.kind, "__iter__") is MISSING:
            return IteratorValue(self._iterate_by_index(tx, itertools.count()), runs_code=True)
        raise raised(TypeError(f"'{self.kind.__name__}' object is not iterable"))

    def _iterate_by_index(self, tx: Following, indices: Iterable[int]) -> Iterator[Value]:
        for index in indices:
            try:
                yield self.item(tx, ConstantValue(index))
            except Raised as error:
                if issubclass(error.value.python_type(), IndexError | StopIteration):
                    return
                raise

    def backwards(self, tx: Following) -> Value:
        """Evaluate `reversed(value)`."""
        if look_up(self.kind, "__reversed__") not in (MISSING, None):
            return self.method(tx, "__reversed__", [], {})
        if look_up(self.kind, "__len__") is MISSING or look_up(self.kind, "__getitem__") is MISSING:
            raise raised(TypeError(f"'{self.kind.__name__}' object is not reversible"))
        count = self.length(tx).constant()
        return IteratorValue(self._iterate_by_index(tx, range(count - 1, -1, -1)), reversed, runs_code=True)

    def items_of(self, tx: Following) -> list[Value]:
        return list(tx.drain(self.iterator(tx)))

    def node(self, tx: Following) -> Any:
        parameters = getattr(self.kind, "__dataclass_params__", None)
        if parameters is None or not parameters.frozen or not parameters.init or hasattr(self.kind, "__post_init__"):
            return super().node(tx)
        fields = [field.name for field in dataclasses.fields(self.kind)]
        if not all(field.init for field in dataclasses.fields(self.kind)):
            return super().node(tx)
        values = {name: self.attribute(tx, name).node(tx) for name in fields}
        return tx.add_call("call_function", self.kind, (), values)[0]

    def write(self, writer: Writer) -> str:
        kind = writer.name_of(self.kind, self.kind.__name__)
        base = plain_base(self.kind)
        made = writer.begin(self, f"{writer.name_of(base, base.__name__)}.__new__({kind})")
        for line in self.write_back(writer, made):
            writer.statement(line)
        return made

    def write_back(self, writer: Writer, target: str) -> list[str]:
        """Return statements that write the attributes to the object `target`."""
        base = plain_base(self.kind)
        plain = writer.name_of(base, base.__name__)
        lines = []
        for name, value in self.written.items():
            is_real = name in getattr(self.real, "__dict__", ()) or name in getattr(self.kind, "__slots__", ())
            if (value is None or name in self.moved) and self.real is not None and is_real:
                lines.append(f"{plain}.__delattr__({target}, {name!r})")
            if value is not None:
                lines.append(f"{plain}.__setattr__({target}, {name!r}, {writer.expression(value)})")
        return lines

    def __str__(self) -> str:
        return f"an object of class {self.kind.__name__}"


class AttributesValue(DictValue):
    """The `__dict__` of an object."""

    def __init__(self, owner: ObjectValue) -> None:
        super().__init__({}, dict)
        self.owner = owner

    def keyed(self) -> dict[Any, Value]:
        raise GraphBreak(f"all attributes of {self.owner} in this way")

    def as_dict(self, tx: Following) -> DictValue:
        return DictValue({name: self.owner.own_attribute(tx, name) for name in self.owner.own_names(tx)}, dict)

    def find(self, tx: Following, key: Any) -> Value | None:
        return self.owner.own_attribute(tx, key) if isinstance(key, str) else None

    def store(self, tx: Following, key: Any, value: Value) -> None:
        self.owner.write_attribute(tx, key, value)

    def remove(self, tx: Following, key: Any) -> Value:
        found = self.owner.own_attribute(tx, key)
        self.owner.remove_attribute(tx, key)
        return found

    def truth(self, tx: Following) -> bool:
        return bool(self.owner.own_names(tx))

    def length(self, tx: Following) -> Value:
        return ConstantValue(len(self.owner.own_names(tx)))

    def items_of(self, tx: Following) -> list[Value]:
        return [ConstantValue(name) for name in self.owner.own_names(tx)]

    def iterator(self, tx: Following) -> Value:
        return self.as_dict(tx).iterator(tx)

    def same_as(self, other: Value) -> bool:
        return isinstance(other, AttributesValue) and other.owner is self.owner

    def method(self, tx: Following, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name in ("keys", "values", "items", "copy"):
            return self.as_dict(tx).method(tx, name, args, kwargs)
        return super().method(tx, name, args, kwargs)

    def write(self, writer: Writer) -> str:
        return f"{writer.expression(self.owner)}.__dict__"


class EnumValue(ConstantValue):
    """A member of an enumeration."""

    def attribute(self, tx: Following, name: str) -> Value:
        kind = type(self.value)
        found = look_up(kind, name)
        if name in ("name", "value") or found is MISSING or not isinstance(found, types.FunctionType | property):
            return super().attribute(tx, name)
        tx.guard_member(kind, name, found)
        if isinstance(found, property):
            return tx.wrap_constant(found.fget).call(tx, [self], {})
        return BoundMethodValue(self, tx.wrap_constant(found))

    def method(self, tx: Following, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if isinstance(look_up(type(self.value), name), types.FunctionType):
            return self.attribute(tx, name).call(tx, args, kwargs)
        return super().method(tx, name, args, kwargs)


MAKERS[Enum] = EnumValue


class OpaqueValue(Value):
    """An object that is only passed on: every operation on it breaks the graph."""

    def __init__(self, kind: type, source: Source) -> None:
        self.kind = kind
        self.source = source

    def python_type(self) -> type:
        return self.kind

    def same_as(self, other: Value) -> bool:
        return self is other

    def __str__(self) -> str:
        return f"an object of class {self.kind.__module__}.{self.kind.__qualname__}"
