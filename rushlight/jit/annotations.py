"""Types from annotations: from trees of type expressions, and from Python's own annotation objects.

In: a tree or an object, and a function that finds classes. Out: a type. ErrorReport or RuntimeError names an invalid
annotation.
"""

from __future__ import annotations

import ast
import collections
import enum
import inspect
import types
import typing
from collections.abc import Callable
from typing import Dict, List, Optional, Tuple, Union  # noqa: F401, UP035  (programs import them from here)

from rushlight.core.device import device
from rushlight.core.dtype import dtype
from rushlight.core.generator import Generator
from rushlight.core.layout import layout, memory_format
from rushlight.core.tensor import Tensor
from rushlight.jit.errors import ErrorReport
from rushlight.jit.frontend.context import SourceContext
from rushlight.jit.frontend.expressions import build_expression
from rushlight.jit.frontend.pytorch_names import get_type_line  # noqa: F401  (where PyTorch has it)
from rushlight.jit.library.sizes import (  # noqa: F401  (where PyTorch has them)
    BroadcastingList1,
    BroadcastingList2,
    BroadcastingList3,
)
from rushlight.jit.source import Source, SourceRange
from rushlight.jit.tree_views import (
    BinOp,
    Dots,
    ListLiteral,
    NoneLiteral,
    Select,
    StringLiteral,
    Subscript,
    Tree,
    TupleLiteral,
    Var,
)
from rushlight.jit.types.kinds import (
    ANY,
    BOOL,
    COMPLEX,
    DEVICE,
    FLOAT,
    GENERATOR,
    INT,
    NONE,
    STRING,
    TENSOR,
    AwaitType,
    DictType,
    FutureType,
    ListType,
    RRefType,
    TupleType,
    Type,
)
from rushlight.jit.types.plain import NAMED, is_key_type
from rushlight.jit.types.relations import optional, union

_OBJECTS = {
    int: INT, float: FLOAT, bool: BOOL, complex: COMPLEX, str: STRING, type(None): NONE, None: NONE, typing.Any: ANY,
    Tensor: TENSOR,
    device: DEVICE, dtype: INT, layout: INT, memory_format: INT, Generator: GENERATOR,
}  # fmt: skip
_GENERICS = (
    "List",
    "list",
    "Dict",
    "dict",
    "Tuple",
    "tuple",
    "Optional",
    "Union",
    "Future",
    "Await",
    "RRef",
    "Final",
    "NamedTuple",
    "Sequence",
)
FindClass = Callable[[str], Type | None]
"""Finds the type that a dotted name stands for; None where it is none."""


def type_from_tree(tree: Tree, find: FindClass) -> Type:
    """Return the type that a tree denotes."""
    if isinstance(tree, NoneLiteral):
        return NONE
    if isinstance(tree, StringLiteral):
        return type_from_tree(_parse(tree.text, tree.range), find)
    if isinstance(tree, BinOp) and tree.operator == "|":
        return union((type_from_tree(tree.left, find), type_from_tree(tree.right, find)))
    if isinstance(tree, Subscript):
        return _parse_generic(tree, find)
    name = dotted_name(tree)
    if name is None:
        raise ErrorReport(tree.range, "Expression of this kind cannot be used as a type")
    return _type_by_name(name, tree.range, find)


def _type_by_name(name: str, where: SourceRange, find: FindClass) -> Type:
    if "." not in name and name in NAMED:
        return NAMED[name]
    found = find(name)
    if found is not None:
        return found
    short = name.rpartition(".")[2]
    if short in NAMED and name.partition(".")[0] in ("torch", "rushlight", "typing", "__torch__"):
        return NAMED[short]
    if short in _NEEDS_CONTENT:
        raise ErrorReport(where, missing_content_message(short))
    raise ErrorReport(where, f"Unknown type name '{name}'")


