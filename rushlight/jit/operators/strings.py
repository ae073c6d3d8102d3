"""Operators on strings. Indices count characters; a search's end of -1 means the end of the string, as in torch."""

from __future__ import annotations

import operator
import re
import warnings
from collections.abc import Callable

from rushlight.jit.operators.registry import declare_operator

_BLANKS = " \n\t\f\v"
_SPECIFIER = re.compile(r"%[-+ #0]*[\d*]*(?:\.[\d*]+)?(.)")
_WHOLE = 2.0**63
_LETTERS = "sdieEfFc"  # the specifiers that TorchScript has
_KIND_NAMES = {str: "String", int: "Int", float: "Double", bool: "Bool", list: "GenericList", dict: "GenericDict",
               tuple: "Tuple", complex: "ComplexDouble", type(None): "None"}  # fmt: skip


def _register_tests() -> None:
    for name in ("isspace", "isalpha", "isnumeric", "isprintable", "islower", "istitle", "isupper", "isalnum", "isdigit",
                 "isdecimal", "isidentifier"):  # fmt: skip
        declare_operator(f"aten::{name}(str self) -> bool", getattr(str, name))
    for name in ("lower", "upper", "swapcase", "capitalize", "title"):
        declare_operator(f"aten::{name}(str self) -> str", getattr(str, name))


def _register_searches() -> None:
    for name in ("find", "rfind", "index", "rindex", "count", "startswith", "endswith"):
        overload = ".str" if name == "index" else ""
        result = "bool" if name.endswith("with") else "int"
        declare_operator(f"aten::{name}{overload}(str self, str substr, int start=0, int end=-1) -> {result}",
                          _search(getattr(str, name)))  # fmt: skip


def _search(method: Callable) -> Callable:
    def search(self: str, substr: str, start: int = 0, end: int = -1) -> object:
        return method(self, substr, start, len(self) if end == -1 else end)

    return search


def _register_splits() -> None:
    register = declare_operator
    register(
        "aten::split.str(str self, str? separator=None, int max=-1) -> str[]", lambda self, sep, most: self.split(sep, most)
    )
    register('aten::rsplit(str self, str separator=" ", int max=-1) -> str[]', lambda self, sep, most: self.rsplit(sep, most))
    register("aten::splitlines(str self, bool keepends=False) -> str[]", lambda self, keep: self.splitlines(keep))
    register("aten::partition(str self, str separator) -> (str, str, str)", lambda self, sep: self.partition(sep))
    register("aten::rpartition(str self, str separator) -> (str, str, str)", lambda self, sep: self.rpartition(sep))
    register("aten::join(str self, str[] values) -> str", lambda self, values: self.join(values))
    register(
        "aten::replace(str self, str old, str new, int max=-1) -> str",
        lambda self, old, new, most: self.replace(old, new, most),
    )
    for name in ("strip", "lstrip", "rstrip"):
        register(f'aten::{name}(str self, str chars="{_BLANKS}") -> str', _strip(getattr(str, name)))
    for name in ("center", "ljust", "rjust"):
        register(f'aten::{name}(str self, int width, str fillchar=" ") -> str', getattr(str, name))
    register("aten::zfill(str self, int width) -> str", str.zfill)
    register("aten::expandtabs(str self, int tabsize=8) -> str", str.expandtabs)


def _percent_format(text: str, *values: object) -> str:
    """Return `text % values`. RuntimeError for an unknown specifier, a value that does not fit it, or the wrong number."""
    given = values[0] if len(values) == 1 and isinstance(values[0], tuple) else values
    if _SPECIFIER.sub("", text).endswith("%"):
        raise RuntimeError("Incomplete format specifier")
    letters = [letter for letter in _SPECIFIER.findall(text) if letter != "%"]
    if len(letters) != len(given):
        raise RuntimeError(f"Too {'few' if len(given) < len(letters) else 'many'} arguments for format string: {text}")
    return text % tuple(_percent_value(letter, value) for letter, value in zip(letters, given, strict=True))


