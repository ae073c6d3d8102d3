"""Operator schemas in ATen's notation: text such as `add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`.

In: a schema string. Out: a FunctionSchema whose `str` is the same text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from rushlight.core import dtype as dtypes
from rushlight.core.dtype import dtype, int64
from rushlight.core.layout import contiguous_format, memory_format

_TYPE = re.compile(
    r"(?P<base>__torch__\.[\w.]+|[A-Za-z]+)(?P<alias>\([^)]*\)|!)?(?P<inner_optional>\?)?"
    r"(?P<list>\[\d*\])?(?P<alias2>\([^)]*\))?(?P<optional>\?)?$"
)
BASE_TYPES = frozenset(
    "Tensor int SymInt float bool Scalar str Device ScalarType Layout MemoryFormat Generator Storage Any QScheme".split()
)
_STRING = re.compile(r"\"[^\"]*\"|'[^']*'")
CLASS_PREFIX = "__torch__."
"""The prefix of class names; operators pass objects of these classes through unchanged."""


class Type(NamedTuple):
    """A schema type: a base name, possibly a list of it (with a fixed length or none), possibly optional."""

    base: str
    is_list: bool = False
    length: int | None = None
    optional: bool = False
    optional_elements: bool = False

    def __str__(self) -> str:
        text = self.base + ("?" if self.optional_elements else "")
        if self.is_list:
            text += f"[{'' if self.length is None else self.length}]"
        return text + ("?" if self.optional else "")

    @property
    def is_tensor(self) -> bool:
        """Whether this is a single tensor."""
        return self.base == "Tensor" and not self.is_list

    @property
    def is_tensor_list(self) -> bool:
        """Whether this is a list of tensors."""
        return self.base == "Tensor" and self.is_list


class Argument(NamedTuple):
    """One parameter or return: its name, type, default (or NO_DEFAULT), and how it aliases memory."""

    name: str
    type: Type
    default: object
    kwarg_only: bool = False
    alias: str = ""

    @property
    def is_write(self) -> bool:
        """Whether the operator writes to this argument."""
        return "!" in self.alias

    @property
    def has_default(self) -> bool:
        """Whether the argument may be omitted."""
        return self.default is not NO_DEFAULT

    def __str__(self) -> str:
        kind = str(self.type)
        if self.alias:
            kind = kind.replace("Tensor", "Tensor!" if self.alias == "!" else f"Tensor({self.alias})", 1)
        text = f"{kind} {self.name}".rstrip()
        return text if self.default is NO_DEFAULT else f"{text}={_default_text(self.default, self.type)}"


class _NoDefault:
    def __repr__(self) -> str:
        return "NO_DEFAULT"


NO_DEFAULT = _NoDefault()


def _default_text(value: object, kind: Type) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple):
        if kind.length is not None and len(value) == kind.length and len(set(value)) == 1:
            # A number as the default of a list stands for that number in each place.
            return _default_text(value[0], kind)
        return "[" + ", ".join(_default_text(item, kind) for item in value) + "]"
    if isinstance(value, memory_format):
        return value.name
    if isinstance(value, dtype):
        return next((word for word, meaning in _WORDS.items() if meaning is value), _name_of(value))
    return str(value).removesuffix("0") if isinstance(value, float) and str(value).endswith(".0") else str(value)


def _name_of(value: dtype) -> str:
    return str(value).removeprefix("torch.")


@dataclass(frozen=True, slots=True)
class FunctionSchema:
    """A parsed schema. `arguments` are in order, keyword-only ones last."""

    name: str
    overload: str
    arguments: tuple[Argument, ...]
    returns: tuple[Argument, ...]
    positions: dict[str, int] = field(compare=False, repr=False)

    @property
    def overload_name(self) -> str:
        """The overload's name, "" for the default one."""
        return self.overload

    @property
    def positional_count(self) -> int:
        """The number of arguments that may be passed by position."""
        return sum(not argument.kwarg_only for argument in self.arguments)

    @property
    def is_mutable(self) -> bool:
        """Whether some argument is written to."""
        return any(argument.is_write for argument in self.arguments)

    @property
    def is_view(self) -> bool:
        """Whether a result aliases an argument that is not written to."""
        return any(result.alias and not result.is_write for result in self.returns)

    def __str__(self) -> str:
        parts, starred = [], False
        for argument in self.arguments:
            if argument.kwarg_only and not starred:
                parts.append("*")
                starred = True
            parts.append(str(argument))
        full = f"{self.name}.{self.overload}" if self.overload else self.name
        results = [str(result) for result in self.returns]
        returned = results[0] if len(results) == 1 else f"({', '.join(results)})"
        return f"{full}({', '.join(parts)}) -> {returned}"