_NEEDS_CONTENT = ("Future", "List", "Dict", "Tuple", "Optional", "list", "dict", "tuple")
_BARE_GENERICS = {
    typing.List: "List", typing.Dict: "Dict", typing.Tuple: "Tuple", typing.Optional: "Optional",  # noqa: UP006, UP045
}  # fmt: skip


def missing_content_message(name: str) -> str:
    """Return the error message for a container without the types that it contains."""
    if name in ("Dict", "dict"):
        return f"Attempted to use {name} without contained types. Please add contained type, e.g. {name}[int, int]"
    return f"Attempted to use {name} without a contained type. Please add a contained type, e.g. {name}[int]"


def dotted_name(tree: Tree) -> str | None:
    """Return the text `a.b.c` of a tree of names; None for any other tree."""
    if isinstance(tree, Var):
        return tree.name
    if isinstance(tree, Select):
        base = dotted_name(tree.value)
        return None if base is None else f"{base}.{tree.selector.name}"
    return None


def _parse(text: str, where: SourceRange) -> Tree:
    source = Source(text)
    try:
        return build_expression(SourceContext(source), ast.parse(text, mode="eval").body)
    except SyntaxError:
        raise ErrorReport(where, f"the annotation {text!r} is not a type") from None


def broadcast_length(tree: Tree | None) -> int | None:
    """Return the length of the list that a single number stands for in an annotation: 2 for `BroadcastingList2[int]`."""
    if isinstance(tree, Subscript):
        name = (dotted_name(tree.value) or "").rpartition(".")[2]
        if name[:-1] == "BroadcastingList" and name[-1].isdigit():
            return int(name[-1])
        if name == "Optional" and len(tree.subscripts) == 1:
            return broadcast_length(tree.subscripts[0])
    return None


def _parse_generic(tree: Subscript, find: FindClass) -> Type:
    name = (dotted_name(tree.value) or "").rpartition(".")[2]
    if name[:-1] == "BroadcastingList":
        name = "List"
    if name not in _GENERICS:
        raise ErrorReport(tree.range, f"Unknown type constructor {name}")
    arguments = tree.subscripts
    if name in ("Tuple", "tuple"):
        return _parse_tuple(arguments, find)
    parts = [type_from_tree(each, find) for each in arguments if not isinstance(each, Dots)]
    return _construct_type(name, parts, tree.range)


def _parse_tuple(arguments: list[Tree], find: FindClass) -> Type:
    if len(arguments) == 1 and isinstance(arguments[0], TupleLiteral) and not arguments[0].items:
        return TupleType(())
    flat = arguments[0].items if len(arguments) == 1 and isinstance(arguments[0], TupleLiteral | ListLiteral) else arguments
    return TupleType(tuple(type_from_tree(each, find) for each in flat))


def _construct_type(name: str, parts: list[Type], where: SourceRange | None) -> Type:
    wanted = 2 if name in ("Dict", "dict") else None if name == "Union" else 1
    if wanted is not None and len(parts) != wanted:
        problem = f"{name} expects {wanted} type argument{'s' if wanted > 1 else ''}, got {len(parts)}"
        raise ErrorReport(where, problem) if where is not None else RuntimeError(problem)
    if name in ("List", "list", "Sequence"):
        return ListType(parts[0])
    if name in ("Dict", "dict"):
        if not is_key_type(parts[0]):
            known = "only int, float, complex, Tensor, device and string keys are supported"
            problem = f"Cannot create dict for key type '{parts[0].ir_text}', {known}"
            raise ErrorReport(where, problem) if where is not None else RuntimeError(problem)
        return DictType(*parts)
    if name == "Optional":
        return optional(parts[0])
    if name == "Union":
        return union(parts)
    if name == "Final":
        return parts[0]
    return {"Future": FutureType, "Await": AwaitType, "RRef": RRefType}[name](parts[0])