def _percent_value(letter: str, value: object) -> object:
    if letter == "s":
        return to_text(value)
    is_number = isinstance(value, int | float)
    if letter in "dieEfF" and not is_number:
        raise RuntimeError(f"%{letter} requires a number for formatting, but got {_kind_name(value)}")
    if letter == "c" and not (isinstance(value, int) or isinstance(value, str) and len(value) == 1):
        raise RuntimeError(f"%c requires an int or char for formatting, but got {_kind_name(value)}")
    if letter not in _LETTERS:
        raise RuntimeError(f"The specifier %{letter} is not supported in TorchScript format strings")
    return value


def _kind_name(value: object) -> str:
    return _KIND_NAMES.get(type(value), type(value).__name__)


def _strip(method: Callable) -> Callable:
    return lambda self, chars: method(self, " \n\t\f\v" if chars == _BLANKS else chars)


def _register_conversions() -> None:
    register = declare_operator
    register("aten::ord(str string) -> int", ord)
    register("aten::chr(int i) -> str", chr)
    register("aten::bin(int i) -> str", bin)
    register("aten::oct(int i) -> str", oct)
    register("aten::hex(int i) -> str", hex)
    register("aten::str(t elem) -> str", to_text)
    register("aten::list(str t) -> str[]", list)
    register("aten::len.str(str s) -> int", len)
    register("aten::add.str(str a, str b) -> str", operator.add)
    register("aten::mul.str_int(str a, int b) -> str", operator.mul)
    register("aten::__contains__.str_str(str l, str item) -> bool", operator.contains)
    register("aten::__getitem__.str(str s, int index) -> str", _character)
    register("prim::StringIndex(str string, int index) -> str", _character)
    register("aten::slice.str(str string, int? start=None, int? end=None, int step=1) -> str", _slice)
    register("aten::format(str self, ...) -> str", format_text)
    register("aten::percentFormat(str self, ...) -> str", _percent_format)
    register("aten::_print(str s) -> ()", print, has_side_effects=True)
    register("prim::Print(...) -> ()", print_values, has_side_effects=True)
    register("aten::warn(str message, int stacklevel=2) -> ()", _warn, has_side_effects=True)


def _character(self: str, index: int) -> str:
    if not -len(self) <= index < len(self):
        raise IndexError("string index out of range")
    return self[index]


def _slice(self: str, start: int | None = None, end: int | None = None, step: int = 1) -> str:
    return self[slice(start, None if end == 9223372036854775807 else end, step)]


def to_text(value: object) -> str:
    """Return the text that `str()`, `print` and `format` produce in scripted code: floats with all digits, strings unquoted."""
    if isinstance(value, float):
        return _float_text(value)
    if isinstance(value, complex):
        return f"{_float_text(value.real)}{'+' if value.imag >= 0 else '-'}{_float_text(abs(value.imag))}j"
    if isinstance(value, list):
        return f"[{', '.join(map(to_text, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(to_text, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{to_text(key)}: {to_text(item)}' for key, item in value.items())}}}"
    return str(value)


def _float_text(value: float) -> str:
    """Return a float with all its digits; an integral one that an int64 holds is `2.`."""
    if -_WHOLE < value < _WHOLE and value == int(value):
        return f"{int(value)}."
    return f"{value:.17g}"


def format_text(self: str, *values: object) -> str:
    """`self.format(*values)` as torch defines it: each `{}` takes the next value; all other text, `{:d}` too, is literal.

    RuntimeError for too few values.
    """
    first, *rest = self.split("{}")
    if len(rest) > len(values):
        raise RuntimeError(f"Too few arguments for format string: {self}")
    return first + "".join(f"{to_text(value)}{text}" for value, text in zip(values, rest, strict=False))


def print_values(*values: object) -> None:
    """Run `print(*values)`."""
    print(*map(to_text, values))


def _warn(message: str, stacklevel: int = 2) -> None:
    warnings.warn(message, stacklevel=stacklevel)


_register_tests()
_register_searches()
_register_splits()
_register_conversions()
