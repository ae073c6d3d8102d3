"""How dtypes, numbers and sizes are spelled in C++."""

from __future__ import annotations

import math

from rushlight.core.algebra import Var, to_cpp
from rushlight.core.dtype import dtype
from rushlight.inductor.sizes import Size

C_TYPES = {
    "bool": "bool", "uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t",
    "float16": "rl::half", "bfloat16": "rl::bfloat16", "float32": "float", "float64": "double",
}  # fmt: skip


def c_type(kind: dtype) -> str:
    """The type of an element in memory."""
    return C_TYPES[kind.name]


def compute_type(kind: dtype) -> str:
    """The type in which values of `kind` are calculated."""
    return "float" if kind.name in ("float16", "bfloat16") else C_TYPES[kind.name]


def size_text(size: Size) -> str:
    """A size as a C++ expression; its symbols are variables."""
    return f"{size}L" if isinstance(size, int) else to_cpp(size)


def size_operand(size: Size) -> str:
    """A size as an operand of `*`, `/` or `%`."""
    return size_text(size) if isinstance(size, int | Var) else f"({to_cpp(size)})"


def literal(number: bool | int | float, kind: dtype) -> str:
    """A number as a C++ constant of the compute type."""
    target = compute_type(kind)
    if target == "bool":
        return "true" if number else "false"
    if kind.is_integral:
        if number == -(2**63):
            return "INT64_MIN"
        return f"({target}){int(number)}" + ("L" if target == "int64_t" else "")
    number = float(number)
    suffix = "f" if target == "float" else ""
    if math.isnan(number):
        return f"__builtin_nan{suffix}(\"\")"
    if math.isinf(number):
        return f"{'-' if number < 0 else ''}__builtin_inf{suffix}()"
    return float_literal(number, suffix)


def float_literal(number: float, suffix: str) -> str:
    """A finite float with all its digits; those outside float's range become infinite or round, as a conversion would."""
    if suffix and abs(number) > 3.4028235677973366e38:
        return f"{'-' if number < 0 else ''}__builtin_inff()"
    return f"{number!r}{suffix}"
