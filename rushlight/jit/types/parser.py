"""Types of schemas and graphs from their text: `Tensor`, `int[]`, `Dict(str, t)`, `(int, Tensor?)`, `Float(2, *, device=cpu)`.

In: a `Tokens` stream. Out: a type. RuntimeError names what does not fit.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from rushlight.core.dtype import ALL, QUANTIZED_TYPES, STORED_TYPES
from rushlight.jit.types.extensions import extension_type
from rushlight.jit.types.kinds import (
    ANY,
    ANY_CLASS,
    ANY_ENUM,
    ANY_LIST,
    ANY_TUPLE,
    BOOL,
    COMPLEX,
    DEVICE,
    FLOAT,
    GENERATOR,
    INT,
    NONE,
    NUMBER,
    STORAGE,
    STREAM,
    STRING,
    TENSOR,
    AwaitType,
    DictType,
    FutureType,
    ListType,
    RRefType,
    TensorType,
    TupleType,
    Type,
    VarType,
)
from rushlight.jit.types.relations import optional, union

_TOKEN = re.compile(
    r"""\s*(?:\#[^\n]*)?(?:(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<number>-?(?:\d+\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|"""
    r"""\.\d+|\d+|inf\b|nan\b)j?)|(?P<value>%[\w.]+)|(?P<name>[A-Za-z_][\w.]*(?:::[A-Za-z_][\w.]*)*)|(?P<mark>->|[^\s\w]))""",
    re.VERBOSE,
)
SIMPLE = {
    "Tensor": TENSOR, "int": INT, "SymInt": INT, "float": FLOAT, "bool": BOOL, "complex": COMPLEX, "str": STRING,
    "NoneType": NONE,
    "None": NONE, "Any": ANY, "Device": DEVICE, "Generator": GENERATOR, "Stream": STREAM, "Storage": STORAGE, "Scalar": NUMBER,
    "number": NUMBER, "ScalarType": INT, "Layout": INT, "MemoryFormat": INT, "list": ANY_LIST, "tuple": ANY_TUPLE,
    "AnyClassType": ANY_CLASS, "AnyEnumType": ANY_ENUM, "Dimname": STRING, "QScheme": INT,
    "AutogradZeroTensor": TensorType(undefined=True),
}  # fmt: skip
_WRAPPERS = {"Future": FutureType, "Await": AwaitType, "RRef": RRefType}
_DTYPES = {each.scalar_name: each for each in (*ALL, *QUANTIZED_TYPES, *STORED_TYPES)}


class Tokens:
    """The tokens of a text, read one by one."""

    def __init__(self, text: str):
        self.text = text
        self.position = 0
        self.kind, self.token, self._next = "", "", 0
        self.advance()

    def advance(self) -> str:
        """Return the current token, and advance (empty at the end)."""
        taken = self.token
        self.position = self._next
        matched = _TOKEN.match(self.text, self.position)
        if matched is None:
            rest = self.text[self.position :].strip()
            if rest:
                raise self.error("an unknown character")
            self.kind = self.token = ""
        else:
            self.kind, self.token, self._next = matched.lastgroup, matched[matched.lastgroup], matched.end()
        return taken

    def take(self, token: str) -> bool:
        """If the current token is this one, consume it; returns whether it was."""
        if self.token == token and self.kind != "string":
            self.advance()
            return True
        return False

    def expect(self, token: str) -> None:
        """Consume a token that must be this one."""
        if not self.take(token):
            raise self.error(f"expected {token!r}")

    def expect_kind(self, kind: str) -> str:
        """Consume a token of a kind: "name", "number", "string" or "value"."""
        if self.kind != kind:
            raise self.error(f"expected a {kind}")
        return self.advance()

    def error(self, problem: str) -> RuntimeError:
        """Return the error for a problem at the current token."""
        line = self.text.count("\n", 0, self.position) + 1
        shown = f", found {self.token!r}" if self.token else ", found the end"
        return RuntimeError(f"{problem}{shown} in line {line} of:\n{self.text}")


def no_class(name: str) -> Type | None:
    """Return a resolver that knows no classes."""
    return None


def parse_type(tokens: Tokens, resolve: Callable[[str], Type | None] = no_class) -> Type:
    """Parse one type; `resolve` finds a class by its qualified name."""
    kind = _parse_base(tokens, resolve)
    while True:
        if tokens.take("?"):
            kind = optional(kind)
        elif tokens.token == "[":
            tokens.advance()
            if tokens.kind == "number":
                tokens.advance()
            tokens.expect("]")
            kind = ListType(kind)
        elif tokens.token == "(" and _is_alias(tokens):
            skip_alias(tokens)
        else:
            return kind


def _is_alias(tokens: Tokens) -> bool:
    return (
        re.match(r"\((?:\w+|\*)(?:\|\w+)*!?\s*(?:->\s*(?:\*|\w+(?:\|\w+)*))?!?\)", tokens.text[tokens._next - 1 :]) is not None
    )


