"""Scalar operations of structured programs: their C++ form, the condition under which they stop the program, and the result
type."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rushlight.inductor.structured import BOOL, FLOAT, INT, Operand, Scalar

NOT_ZERO = "{1} == 0"  # integer division only; floats follow IEEE
_SHIFT = "{1} < 0"
UNORDERED = "!({0} >= -9223372036854775808.0 && {0} < 9223372036854775808.0)"

# op: (C++ template, condition that stops the program or None, result type or None for the operands' type)
OPERATIONS: dict[str, tuple[str, str | None, Scalar | None]] = {
    "add": ("rl::program::add({0}, {1})", None, None), "sub": ("rl::program::sub({0}, {1})", None, None),
    "mul": ("rl::program::mul({0}, {1})", None, None), "neg": ("rl::program::neg({0})", None, None),
    "abs": ("rl::program::absolute({0})", None, None),
    "floordiv": ("rl::program::floordiv({0}, {1})", NOT_ZERO, None),
    "remainder": ("rl::program::remainder({0}, {1})", NOT_ZERO, None),
    "div": ("(double){0} / (double){1}", None, FLOAT),
    "min": ("rl::program::least({0}, {1})", None, None), "max": ("rl::program::most({0}, {1})", None, None),
    **{name: (f"{{0}} {sign} {{1}}", None, BOOL) for name, sign in
       (("eq", "=="), ("ne", "!="), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="))},
    "not": ("!{0}", None, BOOL), "and": ("{0} & {1}", None, None), "or": ("{0} | {1}", None, None),
    "xor": ("{0} ^ {1}", None, None), "invert": ("~{0}", None, None),
    "lshift": ("rl::program::shift_left({0}, {1})", _SHIFT, None),
    "rshift": ("rl::program::shift_right({0}, {1})", _SHIFT, None),
    "to_float": ("(double){0}", None, FLOAT), "to_int": ("(int64_t){0}", None, INT), "to_bool": ("{0} != 0", None, BOOL),
    "truncate": ("(int64_t){0}", UNORDERED, INT), "floor": ("(int64_t)floor({0})", UNORDERED, INT),
    "ceil": ("(int64_t)ceil({0})", UNORDERED, INT),
    "round": ("nearbyint({0})", None, FLOAT),
    "range_length": ("rl::program::range_length({0}, {1}, {2})", "{2} == 0", INT),
    "derive_index": ("rl::program::add({1}, rl::program::mul({0}, {2}))", None, INT),
    "copy": ("{0}", None, None),
    "sqrt": ("({0} < 0 ? __builtin_nan(\"\") : sqrt({0}))", None, FLOAT),
    **{name: (f"{name}({{0}})", None, FLOAT) for name in (
        "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "fabs", "erf", "erfc", "log", "log10",
        "log1p", "exp", "expm1",
    )},
    **{name: (f"{name}({{0}})", None, BOOL) for name in ("isnan", "isinf", "isfinite")},
    "pow": ("pow((double){0}, (double){1})", "(double){0} == 0 && (double){1} < 0", FLOAT),
    "atan2": ("atan2((double){0}, (double){1})", None, FLOAT), "copysign": ("copysign((double){0}, (double){1})", None, FLOAT),
    "fmod": ("fmod((double){0}, (double){1})", None, FLOAT),
    "gcd": ("rl::program::gcd({0}, {1})", None, INT),
}  # fmt: skip
FAILURES = {
    **dict.fromkeys(("floordiv", "remainder"), "ZeroDivisionError: integer division or modulo by zero"),
    **dict.fromkeys(("lshift", "rshift"), "RuntimeError: negative shift count"),
    **dict.fromkeys(("truncate", "floor", "ceil"), "RuntimeError: Cannot convert float to integer"),
    "range_length": "ValueError: range() arg 3 must not be zero",
    "pow": "ZeroDivisionError: 0.0 cannot be raised to a negative power",
}
"""The error of each operation that may stop the program."""


def spelled(op: str, operands: Sequence[Operand], text: Callable[[Operand, Scalar | None], str]) -> tuple[str, str | None]:
    """Return an operation as C++, and the condition that stops the program, if there is one. `text(operand, kind)` returns an
    operand as C++ of type `kind`, or of its own type for None."""
    template, stops, _ = OPERATIONS[op]
    kinds = {operand.kind for operand in operands}
    wanted = None if len(kinds) < 2 else FLOAT if FLOAT in kinds else INT if INT in kinds else None
    texts = [text(operand, wanted) for operand in operands]
    never_stops = stops is None or (stops is NOT_ZERO and FLOAT in kinds)
    return template.format(*texts), None if never_stops else stops.format(*texts)


def result_kind(op: str, operands: Sequence[Operand]) -> Scalar:
    """Return the type of an operation's result: fixed by the operation, else float if an operand is one, else the operands'
    type."""
    fixed = OPERATIONS[op][2]
    if fixed is not None:
        return fixed
    kinds = {operand.kind for operand in operands}
    return FLOAT if FLOAT in kinds else INT if INT in kinds else BOOL
