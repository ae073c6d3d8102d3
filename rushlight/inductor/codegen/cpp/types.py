"""C++ spellings of dtypes, numbers and sizes."""

from __future__ import annotations

import math

from rushlight.core.algebra import Var, to_cpp
from rushlight.core.dtype import dtype
from rushlight.inductor.sizes import Size

C_TYPES = {
    "bool": "bool", "uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t",
    "float16": "rl::half", "bfloat16": "rl::bfloat16", "float32": "float", "float64": "double",
    "complex64": "float", "complex128": "double",  # as pairs
}  # fmt: skip

# Names that variables must not have: C++ keywords that are Python identifiers, and types and macros used in the text.
CPP_WORDS = frozenset(
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t class compl const "
    "const_cast constexpr continue decltype default delete do double dynamic_cast else enum explicit export extern false "
    "float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private "
    "protected public register reinterpret_cast return short signed sizeof static static_assert static_cast struct switch "
    "template this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t "
    "while xor xor_eq concept requires co_await co_return co_yield typeof restrict rl uint8_t int8_t int16_t int32_t "
    "int64_t errno assert NAN INFINITY NULL HUGE_VAL INT64_MIN INT64_MAX".split()
)


def c_type(kind: dtype) -> str:
    """Return the type of an element in memory."""
    return C_TYPES[kind.name]


def compute_type(kind: dtype) -> str:
    """Return the type in which values of `kind` are computed."""
    return "float" if kind.name in ("float16", "bfloat16") else C_TYPES[kind.name]


def size_text(size: Size) -> str:
    """Return a size as a C++ expression; its symbols are variables."""
    return f"{size}L" if isinstance(size, int) else to_cpp(size)


def size_operand(size: Size) -> str:
    """Return a size as an operand of `*`, `/` or `%`."""
    return size_text(size) if isinstance(size, int | Var) else f"({to_cpp(size)})"


def literal(number: bool | int | float, kind: dtype) -> str:
    """Return a number as a C++ constant of the compute type."""
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
        return f'__builtin_nan{suffix}("")'
    if math.isinf(number):
        return f"{'-' if number < 0 else ''}__builtin_inf{suffix}()"
    return float_literal(number, suffix)


def float_literal(number: float, suffix: str) -> str:
    """Return a finite float with all digits; beyond float's range it becomes infinite, as a conversion would."""
    if suffix and abs(number) > 3.4028235677973366e38:
        return f"{'-' if number < 0 else ''}__builtin_inff()"
    return f"{number!r}{suffix}"
