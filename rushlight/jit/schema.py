"""Schemas of operators and functions, with the jit's types: `aten::append.t(t[](a!) self, t(c -> *) el) -> t[](a!)`.

In: text, or one of the dispatcher's schemas. Out: a FunctionSchema, which prints in the same notation.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from rushlight.core.lazy_module import LazyModule
from rushlight.jit.types.kinds import (
    BOOL,
    DEVICE,
    FLOAT,
    INT,
    NONE,
    ListType,
    OptionalType,
    TupleType,
    Type,
)
from rushlight.jit.types.parser import Tokens, no_class, parse_type
from rushlight.jit.types.relations import optional
from rushlight.ops import schema as aten

printer = LazyModule("rushlight.jit.ir.printer")
_ALIAS = re.compile(r"(?<!Future)(?<!Await)(?<!RRef)\(([^()]*)\)")


class _NoDefault:
    def __repr__(self) -> str:
        return "NO_DEFAULT"


NO_DEFAULT = _NoDefault()


@dataclass(frozen=True, slots=True)
class Argument:
    """A parameter or result: name, type, default (or NO_DEFAULT), and its aliasing: "a" reads, "a!" writes, "a -> *" is put
    into a container. `length`: that of a list for which a single number may be passed. `is_inferred`: it has no
    annotation, so its type is Tensor."""

    name: str
    type: Type
    default: object = NO_DEFAULT
    kwarg_only: bool = False
    alias: str = ""
    length: int | None = None
    is_inferred: bool = False

    @property
    def type_text(self) -> str:
        """Return the type for errors, which says so if it is inferred."""
        return f"{self.type} (inferred)" if self.is_inferred else str(self.type)

    @property
    def inference_hint(self) -> str:
        """Return the line for errors that says why the type is Tensor, if it is inferred."""
        reason = "because it was not annotated with an explicit type."
        return f"\nInferred '{self.name}' to be of type 'Tensor' {reason}" if self.is_inferred else ""

    @property
    def has_default(self) -> bool:
        """Return whether it may be omitted."""
        return self.default is not NO_DEFAULT

    @property
    def is_write(self) -> bool:
        """Return whether it is written to."""
        return "!" in self.alias

    def __str__(self) -> str:
        kind = self.type.ir_text
        if self.length is not None:
            kind = kind.replace("[]", f"[{self.length}]", 1)
        if self.alias:
            kind = f"{kind[:-2]}({self.alias})[]" if self.alias and kind == "Tensor[]" else f"{kind}({self.alias})"
        text = f"{kind} {self.name}".rstrip()
        return text if not self.has_default else f"{text}={_default_text(self.default, self.type)}"


def _default_text(value: object, kind: Type) -> str:
    if isinstance(value, bool) or value is None:
        return str(value)
    return printer.constant_text(value)


@dataclass(frozen=True, slots=True)
class FunctionSchema:
    """What a function or operator takes and returns."""

    name: str
    overload: str
    arguments: tuple[Argument, ...]
    returns: tuple[Argument, ...]
    is_vararg: bool = False
    is_varret: bool = False
    positions: dict[str, int] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        for index, argument in enumerate(self.arguments):
            self.positions[argument.name] = index

    @property
    def return_type(self) -> Type:
        """Return the result's type: a tuple for several results, None for none."""
        if len(self.returns) == 1:
            return self.returns[0].type
        return TupleType(tuple(result.type for result in self.returns)) if self.returns else NONE

    @property
    def is_mutable(self) -> bool:
        """Return whether an argument is written to."""
        return any(argument.is_write for argument in self.arguments)

    def with_returns(self, kind: Type) -> FunctionSchema:
        """Return the schema with another return type."""
        return replace(self, returns=(Argument("", kind),), positions={})

    def without_self(self) -> FunctionSchema:
        """Return the schema from the view of a method's callers."""
        return replace(self, arguments=self.arguments[1:], positions={})

    def __str__(self) -> str:
        parts, starred = [], False
        for argument in self.arguments:
            if argument.kwarg_only and not starred:
                parts.append("*")
                starred = True
            parts.append(str(argument))
        if self.is_vararg:
            parts.append("...")
        name = self.name.rpartition(".")[2] if self.name.startswith("__torch__.") else self.name
        full = f"{name}.{self.overload}" if self.overload else name
        results = [str(result) for result in self.returns]
        is_plain = len(results) == 1 and not results[0].startswith("(")  # the one tuple of (Tensor, Tensor) is a single result
        returned = "..." if self.is_varret else results[0] if is_plain else f"({', '.join(results)})"
        return f"{full}({', '.join(parts)}) -> {returned}"


_MEANING = {
    "None": None,
    "True": True,
    "False": False,
    "Mean": 1,
    "contiguous_format": 0,
    "long": 4,
    "strided": 0,
    "cpu": "cpu",
}