def _is_shape(tokens: Tokens) -> bool:
    """Return whether the bracket here contains sizes: `(2, *)`, but not `(*)` alone, which is an alias annotation."""
    return re.match(r"\((?:\d+|\*\s*,|\w+=|\))", tokens.text[tokens._next - 1 :]) is not None


def skip_alias(tokens: Tokens) -> None:
    """Skip an alias annotation `(a!)`, which is no part of the type."""
    while not tokens.take(")"):
        tokens.advance()


def parse_list(tokens: Tokens, resolve: Callable, end: str = ")") -> tuple[Type, ...]:
    """Parse comma-separated types, and the closing bracket."""
    found = []
    while not tokens.take(end):
        found.append(parse_type(tokens, resolve))
        if not tokens.take(","):
            tokens.expect(end)
            break
    return tuple(found)


def _parse_base(tokens: Tokens, resolve: Callable) -> Type:
    if tokens.take("("):
        return TupleType(parse_list(tokens, resolve))
    name = tokens.expect_kind("name")
    if name == "Dict":
        tokens.expect("(")
        key, value = parse_list(tokens, resolve)
        return DictType(key, value)
    if name in _WRAPPERS:
        end = "]" if tokens.take("[") else ")"
        if end == ")":
            tokens.expect("(")
        return _WRAPPERS[name](*parse_list(tokens, resolve, end))
    if name == "Union":
        tokens.expect("(")
        return union(parse_list(tokens, resolve))
    if name == "NamedTuple":
        return _parse_named_tuple(tokens, resolve)
    if name in ("Enum", "InterfaceType") and tokens.take("<"):
        inner = tokens.expect_kind("name")
        tokens.expect(">")
        return resolve(f"{name}<{inner}>") or _resolve_type(tokens, resolve, inner)
    if tokens.token == "(" and (name in _DTYPES or (name == "Tensor" and _is_shape(tokens))):
        return _parse_shaped(tokens, name)
    if name in SIMPLE:
        return SIMPLE[name]
    if name.endswith("Tensor") and name.removesuffix("Tensor") in _DTYPES:
        return TensorType(_DTYPES[name.removesuffix("Tensor")])
    if name[0].islower() and "." not in name and "::" not in name:
        return VarType(name)
    return _resolve_type(tokens, resolve, name)


def _resolve_type(tokens: Tokens, resolve: Callable, name: str) -> Type:
    found = resolve(name) or extension_type(name)
    if found is None:
        raise tokens.error(f"unknown type {name!r}")
    return found


def _parse_named_tuple(tokens: Tokens, resolve: Callable) -> Type:
    tokens.expect("(")
    names, kinds, defaults = [], [], []
    while not tokens.take(")"):
        names.append(tokens.expect_kind("name"))
        tokens.expect(":")
        kinds.append(parse_type(tokens, resolve))
        if tokens.token == "=":
            defaults.append(_read_default(tokens))
        tokens.take(",")
    return TupleType(tuple(kinds), "NamedTuple", tuple(names), tuple(defaults))


def _read_default(tokens: Tokens) -> object:
    """Return a field's default, up to the next comma or the end of the tuple's fields; as text if it is no literal."""
    depth, start = 0, tokens._next
    end = start
    while end < len(tokens.text) and (depth > 0 or tokens.text[end] not in ",)"):
        depth += (tokens.text[end] in "([{") - (tokens.text[end] in ")]}")
        end += 1
    shown = tokens.text[start:end].strip()
    tokens._next = end
    tokens.advance()
    try:
        return ast.literal_eval(shown)
    except (SyntaxError, ValueError):
        return shown


def _parse_shaped(tokens: Tokens, name: str) -> TensorType:
    """Parse `Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)`, after its first word."""
    tokens.expect("(")
    sizes: list[int | None] = []
    known: dict[str, object] = {}
    while not tokens.take(")"):
        if tokens.kind == "name":
            key = tokens.advance()
            tokens.expect("=")
            known[key] = _parse_property(tokens)
        else:
            sizes.append(None if tokens.take("*") else int(tokens.expect_kind("number")))
        tokens.take(",")
    no_sizes = name == "Tensor" and known and not sizes  # `Tensor(requires_grad=1)` says nothing about sizes
    strides = known.get("strides")
    needs = None if known.get("requires_grad") is None else bool(known["requires_grad"])
    return TensorType(_DTYPES.get(name), None if no_sizes else tuple(sizes), strides, needs, known.get("device"))


def _parse_property(tokens: Tokens) -> object:
    if tokens.take("["):
        found = []
        while not tokens.take("]"):
            found.append(None if tokens.take("*") else int(tokens.expect_kind("number")))
            tokens.take(",")
        return tuple(found)
    if tokens.kind == "number":
        return int(tokens.advance())
    device = tokens.expect_kind("name")
    return f"{device}:{tokens.advance()}" if tokens.take(":") else device


def type_from_text(text: str, resolve: Callable[[str], Type | None] = no_class) -> Type:
    """Return the type of a whole text."""
    tokens = Tokens(text)
    kind = parse_type(tokens, resolve)
    if tokens.token:
        raise tokens.error("expected the end of a type")
    return kind
