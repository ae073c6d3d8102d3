"""The meaning of Python objects in scripted code: modules, functions, classes, numbers. Stage: jit, emission.

In: the object of a name at the function's definition. Out: a sugared value. The user's functions and classes are compiled on
demand (`Compiler`).
"""

from __future__ import annotations

import builtins
import cmath
import collections
import enum
import inspect
import math
import types
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from rushlight.autograd.grad_mode import is_grad_enabled, set_grad_enabled
from rushlight.core.device import device
from rushlight.core.dtype import dtype
from rushlight.core.generator import Generator
from rushlight.core.layout import layout, memory_format
from rushlight.core.tensor import Tensor
from rushlight.jit.annotations import type_from_python
from rushlight.jit.decorators import is_ignored, is_unused
from rushlight.jit.emit.builtin_names import BUILTIN_NAMES, FormValue
from rushlight.jit.emit.callables import (
    BuiltinFunction,
    CastValue,
    ClassValue,
    ConstantValue,
    FunctionValue,
    LegacyTensorValue,
    NamedTupleValue,
    TypeValue,
)
from rushlight.jit.emit.sugared import NamedValue, SimpleValue, SugaredValue, TupleOfSugared
from rushlight.jit.errors import ErrorReport
from rushlight.jit.function import Function
from rushlight.jit.ir.graph import Value
from rushlight.jit.library import BUILTINS, BY_FLAGS, REPLACEMENTS
from rushlight.jit.operators.registry import operators_named
from rushlight.jit.source import SourceRange
from rushlight.jit.types.kinds import ClassType, EnumType, InterfaceType, TupleType, Type
from rushlight.legacy import TensorType as LegacyTensorType
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.packet import Namespace, OpOverloadPacket
from rushlight.random import manual_seed

if TYPE_CHECKING:
    from rushlight.jit.emit.emitter import Emitter

_MATH = {"ceil", "copysign", "cos", "cosh", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "degrees", "erf",
         "erfc", "exp",
         "expm1", "fabs", "factorial", "floor", "fmod", "frexp", "gamma", "gcd", "isfinite", "isinf", "isnan", "ldexp",
         "lgamma", "log",
         "log10", "log1p", "modf", "pow", "radians", "sin", "sinh", "sqrt", "tan", "tanh", "remainder"}  # fmt: skip
_COMPLEX_MATH = {"acos", "asin", "atan", "cos", "cosh", "exp", "isfinite", "isinf", "isnan", "log", "log10", "sin",
                 "sinh", "sqrt", "tan", "tanh", "acosh", "asinh", "atanh"}  # fmt: skip
FUNCTIONS: dict[object, SugaredValue] = {
    **{getattr(cmath, name): BuiltinFunction(f"aten::{name}") for name in _COMPLEX_MATH},
    cmath.phase: BuiltinFunction("aten::angle"),
    warnings.warn: BuiltinFunction("aten::warn"), is_grad_enabled: BuiltinFunction("aten::is_grad_enabled"),
    set_grad_enabled: BuiltinFunction("aten::set_grad_enabled"), manual_seed: BuiltinFunction("aten::manual_seed"),
    Generator: BuiltinFunction("aten::Generator"), device: BuiltinFunction("aten::device"),
    **{function: BuiltinFunction(name) for function, name in BUILTINS.items()},
    **{getattr(math, name): BuiltinFunction(f"aten::{'mathremainder' if name == 'remainder' else name}") for name in _MATH},
}
"""The compiled meaning of Python functions that are not scripted themselves. Other jit modules add entries on import."""


class Compiler(Protocol):
    """Compiles the functions and classes that a function refers to."""

    def function(self, function: Callable, where: SourceRange) -> Sequence[Function]:
        """Return the compiled function of a Python one; several if it has overloads."""

    def class_type(self, kind: type) -> Type | None:
        """Return the type of a Python class; None if it can't be one."""


@dataclass
class PythonModule(SugaredValue):
    """A Python module; its members are looked up by name."""

    module: types.ModuleType | Namespace
    resolver: PythonResolver

    def kind(self) -> str:
        return f"python module '{self.name}'"

    @property
    def name(self) -> str:
        """Return its name."""
        return getattr(self.module, "__name__", str(self.module))

    def attribute(self, where: SourceRange, emitter: Emitter, name: str) -> SugaredValue:
        try:
            member = getattr(self.module, name)
        except AttributeError:
            missing = f"module '{self.name}' has no attribute '{name}': object has no attribute {name}"
            raise ErrorReport(where, missing) from None
        return self.resolver.sugared(member, where, name)


