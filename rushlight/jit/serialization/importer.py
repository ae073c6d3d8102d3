"""The code of an archive: classes, functions, NamedTuples, enumerations and interfaces, found by their qualified names.

In: the files under `code/`, parsed by Python's `ast` and never executed. Out: types, and functions that are compiled when they
are first needed. Stage: jit, loading.
"""

from __future__ import annotations

import ast
import keyword
import re
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from itertools import accumulate
from operator import itemgetter
from typing import TYPE_CHECKING

from rushlight.core.lazy_module import LazyModule
from rushlight.jit.constants import ENUM_TYPES, constant_type
from rushlight.jit.errors import ErrorReport
from rushlight.jit.frontend.context import SourceContext
from rushlight.jit.function import Function
from rushlight.jit.serialization.debug_sources import DebugSources
from rushlight.jit.serialization.imported_function import ImportedFunction
from rushlight.jit.serialization.literals import literal_value
from rushlight.jit.source import Source
from rushlight.jit.types.extensions import PREFIX as EXTENSIONS
from rushlight.jit.types.extensions import extension_type
from rushlight.jit.types.kinds import ClassType, EnumType, InterfaceType, TupleType, Type
from rushlight.jit.types.plain import plain_type
from rushlight.serialization.errors import CheckpointError

if TYPE_CHECKING:
    from rushlight.jit.serialization.kept_graphs import KeptGraphs
    from rushlight.jit.serialization.names import ArchiveResolver

# Imported lazily: only code that is compiled, or has unusual annotations, needs these modules.
annotations, expressions, names = map(LazyModule, (
    "rushlight.jit.annotations", "rushlight.jit.frontend.expressions", "rushlight.jit.serialization.names",
))  # fmt: skip

ROOT = "__torch__"
_DEFINITION = re.compile(r"(?:class|def) +(\w+) *[(:]")
_KEYWORDS = "|".join(keyword.kwlist)
_KEYWORD = rf"(?<=\w\.)(?:{_KEYWORDS})\b|(?<=\n  )(?:{_KEYWORDS})(?= : )"
_OLD_HEADER = re.compile(r"op_version_set *=|import |from ")  # the header of files before torch 1.4
_BASES = ("Module", "NamedTuple", "Enum", "Interface", "ModuleInterface")


