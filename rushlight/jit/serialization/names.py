"""The meaning of names in an archive's code: `torch` and `ops` are operators, `__torch__` the archive's classes and functions,
`CONSTANTS` its constants. Nothing else exists. Stage: jit, loading.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rushlight.jit.constants import constant_type
from rushlight.jit.emit.builtin_names import BUILTIN_NAMES, FormValue
from rushlight.jit.emit.callables import (
    BuiltinFunction,
    ClassValue,
    ConstantValue,
    FunctionValue,
    NamedTupleValue,
    SpecialForm,
    TypeValue,
)
from rushlight.jit.emit.sugared import NamedValue, SimpleValue, SugaredValue
from rushlight.jit.errors import ErrorReport
from rushlight.jit.passes import upgraders
from rushlight.jit.source import SourceRange
from rushlight.jit.tree_views import Apply
from rushlight.jit.types.kinds import ClassType, EnumType, TupleType, Type

if TYPE_CHECKING:
    from rushlight.jit.emit.emitter import Emitter
    from rushlight.jit.serialization.importer import Importer

_FORMS = ("annotate", "fork", "unchecked_cast")
_NUMBERS = {"inf": math.inf, "nan": math.nan, "infj": complex(0, math.inf), "nanj": complex(0, math.nan)}


class ArchiveResolver:
    """The resolver of all functions of one archive."""

    def __init__(self, importer: Importer):
        self.importer = importer
        self._values: dict[str, SugaredValue] = dict(BUILTIN_NAMES)
        self._values |= {name: FormValue(name) for name in _FORMS}
        self._values |= {name: ConstantValue(value) for name, value in _NUMBERS.items()}
        self._values |= {"torch": Operators("aten", importer.version), "ops": OperatorNamespaces(),
                         "CONSTANTS": Constants(self), "__torch__": Package(self, "__torch__")}  # fmt: skip

    def value(self, name: str, where: SourceRange, emitter: Emitter) -> SugaredValue | None:
        """Return the meaning of a name; None if it has none."""
        return self._values.get(name)

    def type(self, name: str) -> Type | None:
        """Return the class that a dotted name denotes."""
        return self.importer.find_type(name)

    def constant_value(self, value: object, where: SourceRange, emitter: Emitter) -> SugaredValue:
        """Return the sugared value of a class's constant."""
        return ConstantValue(value)

    def constant(self, name: str, where: SourceRange) -> object:
        """Return the value of `CONSTANTS.name`, where the name is `c` and a number."""
        values = self.importer.constants()
        number = int(name[1:]) if name[:1] == "c" and name[1:].isascii() and name[1:].isdigit() and len(name) < 12 else -1
        if not 0 <= number < len(values):
            raise ErrorReport(where, f"the archive has {len(values)} constants, and no CONSTANTS.{name}")
        return values[number]


@dataclass
class Operators(SugaredValue):
    """`torch`, `ops.prim`: the operators of a namespace, as they were in the archive's version."""

    namespace: str
    version: int | None = None

    def kind(self) -> str:
        return f"operators of {self.namespace}"

    def attribute(self, where: SourceRange, emitter: Emitter, name: str) -> SugaredValue:
        if self.namespace == "aten" and name == "autograd":
            return self  # torch.autograd.grad is aten::grad
        operator = f"{self.namespace}::{name}"
        if self.version is not None and upgraders.has_old_signature(operator, self.version):
            return OldFunction(operator)
        return BuiltinFunction(operator)


class OldFunction(BuiltinFunction):
    """An operator with the signature that it had when an archive was written, beside today's."""

    def call(
        self, where: SourceRange, emitter: Emitter, args: Sequence[NamedValue], keywords: Sequence[NamedValue]
    ) -> SugaredValue:
        with emitter.graph.source(where):
            found = emitter.matcher.match_operators(upgraders.operators_of_before(self.name), where, args, keywords)
            return emitter.insert_operator(*found, where)


@dataclass
class OperatorNamespaces(SugaredValue):
    """`ops`."""

    def kind(self) -> str:
        return "operators"

    def attribute(self, where: SourceRange, emitter: Emitter, name: str) -> SugaredValue:
        return Operators(name)


@dataclass
class Constants(SugaredValue):
    """`CONSTANTS`."""

    resolver: ArchiveResolver

    def kind(self) -> str:
        return "constants"

    def attribute(self, where: SourceRange, emitter: Emitter, name: str) -> SugaredValue:
        value = self.resolver.constant(name, where)
        if constant_type(value) is None:
            raise ErrorReport(where, f"CONSTANTS.{name} is a {type(value).__name__}, which can't be a constant of a graph")
        return ConstantValue(value)


@dataclass
class Package(SugaredValue):
    """A part of a qualified name, `__torch__.torch.nn`."""

    resolver: ArchiveResolver
    name: str

    def kind(self) -> str:
        return f"'{self.name}'"

    def attribute(self, where: SourceRange, emitter: Emitter, name: str) -> SugaredValue:
        full = f"{self.name}.{name}"
        kind = self.resolver.importer.find_type(full)
        if isinstance(kind, ClassType):
            return ImportedClass(kind)
        if isinstance(kind, TupleType):
            return NamedTupleValue(kind)
        if isinstance(kind, EnumType):
            return EnumMembers(kind)
        if kind is not None:
            return TypeValue(kind)
        function = self.resolver.importer.find_function(full)
        return Package(self.resolver, full) if function is None else FunctionValue([function])

    def as_value(self, where: SourceRange, emitter: Emitter):
        raise ErrorReport(where, f"the archive defines no {self.name}")

    def call(
        self, where: SourceRange, emitter: Emitter, args: Sequence[NamedValue], keywords: Sequence[NamedValue]
    ) -> SugaredValue:
        raise ErrorReport(where, f"the archive defines no {self.name}")


@dataclass
class ImportedClass(ClassValue):
    """A class: `X.__new__(X)` makes an object without calling `__init__`."""

    def attribute(self, where: SourceRange, emitter: Emitter, name: str) -> SugaredValue:
        return SpecialForm("__new__", self._create) if name == "__new__" else super().attribute(where, emitter, name)

    def _create(self, emitter: Emitter, tree: Apply) -> SugaredValue:
        return SimpleValue(emitter.insert("prim::CreateObject", [], self.type, tree.range))


@dataclass
class EnumMembers(SugaredValue):
    """An enumeration."""

    type: EnumType

    def kind(self) -> str:
        return f"enumeration '{self.type}'"

    def as_type(self) -> Type:
        return self.type

    def attribute(self, where: SourceRange, emitter: Emitter, name: str) -> SugaredValue:
        found = self.type.python_class.__members__.get(name)
        if found is None:
            raise ErrorReport(where, f"enumeration '{self.type}' has no member '{name}'")
        return ConstantValue(found)