@dataclass
class PythonClassMembers(SugaredValue):
    """A Python class with constants or functions as members: an enumeration, a namespace."""

    python_class: type
    type: Type | None
    resolver: PythonResolver

    def kind(self) -> str:
        return f"python class '{self.python_class.__name__}'"

    def as_type(self) -> Type | None:
        return self.type

    def as_value(self, where: SourceRange, emitter: Emitter) -> Value:
        raise ErrorReport(where, f"python value of type 'type' cannot be used as a value: {self.python_class.__name__}")

    def attribute(self, where: SourceRange, emitter: Emitter, name: str) -> SugaredValue:
        if not hasattr(self.python_class, name):
            raise ErrorReport(where, f"class '{self.python_class.__name__}' has no attribute '{name}'")
        return self.resolver.sugared(getattr(self.python_class, name), where, name)

    def as_iterable(self, where: SourceRange, emitter: Emitter) -> SugaredValue:
        """Return the members of an enumeration, as a list."""
        if isinstance(self.type, EnumType):
            return SimpleValue(emitter.constant(list(self.python_class), where))
        return self


@dataclass
class ExceptionClass(SugaredValue):
    """An exception class: a call makes the operand of `raise`; raised uncalled, it has no message."""

    python_class: type

    def kind(self) -> str:
        return f"exception class '{self.python_class.__name__}'"

    @property
    def qualified_name(self) -> str:
        """Return the name of the class with its module, for example `builtins.ValueError`."""
        return f"{self.python_class.__module__}.{self.python_class.__qualname__}"

    @property
    def exception(self) -> tuple[str, Value | None]:
        """Return the operand of `raise`."""
        return self.qualified_name, None

    def call(
        self, where: SourceRange, emitter: Emitter, args: Sequence[NamedValue], keywords: Sequence[NamedValue]
    ) -> SugaredValue:
        message = None
        if args:
            parts = [emitter.value_of(each) for each in args]
            message = parts[0] if len(parts) == 1 else emitter.make_tuple(parts, where)
        return ExceptionValue(self.qualified_name, message)


@dataclass
class ExceptionValue(SugaredValue):
    """An exception with its message."""

    name: str
    message: Value | None

    @property
    def exception(self) -> tuple[str, Value | None]:
        """Return the operand of `raise`."""
        return self.name, self.message


@dataclass
class IgnoredFunction(SugaredValue):
    """A function that is left to Python (`ignore`), or raises when it is called (`unused`); a method knows its module."""

    function: Callable
    raises: bool
    owner: Value | None = None

    def kind(self) -> str:
        return "ignored function"

    def call(
        self, where: SourceRange, emitter: Emitter, args: Sequence[NamedValue], keywords: Sequence[NamedValue]
    ) -> SugaredValue:
        result = emitter.resolver.compiler.declared_return(self.function)
        if self.raises:
            name = self.function.__qualname__.rpartition("<locals>.")[2]
            text = f"Code marked @unused was called: {name}, which scripted code replaces by this error"
            emitter.graph.insert("prim::RaiseException", [emitter.constant(text, where)], 0).source_range = where
            return SimpleValue(emitter.insert("prim::Uninitialized", [], result, where))
        names = list(inspect.signature(self.function).parameters)[0 if self.owner is None else 1 :]
        named = {each.name: emitter.value_of(each) for each in keywords}
        given = [emitter.value_of(each) for each in args] + [named.pop(name) for name in names[len(args) :] if name in named]
        if named:
            raise ErrorReport(where, f"keyword argument {next(iter(named))} unknown")
        inputs = [*([] if self.owner is None else [self.owner]), *given]
        node = emitter.graph.insert("prim::PythonOp", inputs).set("name", self.function.__name__)
        node.set("function", self.function).source_range = where
        return SimpleValue(node.output.set_type(result))


@dataclass
class FlaggedFunction(SugaredValue):
    """A function whose result type depends on constant flags, such as `return_indices`: one function per choice of flags.

    `flags` are their names and positions.
    """

    flags: tuple[tuple[str, int], ...]
    forms: dict[tuple[bool, ...], SugaredValue]

    def kind(self) -> str:
        return "function"

    def call(
        self, where: SourceRange, emitter: Emitter, args: Sequence[NamedValue], keywords: Sequence[NamedValue]
    ) -> SugaredValue:
        chosen = []
        for name, position in self.flags:
            given = [each for each in keywords if each.name == name] or args[position : position + 1]
            flag = emitter.value_of(given[0]).constant() if given else False
            if not isinstance(flag, bool):
                raise ErrorReport(where, f"{name} must be a constant, since it says how many results there are")
            chosen.append(flag)
        return self.forms[tuple(chosen)].call(where, emitter, args, keywords)


