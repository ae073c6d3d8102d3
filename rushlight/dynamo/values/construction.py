"""Calls of classes: metaclass, `__new__`, `__init__`; and `super()`, which reaches the built-in ones."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any

from rushlight.core.tensor import Tensor
from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.sources import Attribute
from rushlight.dynamo.stability import MISSING, look_up
from rushlight.dynamo.values.base import Value
from rushlight.dynamo.values.classes import ClassValue, is_python_class
from rushlight.dynamo.values.constant import NONE, ConstantValue, fold, raised
from rushlight.dynamo.values.exceptions import ExceptionValue
from rushlight.dynamo.values.function import BoundMethodValue
from rushlight.dynamo.values.inheriting import InheritingValue, built_in_base, contents_of, is_plain_named_tuple
from rushlight.dynamo.values.mappings import DictValue
from rushlight.dynamo.values.modules import ModuleValue
from rushlight.dynamo.values.objects import ObjectValue
from rushlight.dynamo.values.sequences import SequenceValue
from rushlight.nn.modules.module import Module
from rushlight.ops.return_types import is_return_type

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following

# Class -> function that makes its tracked object, for classes with tracked values of their own kind.
CONSTRUCTORS: dict[type, Callable[..., Value]] = {}


def construct(tx: Following, kind: type, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Call a class."""
    if kind in CONSTRUCTORS:
        return CONSTRUCTORS[kind](tx, *args, **kwargs)
    if issubclass(kind, Enum):
        return fold(kind, *args, **kwargs)
    if typing.is_typeddict(kind):
        made = DictValue({}, dict)
        made.method(tx, "update", args, kwargs)
        return made
    caller = look_up(type(kind), "__call__")
    if caller is not type.__call__:
        if not isinstance(caller, types.FunctionType):
            raise GraphBreak(f"an object of class {kind.__name__} is made")
        return tx.class_member(type(kind), "__call__", caller).call(tx, [tx.wrap_class(kind), *args], kwargs)
    return construct_plainly(tx, kind, args, kwargs)


