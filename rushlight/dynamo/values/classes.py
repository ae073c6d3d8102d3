"""Classes and Python modules."""

from __future__ import annotations

import operator
import threading
import types
from enum import EnumType
from typing import TYPE_CHECKING, Any

from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.sources import Source
from rushlight.dynamo.stability import MISSING, is_stable, look_up
from rushlight.dynamo.values.base import MAKERS, Value
from rushlight.dynamo.values.constant import ConstantValue, FixedValue, fold, raised
from rushlight.dynamo.values.function import BoundMethodValue

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following

def is_python_class(kind: type) -> bool:
    """Return whether a class and all its bases, except those whose instances consist of attributes as well, are written in
    Python: then its instances consist of their attributes."""
    return all(base in _PLAIN_BASES or _is_written(base) for base in kind.__mro__)


_PLAIN_BASES = (threading.local, types.SimpleNamespace, object)


def plain_base(kind: type) -> type:
    """Return the class that makes instances, and sets attributes of instances, of a class for which `is_python_class` holds."""
    return next(base for base in _PLAIN_BASES if issubclass(kind, base))


def _is_written(kind: type) -> bool:
    is_made_at_runtime = bool(kind.__flags__ & (1 << 9))
    return is_made_at_runtime and not isinstance(kind.__dict__.get("__new__"), types.BuiltinFunctionType)


class ClassValue(FixedValue):
    """A class."""

    def __init__(self, kind: type, source: Source | None = None) -> None:
        super().__init__(kind, source)
        self.kind = kind

    def attribute(self, tx: Following, name: str) -> Value:
        written = tx.effects.class_attribute(self.kind, name)
        if written is not None:
            return written
        found = look_up(self.kind, name)
        if isinstance(found, classmethod) and isinstance(found.__func__, property):  # until Python 3.12
            tx.guard_member(self.kind, name, found)
            return tx.wrap_constant(found.__func__.fget).call(tx, [self], {})
        if isinstance(found, classmethod):
            return BoundMethodValue(self, tx.class_member(self.kind, name, found))
        if isinstance(found, staticmethod | types.FunctionType):
            return tx.class_member(self.kind, name, found)
        if name in ("__name__", "__qualname__", "__module__", "__doc__"):
            return ConstantValue(getattr(self.kind, name))
        if name == "__subclasses__" and look_up(type(self.kind), name) is type.__dict__[name]:
            return SubclassesValue(self)
        if found is MISSING and not hasattr(self.kind, name):
            raise raised(AttributeError(f"type object '{self.kind.__name__}' has no attribute '{name}'"))
        return tx.wrap_class_attribute(self, name)

    def set_attribute(self, tx: Following, name: str, value: Value) -> None:
        found, above = look_up(self.kind, name), look_up(type(self.kind), name)
        is_plain = look_up(type(self.kind), "__setattr__") is type.__setattr__ and not hasattr(type(above), "__set__")
        has_meaning = name.startswith("__") or any(hasattr(kind, "__get__") for kind in (type(found), value.python_type()))
        if not is_plain or has_meaning or is_stable(self.kind):
            raise GraphBreak(f"writing attribute {name!r} of {self}")
        tx.effects.store_class_attribute(self, self.kind, name, value)

    def _method_of_metaclass(self, tx: Following, name: str) -> Value | None:
        """Return a special method of the class object, defined in Python by its metaclass."""
        found = look_up(type(self.kind), name)
        if not isinstance(found, types.FunctionType) or isinstance(self.kind, EnumType):
            return None
        return BoundMethodValue(self, tx.class_member(type(self.kind), name, found))

    def item(self, tx: Following, key: Value) -> Value:
        method = self._method_of_metaclass(tx, "__getitem__")
        if method is not None:
            return method.call(tx, [key], {})
        if not isinstance(self.kind, EnumType) and (type(self.kind) is not type or not is_stable(self.kind)):
            raise GraphBreak("a subscripted class")
        return fold(operator.getitem, self, key)

    def iterator(self, tx: Following) -> Value | None:
        method = self._method_of_metaclass(tx, "__iter__")
        return None if method is None else method.call(tx, [], {})

    def truth(self, tx: Following) -> bool:
        return True if isinstance(self.kind, EnumType) else super().truth(tx)

    def length(self, tx: Following) -> Value:
        method = self._method_of_metaclass(tx, "__len__")
        if method is not None:
            return method.call(tx, [], {})
        return ConstantValue(len(self.kind)) if isinstance(self.kind, EnumType) else super().length(tx)

    def items_of(self, tx: Following) -> list[Value]:
        iterator = self.iterator(tx)
        if iterator is not None:
            return list(tx.drain(iterator))
        return list(map(tx.wrap_constant, self.kind)) if isinstance(self.kind, EnumType) else super().items_of(tx)

    def call(self, tx: Following, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return tx.construct(self, args, kwargs)

    def node(self, tx: Following) -> Any:
        return self.kind

    def __str__(self) -> str:
        return f"class {self.kind.__name__}"


class SubclassesValue(Value):
    """`__subclasses__` of a class; the answer is guarded."""

    def __init__(self, owner: ClassValue) -> None:
        self.owner = owner

    def call(self, tx: Following, args: list[Value], kwargs: dict[str, Value]) -> Value:
        found, place = self.owner.kind.__subclasses__(), tx.class_source(self.owner.kind)
        names = ", ".join(tx.guards.name(kind, kind.__name__) for kind in found)
        tx.guards.add(f"{place.expression()}.__subclasses__() == [{names}]", place, "its subclasses")
        return MAKERS[list](list(map(tx.wrap_class, found)))


class PythonModuleValue(FixedValue):
    """A module of Python."""

    def __init__(self, module: types.ModuleType, source: Source | None = None) -> None:
        super().__init__(module, source)
        self.module = module

    def attribute(self, tx: Following, name: str) -> Value:
        written, value = tx.effects.global_value(self.module.__dict__, name)
        if value is not None:
            return value
        if written:
            raise raised(AttributeError(f"module '{self.module.__name__}' has no attribute '{name}'"))
        try:
            found = getattr(self.module, name)
        except AttributeError as error:
            raise raised(error) from None
        return tx.wrap_module_attribute(self, name, found)