class PythonResolver:
    """Resolves names at a Python function's definition; `lookup` finds the object of a name."""

    def __init__(self, lookup: Callable[[str], object], compiler: Compiler):
        self.lookup = lookup
        self.compiler = compiler

    def shadows(self, name: str) -> bool:
        """Return whether a built-in's name is redefined here."""
        found = self.lookup(name)
        return found is not None and found is not getattr(builtins, name, None) and name not in ("annotate", "fork")

    def value(self, name: str, where: SourceRange, emitter: Emitter) -> SugaredValue | None:
        """Return the meaning of a name; None if it has none."""
        if name in BUILTIN_NAMES and not self.shadows(name):
            return BUILTIN_NAMES[name]
        found = self.lookup(name)
        if found is None:
            return None
        return self.sugared(found, where, name)

    def type(self, name: str) -> Type | None:
        """Return the class that a dotted name denotes."""
        first, *rest = name.split(".")
        found = self.lookup(first)
        for part in rest:
            found = getattr(found, part, None)
        return None if found is None else type_from_python(found, self.compiler.class_type)

    def constant_value(self, value: object, where: SourceRange, emitter: Emitter) -> SugaredValue:
        """Return the sugared value of a Python object."""
        return self.sugared(value, where, "")

    def sugared(self, value: object, where: SourceRange, name: str) -> SugaredValue:
        """Return the sugared value of a Python object. ErrorReport for one without meaning in scripted code."""
        try:
            if value in FUNCTIONS:
                return FUNCTIONS[value]
            if value in BY_FLAGS:
                flags, forms = BY_FLAGS[value]
                return FlaggedFunction(flags, {key: self._wrap_callable(each, where, name) for key, each in forms.items()})
            value = REPLACEMENTS.get(value, value)
        except TypeError:
            pass
        if (
            isinstance(value, bool | int | float | complex | str | dtype | device | layout | memory_format | enum.Enum)
            or value is None
        ):
            if isinstance(value, enum.Enum):
                self.compiler.class_type(type(value))
            return ConstantValue(value)
        if isinstance(value, types.ModuleType | Namespace):
            return PythonModule(value, self)
        if isinstance(value, tuple) and not hasattr(value, "_fields"):
            return TupleOfSugared([self.sugared(item, where, name) for item in value])
        if isinstance(value, type):
            return self._wrap_class(value, where)
        return self._wrap_callable(value, where, name)

    def _wrap_class(self, kind: type, where: SourceRange) -> SugaredValue:
        named = BUILTIN_NAMES.get(kind.__name__)
        if kind.__module__ == "builtins" and isinstance(named, CastValue):
            return named
        if issubclass(kind, BaseException):
            return ExceptionClass(kind)
        if kind is collections.OrderedDict:
            return FormValue("dict")
        if isinstance(kind, LegacyTensorType):
            return LegacyTensorValue(kind.dtype)
        found = type_from_python(kind, self.compiler.class_type)
        if isinstance(found, ClassType):
            return ClassValue(found)
        if isinstance(found, TupleType):
            return NamedTupleValue(found)
        if isinstance(found, EnumType) or found is None:
            return PythonClassMembers(kind, found, self)
        return (
            TypeValue(found) if isinstance(found, InterfaceType) or found is not None else PythonClassMembers(kind, None, self)
        )

    def _wrap_callable(self, value: object, where: SourceRange, name: str) -> SugaredValue:
        operator = operator_name(value)
        if operator is not None:
            return BuiltinFunction(operator, value._schema.overload if isinstance(value, OpOverload) else None)
        if is_ignored(value) or is_unused(value):
            return IgnoredFunction(value, is_unused(value))
        if isinstance(value, Function):
            return FunctionValue([value])
        if hasattr(value, "_rushlight_functions"):
            return FunctionValue(value._rushlight_functions)
        if inspect.isfunction(value) or inspect.ismethod(value):
            return FunctionValue(self.compiler.function(value, where))
        if hasattr(value, "_c") and callable(value):
            raise ErrorReport(where, "Cannot call a ScriptModule that is not a submodule of the caller")
        if inspect.isbuiltin(value):
            raise ErrorReport(where, f"Python builtin {value} is currently not supported in TorchScript")
        if isinstance(value, Tensor):
            raise ErrorReport(where, f"Tensor '{name}' is a global of Python, whose value would be baked in. Pass it as an "
                                     "argument, or make it a buffer of a module")  # fmt: skip
        raise ErrorReport(where, f"Python value of type '{type(value).__name__}' cannot be used as a value: '{name}'. "
                                 "Perhaps it is a closed over global variable? If so, pass it in as an argument or use a "
                                 "local variable")  # fmt: skip


def operator_name(value: object) -> str | None:
    """Return the jit's name of a library operator, `aten::relu`; None for anything else."""
    if isinstance(value, OpOverload):
        return f"{value.namespace}::{value._opname}"
    if isinstance(value, OpOverloadPacket):
        return value._name
    module = getattr(value, "__module__", None) or ""
    if not module.startswith("rushlight") or not callable(value):
        return None
    for package in ("linalg", "fft", "special"):
        if module.startswith(f"rushlight.{package}"):
            found = f"aten::{package}_{value.__name__.removeprefix(f'{package}_')}"
            return found if operators_named(found) else None
    name = f"aten::{getattr(value, '__name__', '')}"
    folders = ("rushlight.ops", "rushlight.core", "rushlight._C", "rushlight.quantized.functions")
    is_of_library = module.startswith(folders) or module == "rushlight"
    return name if is_of_library and operators_named(name) else None