def construct_plainly(tx: Following, kind: type, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Evaluate `type.__call__`: make an object with `__new__` and pass it to `__init__`."""
    if is_return_type(kind) and len(args) == 1 and not kwargs:
        items = args[0].items_of(tx)
        try:
            kind(range(len(items)))  # called only for its error
        except TypeError as error:
            raise raised(error) from None
        return SequenceValue(items, kind)
    if issubclass(kind, tuple) and hasattr(kind, "_fields") and _is_generated(kind):
        return _named_tuple(tx, kind, args, kwargs)
    if issubclass(kind, Tensor):
        raise GraphBreak(f"an object of class {kind.__name__} is made")
    if look_up(kind, "__del__") is not MISSING:
        raise GraphBreak(f"an object of class {kind.__name__} is made, which defines __del__")
    maker = look_up(kind, "__new__")
    if isinstance(maker, staticmethod):
        tx.guard_member(kind, "__new__", maker)
        made = tx.wrap_constant(maker.__func__).call(tx, [tx.wrap_class(kind), *args], kwargs)
    else:
        made = allocate(tx, kind, args, kwargs)
    if isinstance(made.python_type(), type) and issubclass(made.python_type(), kind):
        _initialize(tx, made, maker, args, kwargs)
    return made


def allocate(tx: Following, kind: type, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Evaluate `__new__` of the built-in class that a class inherits from: an object without attributes."""
    if inspect.isabstract(kind):
        names = sorted(kind.__abstractmethods__)
        listed = ", ".join(names) if tx.python < (3, 12) else ", ".join(f"'{name}'" for name in names)
        method = f"method{'s' if len(names) > 1 else ''} {listed}"
        text = f"abstract {method}" if tx.python < (3, 12) else f"an implementation for abstract {method}"
        raise raised(TypeError(f"Can't instantiate abstract class {kind.__name__} with{'out' * (tx.python >= (3, 12))} {text}"))
    if issubclass(kind, BaseException):
        return ExceptionValue(kind, args)
    base = built_in_base(kind)
    if base is not None:
        return InheritingValue(kind, contents_of(tx, base, args, kwargs))
    if not is_python_class(kind):
        raise GraphBreak(f"class {kind.__name__} has a built-in base")
    return ModuleValue(kind) if issubclass(kind, Module) else ObjectValue(kind)


def _initialize(tx: Following, made: Value, maker: Any, args: list[Value], kwargs: dict[str, Value]) -> None:
    kind = made.python_type()
    initializer = look_up(kind, "__init__")
    if isinstance(initializer, types.FunctionType):
        member = tx.class_member(kind, "__init__", initializer)
        result = member.call(tx, [made, *args], kwargs)
        if not (result.is_constant() and result.constant() is None):
            raise raised(TypeError(f"__init__() should return None, not '{result.python_type().__name__}'"))
    elif isinstance(made, InheritingValue):
        made.initialize(tx, args, kwargs)
    elif isinstance(made, ExceptionValue):
        if kwargs:
            raise GraphBreak(f"{kind.__name__}() with keyword arguments")
    elif initializer is types.SimpleNamespace.__init__:
        if args:
            raise GraphBreak("a SimpleNamespace with positional arguments")
        for name, value in kwargs.items():
            made.set_attribute(tx, name, value)
    elif (args or kwargs) and maker is object.__dict__["__new__"]:
        raise raised(TypeError(f"{kind.__name__}() takes no arguments"))


def _is_generated(kind: type) -> bool:
    """Return whether `namedtuple` generated `__new__`, which only orders its arguments."""
    owner = next(base for base in kind.__mro__ if "__new__" in base.__dict__)
    return "_fields" in owner.__dict__ and not isinstance(look_up(kind, "__init__"), types.FunctionType)


def _named_tuple(tx: Following, kind: type, args: list[Value], kwargs: dict[str, Value]) -> Value:
    fields = list(kind._fields)
    unknown = [name for name in kwargs if name not in fields]
    doubled = [name for name in kwargs if name in fields[: len(args)]]
    found = dict(zip(fields, args, strict=False)) | kwargs
    for name, default in kind._field_defaults.items():
        found.setdefault(name, tx.wrap_constant(default))
    if unknown or doubled or set(found) != set(fields) or len(args) > len(fields):
        raise GraphBreak(f"arguments that do not fit the fields of {kind.__name__}")
    items = [found[name] for name in fields]
    return SequenceValue(items, kind) if is_plain_named_tuple(kind) else InheritingValue(kind, SequenceValue(items, tuple))


class SuperValue(Value):
    """`super()`: looks up attributes after a class in the method resolution order of an object's class, or of a metaclass."""

    def __init__(self, after: type, owner: Value) -> None:
        self.after = after
        self.owner = owner

    def python_type(self) -> type:
        return super

    def attribute(self, tx: Following, name: str) -> Value:
        order = self.owner.python_type().__mro__
        if isinstance(self.owner, ClassValue) and self.after not in order:
            order = self.owner.kind.__mro__
        if self.after not in order:
            raise raised(TypeError("super(type, obj): obj must be an instance or subtype of type"))
        for base in order[order.index(self.after) + 1 :]:
            if name in base.__dict__:
                return self._bind_method(tx, base, name, base.__dict__[name])
        raise raised(AttributeError(f"'super' object has no attribute '{name}'"))

    def _is_of_class(self) -> bool:
        return isinstance(self.owner, ClassValue) and self.after not in self.owner.python_type().__mro__

    def _bind_method(self, tx: Following, base: type, name: str, found: Any) -> Value:
        if found is Module.__getattr__ and isinstance(self.owner, ModuleValue):
            return PlainMethodValue(self.owner, base, name)
        member = tx.class_member(base, name, found)
        if isinstance(found, types.FunctionType):
            return member if self._is_of_class() else BoundMethodValue(self.owner, member)
        if isinstance(found, classmethod):
            owner = self.owner if isinstance(self.owner, ClassValue) else tx.wrap_class(self.owner.python_type())
            return BoundMethodValue(owner, member)
        if member is not None:
            return member
        if isinstance(found, property):
            tx.guard_member(base, name, found)
            return tx.wrap_constant(found.fget).call(tx, [self.owner], {})
        if inspect.isroutine(found):
            return PlainMethodValue(self.owner, base, name)
        return tx.wrap(found, Attribute(tx.class_source(base), name))


class PlainMethodValue(Value):
    """A method of a built-in class `base`, reached by `super()`."""

    def __init__(self, owner: Value, base: type, name: str) -> None:
        self.owner = owner
        self.base = base
        self.name = name

    def truth(self, tx: Following) -> bool:
        return True

    def call(self, tx: Following, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if self.name == "__new__":
            return allocate(tx, args[0].constant(), args[1:], kwargs)
        if self.name == "__call__" and isinstance(self.owner, ClassValue):
            return construct_plainly(tx, self.owner.kind, args, kwargs)
        return call_plainly(tx, self.owner, self.name, args, kwargs)


def call_plainly(tx: Following, owner: Value, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Call the method of the built-in base class, even if the object's class overrides it."""
    if name in ("__init_subclass__", "__subclasshook__"):
        return NONE
    if isinstance(owner, InheritingValue) and hasattr(owner.base, name) and not hasattr(object, name):
        return owner.plain_method(tx, name, args, kwargs)
    if isinstance(owner, ModuleValue) and name == "__getattr__":
        return owner.missing_attribute(tx, *args)
    if isinstance(owner, ExceptionValue) and name == "__init__":
        owner.arguments = list(args)
        return NONE
    if isinstance(owner, ExceptionValue) and name == "__str__":
        return ConstantValue(owner.plain_text())
    if isinstance(owner, InheritingValue) and name == "__init__":
        owner.initialize(tx, args, kwargs)
        return NONE
    if isinstance(owner, ObjectValue):
        return owner.method_of_object(tx, name, args)
    if isinstance(owner, ClassValue):
        raise GraphBreak(f"method {name!r} of a built-in base of {owner}")
    return owner.method(tx, name, args, kwargs)
