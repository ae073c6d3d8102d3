"""Map the jit's operators on numbers and lists to operations of structured programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rushlight.inductor.structured import BOOL, FLOAT, INT, Operand


def _to_int(operands: Sequence[Operand]) -> str:
    return "truncate" if operands[0].kind == FLOAT else "to_int"


def _round_down(operands: Sequence[Operand]) -> str | None:
    return "floor" if operands[0].kind == FLOAT else "copy"


def _round_up(operands: Sequence[Operand]) -> str | None:
    return "ceil" if operands[0].kind == FLOAT else "copy"


def _accept_numbers(op: str) -> Callable[[Sequence[Operand]], str | None]:
    return lambda operands: None if any(operand.kind == BOOL for operand in operands) else op


def _accept_floats(op: str) -> Callable[[Sequence[Operand]], str | None]:
    return lambda operands: op if all(operand.kind == FLOAT for operand in operands) else None


def _accept_ints(op: str) -> Callable[[Sequence[Operand]], str | None]:
    return lambda operands: op if all(operand.kind == INT for operand in operands) else None


def _accept_bits(op: str) -> Callable[[Sequence[Operand]], str | None]:
    return lambda operands: None if any(operand.kind == FLOAT for operand in operands) else op


SCALAR_OPERATORS: dict[str, str | Callable[[Sequence[Operand]], str | None]] = {
    **{f"aten::{name}": _accept_numbers(name) for name in ("add", "sub", "mul", "div", "floordiv", "remainder", "neg")},
    **{f"aten::{name}": name for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{f"prim::{name}": _accept_numbers(name) for name in ("abs", "min", "max")},
    **{f"aten::__{name}__": _accept_bits(name) for name in ("and", "or", "xor")},
    **{f"aten::__{name}__": _accept_ints(name) for name in ("lshift", "rshift")},
    "aten::bitwise_not": _accept_ints("invert"), "aten::__not__": "not",
    "aten::__is__": _accept_bits("eq"), "aten::__isnot__": _accept_bits("ne"),
    "aten::Float": "to_float", "aten::Int": _to_int, "aten::Bool": "to_bool",
    "aten::floor": _round_down, "aten::ceil": _round_up,
    "aten::__range_length": "range_length", "aten::__derive_index": "derive_index",
    **{f"aten::{name}": _accept_numbers(name) for name in (
        "sqrt", "sin", "cos", "tan", "exp", "tanh", "atan", "erf", "erfc", "expm1", "fabs", "log", "log10", "log1p", "asin",
        "acos", "asinh", "sinh", "cosh", "pow", "atan2", "copysign", "fmod", "round", "gcd",
    )},
    **{f"aten::{name}": _accept_floats(name) for name in ("isnan", "isinf", "isfinite")},
}  # fmt: skip
"""The operation of each operator, or a function that chooses it for operands, and returns None if there is none for them."""

LIST_OPERATORS: dict[str, str] = {
    "aten::append": "append", "aten::__getitem__": "getitem", "aten::_set_item": "setitem", "aten::len": "len",
    "aten::mul": "repeat", "aten::add": "concat", "aten::pop": "pop", "aten::clear": "clear", "aten::copy": "duplicate",
    "aten::list": "duplicate", "aten::extend": "extend", "aten::add_": "extend", "aten::insert": "insert",
    "aten::reverse": "reverse", "aten::sort": "sort", "aten::sorted": "sorted", "aten::slice": "slice",
    "aten::__contains__": "contains", "aten::index": "index", "aten::count": "count", "aten::remove": "remove",
    "aten::Delete": "delete", "aten::sum": "sum_of", "prim::min": "least_of", "prim::max": "most_of", "aten::eq": "equal",
}  # fmt: skip
"""The operation of each operator on lists."""
MUTATING = frozenset(
    f"aten::{name}" for name in
    ("append", "_set_item", "pop", "clear", "extend", "add_", "insert", "remove", "reverse", "sort", "Delete")
)  # fmt: skip
"""The operators that change a list."""
CHAINED = {"least_of": "min", "most_of": "max", "sum_of": "add", "contains": "or"}
"""List operations that a chain of operations on the elements can replace, when the elements are operands."""

READS = frozenset(("aten::IntImplicit", "aten::FloatImplicit", "aten::item", "aten::Int", "aten::Float", "aten::Bool"))
"""Operators that convert a tensor to a number."""