@dataclass(frozen=True)
class CodeFile:
    """A file of code: the text, first line and offset of each class and function by name; each is parsed on demand."""

    name: str
    chunks: dict[str, tuple[str, int, int]]
    debug: DebugSources | None = None

    def parse(self, definition: str) -> tuple[ast.FunctionDef | ast.ClassDef, SourceContext]:
        """Return a definition, and its source context; CheckpointError where the syntax is invalid."""
        text, first_line, start = self.chunks[definition]
        origin = None if self.debug is None else lambda offset: self.debug.find(start + offset)
        try:
            body = _parse_code(text)
        except SyntaxError:
            text = re.sub(_KEYWORD, _as_identifier, text)
            body = self._parse_again(text, definition)
        except (ValueError, RecursionError, MemoryError) as error:
            raise CheckpointError(f"{self.name}: '{definition}' is no code of TorchScript: {error}") from None
        if len(body) != 1 or not isinstance(body[0], ast.FunctionDef | ast.ClassDef) or body[0].name != definition:
            raise CheckpointError(f"{self.name}, line {first_line + 1}: only classes and functions may stand here")
        return body[0], SourceContext(Source(text, self.name, first_line, origin=origin), is_archive=True)

    def _parse_again(self, text: str, definition: str) -> list[ast.stmt]:
        try:
            return _parse_code(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise CheckpointError(f"{self.name}: '{definition}' is no code of TorchScript: {error}") from None


def _parse_code(text: str) -> list[ast.stmt]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python's warnings about literals don't concern the archive's user
        return ast.parse(text).body


def _as_identifier(found: re.Match) -> str:
    """Return a Python keyword as an attribute's name, written with a full-width first letter, which Python normalises."""
    return chr(ord(found[0][0]) - ord("!") + ord("\uff01")) + found[0][1:]


def split_file(name: str, text: str, debug: bytes | None) -> CodeFile:
    """Return the definitions of a file, which start in column 0; CheckpointError for duplicate names and for anything else."""
    lines = text.split("\n")
    offsets = list(accumulate((len(line) + 1 for line in lines), initial=0))
    starts = [number for number, line in enumerate(lines) if line and not line[0].isspace()]
    chunks: dict[str, tuple[str, int, int]] = {}
    for start, end in zip(starts, [*starts, len(lines)][1:], strict=True):
        found = _DEFINITION.match(lines[start])
        if found is None:
            if _OLD_HEADER.match(lines[start]):
                continue
            raise CheckpointError(f"{name}, line {start + 1}: only classes and functions may stand here")
        if found[1] in chunks:
            raise CheckpointError(f"{name} defines '{found[1]}' twice")
        chunks[found[1]] = ("\n".join(lines[start:end]) + "\n", start, offsets[start])
    return CodeFile(name, chunks, None if debug is None else DebugSources(debug))


def _attribute_types(node: ast.ClassDef) -> list[str]:
    """Return the qualified names in the annotations of a class's attributes."""
    annotated = [statement.annotation for statement in node.body if isinstance(statement, ast.AnnAssign)]
    annotated += [statement.value for statement in node.body if isinstance(statement, ast.Assign)]  # __annotations__["0"] = ...
    names = [ast.unparse(each) for kind in annotated for each in ast.walk(kind) if isinstance(each, ast.Attribute)]
    return [each for each in names if each.startswith(f"{ROOT}.")]


class Importer:
    """Looks up definitions in an archive's code. `read` returns the text of a file, `read_debug` its source positions; None if
    there is none."""

    def __init__(
        self, read: Callable[[str], str | None], read_debug: Callable[[str], bytes | None], version: int,
        constants: Callable[[], tuple],
    ):  # fmt: skip
        self.read = read
        self.read_debug = read_debug
        self.version = version
        self.constants = constants
        self.files: dict[str, CodeFile | None] = {}
        self.types: dict[str, Type | None] = {}
        self.functions: dict[str, Function | None] = {}
        self.lock = threading.RLock()
        self.kept_graphs: KeptGraphs | None = None

    @cached_property
    def resolver(self) -> ArchiveResolver:
        """Return the name resolver of the code."""
        return names.ArchiveResolver(self)

    # Read code files

    def definition(self, name: str) -> tuple[ast.AST, SourceContext] | None:
        """Return the definition of a qualified name; None if there is none."""
        prefix, _, last = name.rpartition(".")
        if prefix not in self.files:
            self.files[prefix] = self._read_file(prefix) if prefix.partition(".")[0] == ROOT else None
        found = self.files[prefix]
        return None if found is None or last not in found.chunks else found.parse(last)

    def _read_file(self, prefix: str) -> CodeFile | None:
        name = f"code/{prefix.replace('.', '/')}.py"
        text = self.read(name)
        return None if text is None else split_file(name, text, self.read_debug(f"{name}.debug_pkl"))

    # Find types

    def find_type(self, name: str) -> Type | None:
        """Return the type of a qualified name; None if it is no type."""
        if name.startswith(EXTENSIONS):
            found = extension_type(name)
            if found is None and name.count(".") > EXTENSIONS.count("."):
                raise CheckpointError(f"{name[:200]} is a class of torch's extensions, of which only packed weights are known")
            return found
        with self.lock:
            if name not in self.types:
                found = self.definition(name)
                if found is None or not isinstance(found[0], ast.ClassDef):
                    return None
                self._make_with_attributes(name)
            if self.types[name] is None:
                raise CheckpointError(f"class {name[:200]} is defined by itself")
            return self.types[name]

    def _make_with_attributes(self, name: str) -> None:
        """Create a class and the classes of its attributes, innermost first, to avoid deep recursion."""
        waiting, expanded = [name], set()
        while waiting:
            current = waiting[-1]
            found = None if current in self.types else self.definition(current)
            if found is None or not isinstance(found[0], ast.ClassDef):
                waiting.pop()
            elif current in expanded:
                waiting.pop()
                self._make_one(current, *found)
            else:
                expanded.add(current)
                waiting += [each for each in _attribute_types(found[0]) if each not in self.types and each not in expanded]

    def _make_one(self, name: str, node: ast.ClassDef, context: SourceContext) -> None:
        self.types[name] = None
        try:
            self._make_type(name, node, context)
        except RecursionError:
            raise CheckpointError(f"class {name[:200]} is nested too deeply") from None

    def _make_type(self, name: str, node: ast.ClassDef, context: SourceContext) -> None:
        base = node.bases[0].id if len(node.bases) == 1 and isinstance(node.bases[0], ast.Name) else None
        if (node.bases and base not in _BASES) or node.decorator_list or node.keywords:
            raise ErrorReport(context.word(node, "class"), f"classes may only inherit from one of {', '.join(_BASES)}")
        if base == "Enum":
            self.types[name] = self._read_enumeration(name, node, context)
        elif base == "NamedTuple":
            self.types[name] = self._read_named_tuple(name, node, context)
        elif base in ("Interface", "ModuleInterface"):
            self._read_interface(name, node, context, base == "ModuleInterface")
        else:
            self._read_class(name, node, context, base == "Module")

    def type_of(self, node: ast.expr, context: SourceContext) -> Type:
        """Return the type that an expression denotes."""
        plain = plain_type(node, self.find_type)
        if plain is not None:
            return plain
        return annotations.type_from_tree(expressions.build_expression(context, node), self.find_type)

    def parse_type(self, text: str) -> Type:
        """Return the type that a text denotes, in the code's notation."""
        context = SourceContext(Source(text, "a type's text"))
        try:
            return self.type_of(ast.parse(text, mode="eval").body, context)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise CheckpointError(f"{text[:200]!r} is no type: {error}") from None

    def _read_class(self, name: str, node: ast.ClassDef, context: SourceContext, is_module: bool) -> None:
        made = self.types[name] = ClassType(name, is_module)
        ClassReader(self, made, context).read(node)

    def _read_enumeration(self, name: str, node: ast.ClassDef, context: SourceContext) -> EnumType:
        members = {}
        for statement in node.body:
            target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
            if not isinstance(target, ast.Name) or target.id.startswith("_") or target.id in members:
                raise ErrorReport(context.range(statement), "an enumeration has only assignments 'NAME = value'")
            members[target.id] = literal_value(statement.value, context, self)
        kinds = {constant_type(value) for value in members.values()}
        if len(kinds) != 1 or None in kinds:
            raise ErrorReport(context.word(node, "class"), "the values of an enumeration must be of one type")
        try:
            python_class = Enum(node.name, members, module="__torch__")
        except (TypeError, ValueError) as error:
            raise ErrorReport(context.word(node, "class"), f"no enumeration can be made of this: {error}") from None
        made = EnumType(name, kinds.pop(), tuple(members.items()), python_class)
        ENUM_TYPES[python_class] = made
        return made

    def _read_named_tuple(self, name: str, node: ast.ClassDef, context: SourceContext) -> TupleType:
        fields, kinds, defaults = [], [], []
        for statement in node.body:
            if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
                raise ErrorReport(context.range(statement), "a NamedTuple has only fields 'name : type'")
            field = statement.target.id
            if field.startswith("_") or keyword.iskeyword(field) or field in fields:
                raise ErrorReport(context.range(statement), f"{field!r} can't be a field's name")
            fields.append(field)
            kinds.append(self.type_of(statement.annotation, context))
            if statement.value is not None:
                defaults.append(literal_value(statement.value, context, self))
        return TupleType(tuple(kinds), name, tuple(fields), tuple(defaults), named_tuple_class(node.name, tuple(fields)))

    def _read_interface(self, name: str, node: ast.ClassDef, context: SourceContext, is_module: bool) -> None:
        made = self.types[name] = InterfaceType(name, {}, is_module)
        for statement in node.body:
            if not isinstance(statement, ast.FunctionDef):
                raise ErrorReport(context.range(statement), "an interface has only methods")
            function = ImportedFunction(f"{name}.{statement.name}", self, statement, context, made)
            made.methods[statement.name] = function.schema

    # Find functions

    def find_function(self, name: str) -> Function | None:
        """Return the function of a qualified name, or a static method of a class; None if there is none."""
        with self.lock:
            if name not in self.functions:
                found = self.definition(name)
                if found is not None and isinstance(found[0], ast.FunctionDef):
                    self.functions[name] = ImportedFunction(name, self, *found)
                else:
                    return None
            return self.functions[name]


def named_tuple_class(name: str, fields: tuple[str, ...]) -> type:
    """Return a class like those of `collections.namedtuple`, which would generate its methods from source text."""

    def new(cls: type, *values: object) -> tuple:
        if len(values) != len(fields):
            raise TypeError(f"{name} takes the fields {', '.join(fields)}, got {len(values)} values")
        return tuple.__new__(cls, values)

    def represent(self: tuple) -> str:
        return f"{name}({', '.join(f'{field}={value!r}' for field, value in zip(fields, self, strict=True))})"

    def as_dict(self: tuple) -> dict[str, object]:
        return dict(zip(fields, self, strict=True))

    members = {field: property(itemgetter(index)) for index, field in enumerate(fields)}
    own = {"__slots__": (), "_fields": fields, "__new__": new, "__repr__": represent, "_asdict": as_dict}
    return type(name, (tuple,), {**members, **own})


class ClassReader:
    """Reads the body of a class: attributes, constants, methods."""

    def __init__(self, importer: Importer, made: ClassType, context: SourceContext):
        self.importer = importer
        self.made = made
        self.context = context
        self.listed: dict[str, list[str]] = {}

    def read(self, node: ast.ClassDef) -> None:
        """Read the body."""
        for statement in node.body:
            if isinstance(statement, ast.FunctionDef):
                self._read_method(statement)
            elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                self._read_attribute(statement)
            elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                self._read_assignment(statement)
            elif not isinstance(statement, ast.Pass):
                raise ErrorReport(self.context.range(statement), "this can't stand in a class")
        missing = next((name for names in self.made.hooks.values() for name in names if name not in self.made.methods), None)
        if missing is not None:
            raise ErrorReport(self.context.word(node, "class"), f"the class has no method '{missing}', which is to be a hook")

    def _read_method(self, node: ast.FunctionDef) -> None:
        if not node.args.args:
            raise ErrorReport(self.context.word(node, "def"), "a method takes an object first")
        name = f"{self.made.name}.{node.name}"
        self.made.methods[node.name] = ImportedFunction(name, self.importer, node, self.context, self.made)

    def _read_attribute(self, node: ast.AnnAssign) -> None:
        name, kind = node.target.id, self.importer.type_of(node.annotation, self.context)
        if node.value is None:
            self._add(name, kind)
        else:
            self.made.constants[name] = literal_value(node.value, self.context, self.importer)

    def _add(self, name: str, kind: Type) -> None:
        is_parameter, is_buffer = (name in self.listed.get(each, ()) for each in ("__parameters__", "__buffers__"))
        self.made.add_attribute(name, kind, is_parameter, is_buffer)

    def _read_assignment(self, node: ast.Assign) -> None:
        """Read an assignment in a class: `__parameters__ = [...]`, or `__annotations__["0"] = type` for an attribute whose name
        is no identifier."""
        target = node.targets[0]
        if isinstance(target, ast.Name) and target.id in ("__annotations__", "__constants__"):
            return
        if isinstance(target, ast.Name) and target.id.startswith("__") and target.id.endswith("__"):
            names = literal_value(node.value, self.context, self.importer)
            if isinstance(names, list) and all(isinstance(name, str) for name in names):
                self.listed[target.id] = names
                if target.id in ("__forward_pre_hooks__", "__forward_hooks__"):
                    self.made.hooks[target.id.strip("_").removeprefix("forward_")] = names
                return
        if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant) and isinstance(target.slice.value, str):
            self._add(target.slice.value, self.importer.type_of(node.value, self.context))
            return
        raise ErrorReport(self.context.range(node), "this can't stand in a class")
