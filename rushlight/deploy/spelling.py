"""How names, dtypes and strings of a model are spelled in C."""

from __future__ import annotations

import keyword
import re

from rushlight.core.dtype import dtype, float64, int64
from rushlight.inductor.codegen.types import CPP_WORDS, literal

DTYPES = {
    "float32": "FLOAT32", "float64": "FLOAT64", "float16": "FLOAT16", "bfloat16": "BFLOAT16", "int64": "INT64",
    "int32": "INT32", "int16": "INT16", "int8": "INT8", "uint8": "UINT8", "bool": "BOOLEAN",
    "complex64": "COMPLEX64", "complex128": "COMPLEX128",
}  # fmt: skip
"""The dtypes that cross the interface, and what their constants are called after the model's name."""


class NotExportable(RuntimeError):
    """A model, or a part of it, that has no form without Python; the message lists the reasons with their lines."""


_C_WORDS = frozenset("restrict inline signed unsigned struct union typedef main".split())


def c_constant(kind: dtype) -> str:
    """The constant of a dtype in the model's source."""
    return f"RL_CONSTANT({DTYPES[kind.name]})"


def is_identifier(name: str) -> bool:
    """Whether something may be called so in C, C++ and Python."""
    return re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) is not None and not is_word(name)


def is_word(name: str) -> bool:
    """Whether a name means something in one of these languages."""
    return name in CPP_WORDS or name in _C_WORDS or keyword.iskeyword(name)


def identifier(name: str, taken: set[str], otherwise: str = "x") -> str:
    """A name like the one that is wished for which is an identifier and not taken; it is, then."""
    found = re.sub(r"\W+", "_", name).strip("_") or otherwise
    if found[0].isdigit():
        found = f"{otherwise}_{found}"
    wished, number = found, 0
    while found in taken or is_word(found):
        number += 1
        found = f"{wished}_{number}"
    taken.add(found)
    return found


def in_user_names(text: str, names: dict[str, str]) -> str:
    """Text with the symbols of sizes, such as s0, by the names that the user gave them."""
    return re.sub(r"\bs\d+\b", lambda found: names.get(found[0], found[0]), text)


def c_string(text: str) -> str:
    """A string constant of C."""
    made = []
    for byte in text.encode():
        char = chr(byte)
        plain = 32 <= byte < 127 and char not in '"\\?'
        made.append(char if plain else f"\\{byte:03o}")
    return f'"{"".join(made)}"'


def format_text(text: str) -> str:
    """The same as a format of printf that says it as it is."""
    return c_string(text.replace("%", "%%"))


def real_text(value: float) -> str:
    """A float as C."""
    return literal(value, float64)


def constant_text(value: object) -> str:
    """A plain value as C++ of type `value`. NotExportable for others."""
    if value is None:
        return "none()"
    if isinstance(value, bool):
        return f"of_boolean({str(value).lower()})"
    if isinstance(value, int):
        return f"of_integer({integer_text(value)})"
    if isinstance(value, float):
        return f"of_real({real_text(value)})"
    if isinstance(value, str):
        return f"of_string({c_string(value)}, {len(value.encode())})"
    raise NotExportable(f"a value of type {type(value).__name__}, which has no form in C")


def integer_text(value: int) -> str:
    """An int of 64 bits as C."""
    return literal(value, int64)