def type_from_python(annotation: object, find: Callable[[type], Type | None]) -> Type | None:
    """Return the type of a Python annotation object; `find` looks up classes. None for an annotation that is no type.

    RuntimeError for `List`, `Dict`, `Tuple` and `Optional` without the types that they contain.
    """
    try:
        if annotation in _OBJECTS:
            return _OBJECTS[annotation]
    except TypeError:
        return None
    if annotation is inspect.Signature.empty:
        return TENSOR
    if annotation in _BARE_GENERICS:
        raise RuntimeError(missing_content_message(_BARE_GENERICS[annotation]))
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is not None:
        return _generic_from_python(origin, arguments, find)
    if isinstance(annotation, type):
        return NAMED["Size"] if annotation.__name__ == "Size" else find(annotation)
    return None


def _generic_from_python(origin: object, arguments: tuple, find: Callable) -> Type | None:
    if origin is tuple:
        if arguments == ((),):
            arguments = ()
        parts = [type_from_python(each, find) for each in arguments]
        return None if None in parts else TupleType(tuple(parts))
    parts = [type_from_python(each, find) for each in arguments]
    if None in parts:
        return None
    if origin in (typing.Union, types.UnionType):
        return union(parts)
    if origin is typing.Final:
        return parts[0]
    name = {list: "List", dict: "Dict", collections.OrderedDict: "Dict"}.get(origin) or getattr(origin, "__name__", "")
    return _construct_type(name, parts, None) if name in _GENERICS else None


def is_named_tuple(kind: object) -> bool:
    """Return whether a class is a NamedTuple or namedtuple."""
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")


def named_tuple_type(kind: type, name: str, find: Callable[[type], Type | None]) -> TupleType:
    """Return the type of a NamedTuple class; fields without annotation are tensors."""
    is_annotated = any(vars(each).get("__annotations__") for each in kind.__mro__)
    annotations = typing.get_type_hints(kind) if is_annotated else {}
    types_ = []
    for field in kind._fields:
        found = type_from_python(annotations.get(field, inspect.Signature.empty), find)
        if found is None:
            raise RuntimeError(
                f"field '{field}' of {kind.__name__} has the annotation {annotations[field]!r}, which is no type"
            )
        types_.append(found)
    defaults = getattr(kind, "_field_defaults", {})
    if any(isinstance(value, Tensor) for value in defaults.values()):
        raise RuntimeError(f"Tensors are not supported as default NamedTuple fields: {kind.__name__} has one")
    ordered = tuple(defaults[field] for field in kind._fields if field in defaults)
    return TupleType(tuple(types_), name, tuple(kind._fields), ordered, kind)


def is_enum(kind: object) -> bool:
    """Return whether a class is an enumeration."""
    return isinstance(kind, type) and issubclass(kind, enum.Enum)


def infer_type(value: object, find: Callable[[type], Type | None]) -> Type | None:
    """Return the type of a Python value; None where it has none. Empty containers are inferred to hold tensors."""
    if isinstance(value, Tensor):
        return TENSOR
    simple = _OBJECTS.get(type(value))
    if simple is not None:
        return simple
    if isinstance(value, list):
        return _infer_all(value, ListType, find)
    if is_named_tuple(type(value)):
        return find(type(value))
    if isinstance(value, tuple):
        parts = [infer_type(item, find) for item in value]
        return None if None in parts else TupleType(tuple(parts))
    if isinstance(value, dict):
        key = _join_types([infer_type(item, find) for item in value]) if value else STRING
        kind = _join_types([infer_type(item, find) for item in value.values()]) if value else TENSOR
        return None if key is None or kind is None else DictType(key, kind)
    return find(type(value))


def _infer_all(values: list, container: type, find: Callable) -> Type | None:
    element = _join_types([infer_type(item, find) for item in values]) if values else TENSOR
    return None if element is None else container(element)


def _join_types(kinds: list[Type | None]) -> Type | None:
    if not kinds or None in kinds:
        return None
    first = set(kinds)
    return kinds[0] if len(first) == 1 else optional((first - {NONE}).pop()) if len(first) == 2 and NONE in first else None