def parse_schema(text: str, resolve: Callable[[str], Type | None] = no_class) -> FunctionSchema:
    """Parse a schema; RuntimeError names the offending part."""
    tokens = Tokens(text)
    full = tokens.expect_kind("name")
    name, _, overload = full.partition(".")
    tokens.expect("(")
    arguments, is_vararg, kwarg_only = [], False, False
    while not tokens.take(")"):
        if tokens.take("*"):
            kwarg_only = True
        elif tokens.take("."):
            tokens.expect(".")
            tokens.expect(".")
            is_vararg = True
        else:
            arguments.append(_parse_argument(tokens, resolve, kwarg_only))
        tokens.take(",")
    tokens.expect("->")
    returns, is_varret = _parse_returns(tokens, resolve)
    return FunctionSchema(name, overload, tuple(arguments), returns, is_vararg, is_varret)


def _parse_argument(tokens: Tokens, resolve: Callable, kwarg_only: bool) -> Argument:
    start = tokens.position
    kind = parse_type(tokens, resolve)
    written = tokens.text[start : tokens.position]
    name = tokens.expect_kind("name")
    default = _parse_default(tokens, kind) if tokens.take("=") else NO_DEFAULT
    alias, length = _parse_alias(written), re.search(r"\[(\d+)\]", written)
    if length is not None and not isinstance(default, list | _NoDefault) and default is not None:
        default = [default] * int(length[1])
    return Argument(name, kind, default, kwarg_only, alias, int(length[1]) if length else None)


def _parse_alias(written: str) -> str:
    for found in _ALIAS.finditer(written):
        if re.fullmatch(r"(?:[a-z]|\*)(?:\|[a-z])*!?\s*(?:->\s*(?:\*|[a-z](?:\|[a-z])*))?!?", found[1].strip()):
            return found[1].strip()
    return ""


def _parse_default(tokens: Tokens, kind: Type) -> object:
    if tokens.take("["):
        items = []
        while not tokens.take("]"):
            items.append(_parse_default(tokens, kind))
            tokens.take(",")
        return items
    if tokens.kind == "string":
        return tokens.advance()[1:-1]
    if tokens.kind == "name":
        word = tokens.advance()
        if word not in _MEANING:
            raise tokens.error(f"unknown default {word!r}")
        return _MEANING[word]
    text = tokens.expect_kind("number")
    base = kind.element if isinstance(kind, ListType | OptionalType) else kind
    if text.endswith("j"):
        return complex(text)
    return float(text) if base == FLOAT or not re.fullmatch(r"-?\d+", text) else int(text)


def _parse_returns(tokens: Tokens, resolve: Callable) -> tuple[tuple[Argument, ...], bool]:
    if tokens.take("."):
        return (), True
    if not _is_return_list(tokens):
        return (_parse_return(tokens, resolve),), False
    tokens.expect("(")
    returns = []
    while not tokens.take(")"):
        returns.append(_parse_return(tokens, resolve))
        tokens.take(",")
    return tuple(returns), False


def _is_return_list(tokens: Tokens) -> bool:
    """Return whether the bracket here begins a list of results, instead of a tuple type that is optional or in a list."""
    if tokens.token != "(":
        return False
    depth = 0
    for index in range(tokens.position, len(tokens.text)):
        depth += (tokens.text[index] == "(") - (tokens.text[index] == ")")
        if depth == 0 and tokens.text[index] == ")":
            return tokens.text[index + 1 : index + 2] not in ("[", "?")
    return False


def _parse_return(tokens: Tokens, resolve: Callable) -> Argument:
    start = tokens.position
    kind = parse_type(tokens, resolve)
    written = tokens.text[start : tokens.position]
    name = tokens.advance() if tokens.kind == "name" else ""
    return Argument(name, kind, alias=_parse_alias(written))


# Convert schemas of the dispatcher

_BASES = {"ScalarType": INT, "Layout": INT, "MemoryFormat": INT, "Device": DEVICE, "SymInt": INT}


def from_aten(op_schema: aten.FunctionSchema, namespace: str) -> FunctionSchema:
    """Return a dispatcher's schema with the jit's types: dtypes, layouts and memory formats are ints there."""
    return FunctionSchema(
        f"{namespace}::{op_schema.name}",
        op_schema.overload,
        tuple(map(_argument_from_aten, op_schema.arguments)),
        tuple(map(_argument_from_aten, op_schema.returns)),
    )


def _argument_from_aten(argument: aten.Argument) -> Argument:
    kind = type_from_aten(argument.type)
    default: object = NO_DEFAULT
    if argument.has_default:
        default = list(argument.default) if isinstance(argument.default, tuple) else argument.default
    length = argument.type.length if kind != ListType(BOOL) or argument.type.length else None
    return Argument(argument.name, kind, default, argument.kwarg_only, argument.alias, length)


def type_from_aten(kind: aten.Type) -> Type:
    """Return the jit's type for a dispatcher's."""
    made = _BASES.get(kind.base)
    if made is None:
        made = parse_type(Tokens(kind.base))
    if kind.optional_elements:
        made = optional(made)
    if kind.is_list:
        made = ListType(made)
    return optional(made) if kind.optional else made
