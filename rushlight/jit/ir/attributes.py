"""Attributes of nodes from text: numbers, strings, lists, types and tensors, as the printer writes them.

In: tokens, positioned inside a node's square brackets, and the type of the node's result, which distinguishes ints from bools.
Out: the values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from rushlight.core.device import device
from rushlight.core.dtype import ALL, STORED_TYPES, float32
from rushlight.core.tensor import Tensor
from rushlight.jit.types.kinds import (
    BOOL,
    COMPLEX,
    DEVICE,
    FLOAT,
    ClassType,
    DictType,
    EnumType,
    OptionalType,
    TensorType,
    Type,
)
from rushlight.jit.types.parser import Tokens, parse_type
from rushlight.ops.construct import tensor
from rushlight.ops.packet import find_packet

_ESCAPE = re.compile(r"\\([0-7]{1,3}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_SHOWN = re.compile(r"\s*(?P<numbers>[-+\w.\s(),=]*?)\s*\[ CPU(?P<dtype>\w+)Type\{(?P<sizes>[\d,]*)\} \]")
_SLICE = re.compile(r"\([\d,.]+\) =")
"""The index that torch prints before each matrix of a tensor with more than two dimensions."""
_ANNOTATED = re.compile(r"\(.*?, (\[\]|\{\})\)")
_WORDS = {"None": None, "True": True, "False": False}
_DTYPES = {each.scalar_name: each for each in (*ALL, *STORED_TYPES)}


class NamedObject:
    """A constant of which text shows only the name, such as a member of an enumeration."""

    def __init__(self, name: str):
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedObject) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name


class AttributeParser:
    """Parses values from tokens; `resolve` finds classes."""

    def __init__(self, tokens: Tokens, resolve: Callable[[str], Type | None]):
        self.tokens = tokens
        self.resolve = resolve

    def type(self) -> Type:
        """Parse a type."""
        return parse_type(self.tokens, self.resolve)

    def shown_tensor(self) -> Tensor | None:
        """Parse a small tensor with its elements, ` 1  2 [ CPUFloatType{2} ]`, after the current token; None if there is
        none."""
        matched = _SHOWN.match(self.tokens.text, self.tokens._next)
        if matched is None:
            return None
        sizes = tuple(int(size) for size in matched["sizes"].split(",") if size)
        numbers = [_parse_element(word) for word in _SLICE.sub(" ", matched["numbers"]).split()]
        self.tokens._next = matched.end()
        self.tokens.advance()
        return tensor(numbers, dtype=_DTYPES[matched["dtype"]]).reshape(sizes)

    def value(self, kind: Type | None, is_type: bool = False) -> object:
        """Parse a value: of type `kind` where known, a type if `is_type`."""
        tokens = self.tokens
        if isinstance(kind, OptionalType):
            kind = kind.element
        if tokens.token == "[":
            return self._parse_sequence("]", [getattr(kind, "element", None)], is_type)
        if is_type:
            return self.type()
        if tokens.kind == "string":
            text = unquoted(tokens.advance())
            return device(text) if kind == DEVICE else text
        if tokens.kind == "number":
            return self._parse_number(kind)
        if tokens.token == "(":
            return tuple(self._parse_sequence(")", list(getattr(kind, "elements", ())) or [None], False))
        if tokens.token == "{":
            return self._parse_braces(kind)
        if tokens.take("<"):
            tokens.expect_kind("name")
            tokens.expect(">")
            return _make_stand_in(kind)
        return self._parse_word(kind)

    def _parse_word(self, kind: Type | None) -> object:
        token = self.tokens.token
        if token == "annotate":
            return self._parse_annotated_empty(kind)
        if token in _WORDS:
            return _WORDS[self.tokens.advance()]
        if isinstance(kind, EnumType) or (isinstance(kind, ClassType) and kind.name in token):
            return NamedObject(self.tokens.advance())
        return self.type()

    def _parse_annotated_empty(self, kind: Type | None) -> object:
        """Parse `annotate(List[int], [])`: an empty list or dict with its element type."""
        found = _ANNOTATED.match(self.tokens.text, self.tokens._next)
        if found is None:
            raise self.tokens.error("expected an empty list or dict with its type")
        self.tokens._next = found.end()
        self.tokens.advance()
        return [] if found[1] == "[]" else {}

    def _parse_number(self, kind: Type | None) -> object:
        text = self.tokens.advance()
        if kind == COMPLEX and not text.endswith("j"):
            self.tokens.take("+")
            return complex(float(text), float(self.tokens.expect_kind("number")[:-1]))
        if text.endswith("j"):
            return complex(0.0, float(text[:-1]))
        if kind == BOOL:
            return bool(int(text))
        return int(text) if re.fullmatch(r"-?\d+", text) and kind != FLOAT else float(text)

    def _parse_sequence(self, closing: str, kinds: list[Type | None], is_type: bool) -> list:
        self.tokens.advance()
        found: list[object] = []
        while not self.tokens.take(closing):
            found.append(self.value(kinds[min(len(found), len(kinds) - 1)], is_type))
            if not self.tokens.take(","):
                self.tokens.expect(closing)
                break
        return found

    def _parse_braces(self, kind: Type | None) -> object:
        """Parse what stands in braces: `{3}` is a tensor of one element, anything else a dict."""
        found: dict = {}
        self.tokens.expect("{")
        while not self.tokens.take("}"):
            key = self.value(kind.key if isinstance(kind, DictType) else None)
            if not found and self.tokens.take("}"):
                return _make_scalar(key, kind)
            self.tokens.expect(":")
            found[key] = self.value(kind.value if isinstance(kind, DictType) else None)
            self.tokens.take(",")
        return found


def unquoted(text: str) -> str:
    """Return the string inside quotes, with escapes for UTF-8 bytes."""
    data = bytearray()
    position = 1
    while position < len(text) - 1:
        matched = _ESCAPE.match(text, position)
        if matched is None:
            data += text[position].encode("utf-8", errors="surrogateescape")
            position += 1
            continue
        data += _decode_escape(matched[1])
        position = matched.end()
    return data.decode("utf-8", errors="surrogateescape")


def _decode_escape(code: str) -> bytes:
    if code[0] in "01234567":
        return bytes((int(code, 8) & 255,))
    if code[0] == "x" and len(code) == 3:
        return bytes((int(code[1:], 16),))
    return _LETTERS.get(code, code).encode("utf-8")


def _make_stand_in(kind: Type | None) -> Tensor:
    """Return the stand-in for a tensor whose elements are not shown."""
    dtype = kind.dtype if isinstance(kind, TensorType) else None
    if isinstance(kind, TensorType) and kind.sizes is not None and None not in kind.sizes and math.prod(kind.sizes) != 1:
        return find_packet("aten::zeros")(kind.sizes, dtype=dtype)
    return tensor([], dtype=dtype or float32)


def _make_scalar(number: object, kind: Type | None) -> Tensor:
    if isinstance(kind, TensorType) and kind.dtype is not None:
        made = tensor(number, dtype=kind.dtype)
        return made.reshape(kind.sizes) if kind.sizes and None not in kind.sizes else made
    return tensor(number, dtype=float32 if isinstance(number, float) else None)


def _parse_element(word: str) -> float | int:
    return int(word) if re.fullmatch(r"-?\d+", word) else float(word)
