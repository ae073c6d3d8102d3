"""Objects of the user's classes, nn.Modules, classes, modules of Python, and `super()`."""

from __future__ import annotations

import inspect
import types
from enum import Enum
from typing import TYPE_CHECKING, Any

from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.guards import MISSING
from rushlight.dynamo.sources import Attribute, Source
from rushlight.dynamo.values.base import MAKERS, Value
from rushlight.dynamo.values.constant import ConstantValue, raised
from rushlight.dynamo.values.function import BoundMethodValue, NamedMethodValue
from rushlight.nn.modules.module import Module

if TYPE_CHECKING:
    from rushlight.dynamo.program import ProgramWriter
    from rushlight.dynamo.translator import Translator

_MISSING = object()


def look_up(kind: type, name: str) -> object:
    """What a class's method resolution order has under a name, without descriptors; `_MISSING` where nothing."""
    for base in kind.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return _MISSING


class ObjectValue(Value):
    """An instance of a class written in Python. `written` are attributes that the program set; None marks a deleted one."""

    def __init__(self, kind: type, real: object = None, source: Source | None = None) -> None:
        self.kind = kind
        self.real = real
        self.source = source
        self.written: dict[str, Value | None] = {}

    def python_type(self) -> type:
        return self.kind

    def truth(self, tx: Translator) -> bool:
        for name in ("__bool__", "__len__"):
            if isinstance(look_up(self.kind, name), types.FunctionType):
                return self.method(tx, name, [], {}).truth(tx)
        if look_up(self.kind, "__bool__") is _MISSING and look_up(self.kind, "__len__") is _MISSING:
            return True
        raise GraphBreak(f"the truth value of {self}")

    def length(self, tx: Translator) -> Value:
        return self.method(tx, "__len__", [], {})

    def same_as(self, other: Value) -> bool:
        return self is other

    def attribute(self, tx: Translator, name: str) -> Value:
        if name == "__class__":
            return tx.wrap_class(self.kind)
        if isinstance(look_up(self.kind, "__getattribute__"), types.FunctionType):
            raise GraphBreak(f"class {self.kind.__name__} defines __getattribute__")
        found = look_up(self.kind, name)
        if isinstance(found, property) or (found is not _MISSING and hasattr(type(found), "__set__")):
            return self._descriptor(tx, name, found)
        own = self._own_attribute(tx, name)
        if own is not None:
            return own
        if found is not _MISSING:
            return self._class_attribute(tx, name, found)
        fallback = look_up(self.kind, "__getattr__")
        if isinstance(fallback, types.FunctionType):
            return tx.class_member(self.kind, "__getattr__", fallback).call(tx, [self, ConstantValue(name)], {})
        raise raised(AttributeError(f"'{self.kind.__name__}' object has no attribute '{name}'"))

    def _own_attribute(self, tx: Translator, name: str) -> Value | None:
        if name in self.written:
            return self.written[name]
        held = getattr(self.real, "__dict__", {}) if self.real is not None else {}
        if name == "__dict__":
            raise GraphBreak(f"the __dict__ of {self}")
        if name in held:
            return tx.wrap(held[name], Attribute(self.source, name) if self.source is not None else None)
        if self.real is not None and self.source is not None and hasattr(self.real, "__dict__"):
            check = tx.guards.check_of(self.source, name, MISSING)
            tx.guards.add(f"{name!r} not in {self.source}.__dict__", self.source, "no such attribute", check)
        return None

    def _descriptor(self, tx: Translator, name: str, found: Any) -> Value:
        if isinstance(found, property):
            if not isinstance(found.fget, types.FunctionType):
                raise GraphBreak(f"property {name!r} of {self}")
            tx.guard_member(self.kind, name, found)
            return tx.wrap_constant(found.fget).call(tx, [self], {})
        if isinstance(found, types.MemberDescriptorType):  # a slot
            if name in self.written:
                written = self.written[name]
                if written is None:
                    raise raised(AttributeError(f"'{self.kind.__name__}' object has no attribute '{name}'"))
                return written
            if self.real is not None and hasattr(self.real, name):
                return tx.wrap(getattr(self.real, name), Attribute(self.source, name) if self.source else None)
            if self.source is not None:
                tx.guards.add(f"not hasattr({self.source}, {name!r})", self.source, "no such attribute")
            raise raised(AttributeError(f"'{self.kind.__name__}' object has no attribute '{name}'"))
        getter = look_up(type(found), "__get__")
        if isinstance(getter, types.FunctionType):
            tx.guard_member(self.kind, name, found)
            return tx.wrap_constant(getter).call(tx, [tx.wrap_constant(found), self, tx.wrap_class(self.kind)], {})
        if name == "__dict__":
            raise GraphBreak(f"the __dict__ of {self}")
        raise GraphBreak(f"descriptor {name!r} of {self}")

    def _class_attribute(self, tx: Translator, name: str, found: Any) -> Value:
        member = tx.class_member(self.kind, name, found)
        if isinstance(found, types.FunctionType):
            return BoundMethodValue(self, member)
        if isinstance(found, classmethod):
            return BoundMethodValue(tx.wrap_class(self.kind), member)
        if member is not None:
            return member
        if hasattr(type(found), "__get__"):
            tx.guard_member(self.kind, name, found)
            getter = look_up(type(found), "__get__")
            if isinstance(getter, types.FunctionType):
                return tx.wrap_constant(getter).call(tx, [tx.wrap_constant(found), self, tx.wrap_class(self.kind)], {})
            return NamedMethodValue(self, name)
        return tx.wrap(found, Attribute(tx.class_source(self.kind), name))

    def set_attribute(self, tx: Translator, name: str, value: Value) -> None:
        setter = look_up(self.kind, "__setattr__")
        if isinstance(setter, types.FunctionType) and setter is not Module.__setattr__:
            tx.class_member(self.kind, "__setattr__", setter).call(tx, [self, ConstantValue(name), value], {})
            return
        self.set_plainly(tx, name, value)

    def set_plainly(self, tx: Translator, name: str, value: Value) -> None:
        """`object.__setattr__`."""
        found = look_up(self.kind, name)
        if isinstance(found, property):
            if found.fset is None:
                raise raised(AttributeError(f"property '{name}' of '{self.kind.__name__}' object has no setter"))
            tx.guard_member(self.kind, name, found)
            tx.wrap_constant(found.fset).call(tx, [self, value], {})
            return
        if found is not _MISSING and hasattr(type(found), "__set__") and not isinstance(found, types.MemberDescriptorType):
            setter = look_up(type(found), "__set__")
            if name == "__dict__" or not isinstance(setter, types.FunctionType):
                raise GraphBreak(f"writing descriptor {name!r} of {self}")
            tx.guard_member(self.kind, name, found)
            tx.wrap_constant(setter).call(tx, [tx.wrap_constant(found), self, value], {})
            return
        if not self.kind.__dictoffset__ and found is _MISSING:
            raise GraphBreak(f"writing attribute {name!r} of {self}, which has slots")
        tx.effects.mutates(self)
        self.written[name] = value

    def delete_attribute(self, tx: Translator, name: str) -> None:
        if isinstance(look_up(self.kind, "__delattr__"), types.FunctionType) or isinstance(look_up(self.kind, name), property):
            raise GraphBreak(f"deleting attribute {name!r} of {self}")
        self.attribute(tx, name)
        is_own = self.written.get(name) is not None or name in getattr(self.real, "__dict__", {})
        if not is_own and not isinstance(look_up(self.kind, name), types.MemberDescriptorType):
            raise GraphBreak(f"deleting attribute {name!r} of {self}")
        tx.effects.mutates(self)
        self.written[name] = None

    def call(self, tx: Translator, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return self.method(tx, "__call__", args, kwargs)

    def method(self, tx: Translator, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        found = look_up(self.kind, name)
        if found is _MISSING and name.startswith("__"):
            raise raised(TypeError(f"'{self.kind.__name__}' object does not support {name}"))
        if name == "__init__" and not isinstance(found, types.FunctionType):
            return ConstantValue(None)
        if name == "__setattr__" and not isinstance(found, types.FunctionType):
            self.set_plainly(tx, args[0].constant(), args[1])
            return ConstantValue(None)
        if name in ("__hash__", "__eq__", "__ne__") and not isinstance(found, types.FunctionType):
            if name == "__hash__":
                raise GraphBreak(f"the hash of {self}")
            return ConstantValue((self is args[0]) == (name == "__eq__"))
        value = self._class_attribute(tx, name, found) if name.startswith("__") else self.attribute(tx, name)
        if isinstance(value, NamedMethodValue) and value.owner is self:
            raise GraphBreak(f"method {name!r} of {self}, which is not written in Python")
        return value.call(tx, args, kwargs)

    def item(self, tx: Translator, key: Value) -> Value:
        return self.method(tx, "__getitem__", [key], {})

    def set_item(self, tx: Translator, key: Value, value: Value) -> None:
        self.method(tx, "__setitem__", [key, value], {})

    def delete_item(self, tx: Translator, key: Value) -> None:
        self.method(tx, "__delitem__", [key], {})

    def items_of(self, tx: Translator) -> list[Value]:
        if isinstance(look_up(self.kind, "__iter__"), types.FunctionType):
            made = self.method(tx, "__iter__", [], {})
            if made is not self:
                return made.items_of(tx)
            return list(tx.drain(self))
        raise raised(TypeError(f"'{self.kind.__name__}' object is not iterable"))

    def write(self, writer: ProgramWriter) -> str:
        kind = writer.name_of(self.kind, self.kind.__name__)
        made = writer.begin(self, f"{writer.name_of(object, 'object')}.__new__({kind})")
        for line in self.write_back(writer, made):
            writer.statement(line)
        return made

    def write_back(self, writer: ProgramWriter, target: str) -> list[str]:
        """Statements that set the written attributes of the object `target`."""
        plain = writer.name_of(object, "object")
        lines = []
        for name, value in self.written.items():
            if value is None:
                is_real = name in getattr(self.real, "__dict__", ()) or name in getattr(self.kind, "__slots__", ())
                lines += [f"{plain}.__delattr__({target}, {name!r})"] if self.real is not None and is_real else []
            else:
                lines.append(f"{plain}.__setattr__({target}, {name!r}, {writer.expression(value)})")
        return lines

    def __str__(self) -> str:
        return f"an object of class {self.kind.__name__}"


class EnumValue(ConstantValue):
    """A member of an enumeration."""

    def attribute(self, tx: Translator, name: str) -> Value:
        kind = type(self.value)
        found = look_up(kind, name)
        if name in ("name", "value") or found is _MISSING or not isinstance(found, types.FunctionType | property):
            return super().attribute(tx, name)
        tx.guard_member(kind, name, found)
        if isinstance(found, property):
            return tx.wrap_constant(found.fget).call(tx, [self], {})
        return BoundMethodValue(self, tx.wrap_constant(found))

    def method(self, tx: Translator, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if isinstance(look_up(type(self.value), name), types.FunctionType):
            return self.attribute(tx, name).call(tx, args, kwargs)
        return super().method(tx, name, args, kwargs)


MAKERS[Enum] = EnumValue


class OpaqueValue(Value):
    """An object that is passed on as it is: every operation on it breaks the graph."""

    def __init__(self, kind: type, source: Source) -> None:
        self.kind = kind
        self.source = source

    def python_type(self) -> type:
        return self.kind

    def same_as(self, other: Value) -> bool:
        return self is other

    def __str__(self) -> str:
        return f"an object of class {self.kind.__module__}.{self.kind.__qualname__}"


class ModuleValue(ObjectValue):
    """An nn.Module: parameters, buffers and submodules are attributes; calling one without hooks is calling its `forward`."""

    def _own_attribute(self, tx: Translator, name: str) -> Value | None:
        if name in self.written or self.real is None:
            return super()._own_attribute(tx, name)
        for group in ("_parameters", "_buffers", "_modules"):
            held = self.real.__dict__.get(group, {})
            if name in held:
                return tx.wrap_module_member(self, group, name, held[name])
        return super()._own_attribute(tx, name)

    def set_attribute(self, tx: Translator, name: str, value: Value) -> None:
        if self.real is None or any(name in self.real.__dict__[group] for group in ("_parameters", "_buffers", "_modules")):
            raise GraphBreak(f"writing attribute {name!r} of a module")
        if issubclass(value.python_type(), Module):
            raise GraphBreak("a module becomes part of another one")
        self.set_plainly(tx, name, value)

    def call(self, tx: Translator, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if self.kind.__call__ is not Module.__call__:
            return super().call(tx, args, kwargs)
        if tx.has_hooks(self):
            raise GraphBreak(f"module {self.kind.__name__} has hooks")
        return self.method(tx, "forward", args, kwargs)

    def write(self, writer: ProgramWriter) -> str:
        raise GraphBreak("a module made by the program")


class ClassValue(Value):
    """A class."""

    def __init__(self, kind: type, source: Source | None = None) -> None:
        self.kind = kind
        self.source = source

    def python_type(self) -> type:
        return type(self.kind)

    def is_constant(self) -> bool:
        return True

    def constant(self) -> Any:
        return self.kind

    def truth(self, tx: Translator) -> bool:
        return True

    def same_as(self, other: Value) -> bool:
        return isinstance(other, ClassValue) and self.kind is other.kind

    def attribute(self, tx: Translator, name: str) -> Value:
        found = look_up(self.kind, name)
        if isinstance(found, classmethod):
            return BoundMethodValue(self, tx.class_member(self.kind, name, found))
        if isinstance(found, staticmethod | types.FunctionType):
            return tx.class_member(self.kind, name, found)
        if name in ("__name__", "__qualname__", "__module__", "__doc__"):
            return ConstantValue(getattr(self.kind, name))
        if found is _MISSING and not hasattr(self.kind, name):
            raise raised(AttributeError(f"type object '{self.kind.__name__}' has no attribute '{name}'"))
        return tx.wrap_class_attribute(self, name)

    def call(self, tx: Translator, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return tx.construct(self, args, kwargs)

    def node(self, tx: Translator) -> Any:
        return self.kind

    def write(self, writer: ProgramWriter) -> str:
        return writer.name_of(self.kind, self.kind.__name__)

    def __str__(self) -> str:
        return f"class {self.kind.__name__}"


class PythonModuleValue(Value):
    """A module of Python."""

    def __init__(self, module: types.ModuleType, source: Source | None) -> None:
        self.module = module
        self.source = source

    def python_type(self) -> type:
        return types.ModuleType

    def is_constant(self) -> bool:
        return True

    def constant(self) -> Any:
        return self.module

    def truth(self, tx: Translator) -> bool:
        return True

    def attribute(self, tx: Translator, name: str) -> Value:
        try:
            found = getattr(self.module, name)
        except AttributeError as error:
            raise raised(error) from None
        return tx.wrap_module_attribute(self, name, found)

    def write(self, writer: ProgramWriter) -> str:
        return writer.name_of(self.module, self.module.__name__.replace(".", "_"))


class SuperValue(Value):
    """`super()`: the methods that come after a class in the method resolution order of an object's class."""

    def __init__(self, after: type, owner: Value) -> None:
        self.after = after
        self.owner = owner

    def python_type(self) -> type:
        return super

    def attribute(self, tx: Translator, name: str) -> Value:
        is_class = isinstance(self.owner, ClassValue)
        order = (self.owner.kind if is_class else self.owner.python_type()).__mro__
        if self.after not in order:
            raise GraphBreak("super() of a metaclass")
        for base in order[order.index(self.after) + 1 :]:
            if name in base.__dict__:
                return self._bound(tx, base, name, base.__dict__[name])
        raise raised(AttributeError(f"'super' object has no attribute '{name}'"))

    def _bound(self, tx: Translator, base: type, name: str, found: Any) -> Value:
        member = tx.class_member(base, name, found)
        if isinstance(found, types.FunctionType):
            is_class = isinstance(self.owner, ClassValue) and name not in ("__new__",)
            return member if is_class else BoundMethodValue(self.owner, member)
        if isinstance(found, classmethod):
            owner = self.owner if isinstance(self.owner, ClassValue) else tx.wrap_class(self.owner.python_type())
            return BoundMethodValue(owner, member)
        if member is not None:
            return member
        if isinstance(found, property):
            tx.guard_member(base, name, found)
            return tx.wrap_constant(found.fget).call(tx, [self.owner], {})
        if inspect.isroutine(found):
            return PlainMethodValue(self.owner, name)
        return tx.wrap(found, Attribute(tx.class_source(base), name))


class PlainMethodValue(Value):
    """A method of `object` itself, reached by `super()`."""

    def __init__(self, owner: Value, name: str) -> None:
        self.owner = owner
        self.name = name

    def call(self, tx: Translator, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if self.name == "__init__" and isinstance(self.owner, ObjectValue):
            return ConstantValue(None)
        if self.name == "__setattr__" and isinstance(self.owner, ObjectValue):
            self.owner.set_plainly(tx, args[0].constant(), args[1])
            return ConstantValue(None)
        if not isinstance(self.owner, ObjectValue | ClassValue):
            return self.owner.method(tx, self.name, args, kwargs)
        raise GraphBreak(f"method {self.name!r} of a built-in base of {self.owner}")