def split_declaration(text: str) -> tuple[str, str, str]:
    """Return the name, the overload, and the text from "(" on, cut out without parsing the rest."""
    head, opened, rest = text.partition("(")
    name, _, overload = head.strip().partition(".")
    return name, overload, opened + rest.rpartition("->")[0].rstrip()


def in_place_declaration(text: str, overload: str | None = None) -> str:
    """Return the schema text of the in-place variant `name_`; ValueError where there can be none.

    `overload` is the variant's overload, where ATen calls it differently.
    """
    name, own, arguments = split_declaration(text)
    if not arguments.startswith("(Tensor ") or text.rpartition("->")[2].strip() != "Tensor":
        raise ValueError(f"no in-place variant of {text!r}: it takes and returns more than a tensor first")
    chosen = own if overload is None else overload
    return f"{name}_{'.' if chosen else ''}{chosen}(Tensor(a!) {arguments.removeprefix('(Tensor ')} -> Tensor(a!)"


def parse_schema(text: str) -> FunctionSchema:
    """Parse one schema; ValueError names the part that does not fit."""
    head, opened, rest = text.partition("(")
    close = _matching(rest)
    arrow = rest[close + 1 :].strip()
    if not opened or close < 0 or not arrow.startswith("->"):
        raise ValueError(f"malformed schema {text!r}: expected 'name.overload(arguments) -> returns'")
    name, _, overload = head.strip().partition(".")
    arguments = _parse_arguments(rest[:close], text)
    returned = arrow[2:].strip()
    if returned.startswith("("):
        returned = returned[1:-1]
    returns = tuple(_parse_argument(part, False, text, named=False) for part in _split(returned))
    positions = {argument.name: index for index, argument in enumerate(arguments)}
    return FunctionSchema(name, overload, arguments, returns, positions)


def _without_strings(text: str) -> str:
    """Return the text with string defaults blanked out, whose contents would confuse the parser."""
    return _STRING.sub(lambda found: " " * len(found[0]), text) if '"' in text or "'" in text else text


def _matching(text: str) -> int:
    depth = 0
    for index, char in enumerate(_without_strings(text)):
        if char == "(":
            depth += 1
        elif char == ")":
            if depth == 0:
                return index
            depth -= 1
    return -1


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for index, char in enumerate(_without_strings(text)):
        if char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def _parse_arguments(text: str, schema: str) -> tuple[Argument, ...]:
    arguments, kwarg_only = [], False
    for part in _split(text):
        if part == "*":
            kwarg_only = True
        else:
            arguments.append(_parse_argument(part, kwarg_only, schema))
    return tuple(arguments)


# A cache of types and their alias annotations by text. Threads that parse the same text at once store equal values.
_types: dict[str, tuple[Type, str]] = {}


def _parse_argument(part: str, kwarg_only: bool, schema: str, named: bool = True) -> Argument:
    declared, has_default, default = part.partition("=")
    kind, _, name = declared.strip().rpartition(" ") if named or " " in declared.strip() else (declared.strip(), "", "")
    kind = kind.strip()
    read = _types.get(kind)
    if read is None:
        matched = _TYPE.match(kind)
        if matched is None or not (matched["base"] in BASE_TYPES or matched["base"].startswith(CLASS_PREFIX)):
            raise ValueError(f"unknown type {kind!r} in schema {schema!r}; types are {', '.join(sorted(BASE_TYPES))}")
        read = _types[kind] = _make_type(matched), (matched["alias"] or matched["alias2"] or "").strip("()")
    parsed, alias = read
    value = _parse_default(default.strip(), parsed) if has_default else NO_DEFAULT
    return Argument(name, parsed, value, kwarg_only, alias)


def _make_type(matched: re.Match) -> Type:
    listed = matched["list"]
    inner = bool(matched["inner_optional"])
    base = "int" if matched["base"] == "SymInt" else matched["base"]
    return Type(
        base,
        is_list=listed is not None,
        length=int(listed[1:-1]) if listed and listed != "[]" else None,
        optional=bool(matched["optional"]) or (inner and listed is None),
        optional_elements=inner and listed is not None,
    )


_WORDS = {"None": None, "True": True, "False": False, "Mean": 1, "contiguous_format": contiguous_format, "long": int64}
_DTYPES = {_name_of(value): value for value in vars(dtypes).values() if isinstance(value, dtype)}


def _parse_default(text: str, kind: Type) -> object:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] in "\"'":
        return text[1:-1]
    if kind.base == "ScalarType" and text in _DTYPES:
        return _DTYPES[text]
    if text[0] == "[":
        element = Type(kind.base)
        return tuple(_parse_default(part, element) for part in _split(text[1:-1]))
    number = float(text) if kind.base == "float" or any(char in text for char in ".en") else int(text)
    return (number,) * kind.length if kind.is_list and kind.length else number
