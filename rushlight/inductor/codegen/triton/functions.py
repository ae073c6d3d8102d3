"""Scalar functions of the loops IR as Triton text: one table, keyed by the functions' names.

In: a call's name, types and operands. Out: text. Functions of `device_functions.py` are copied into the text that uses them.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

INFIX = {
    "add": "+", "sub": "-", "mul": "*", "rounded_product": "*", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">",
    "ge": ">=", "logical_and": "&", "logical_or": "|", "logical_xor": "^", "bitwise_and": "&", "bitwise_or": "|",
    "bitwise_xor": "^",
}  # fmt: skip
FLOATS = ("float32", "float64")
FLOAT32 = ("float32",)
ANY: tuple[str, ...] = ()

# Name -> the text over its operands, and the compute types that it exists for (all, if empty).
FUNCTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "neg": ("-{0}", ANY), "abs": ("tl.abs({0})", ANY), "sign": ("sign_of({0})", ANY), "floor": ("tl.floor({0})", FLOATS),
    "ceil": ("tl.ceil({0})", FLOATS), "round": ("round_half_even({0})", FLOATS), "trunc": ("truncate({0})", FLOATS),
    "relu": ("tl.where({0} < 0, 0, {0})", ANY), "bitwise_not": ("~{0}", ANY), "logical_not": ("({0} == 0)", ANY),
    "isnan": ("({0} != {0})", ANY), "isinf": ("is_infinite({0})", FLOATS), "copysign": ("copysign({0}, {1})", FLOATS),
    "maximum": ("larger({0}, {1})", ANY), "minimum": ("smaller({0}, {1})", ANY),
    "where": ("tl.where({0}, {1}, {2})", ANY), "reciprocal": ("reciprocal({0})", FLOATS),
    "sqrt": ("square_root({0})", FLOATS), "rsqrt": ("reciprocal(square_root({0}))", FLOATS),
    "exp": ("tl.exp({0})", FLOATS), "exp_nonpositive": ("tl.exp({0})", FLOATS), "expm1": ("expm1({0})", FLOATS),
    "log": ("tl.log({0})", FLOATS), "log2": ("tl.log2({0})", FLOATS), "log1p": ("log1p({0})", FLOATS),
    "sin": ("tl.sin({0})", FLOATS), "cos": ("tl.cos({0})", FLOATS), "tan": ("tangent({0})", FLOATS),
    "asin": ("arcsine({0})", FLOATS), "acos": ("arccosine({0})", FLOATS), "atan": ("arctangent({0})", FLOATS),
    "atan2": ("arctangent2({0}, {1})", FLOATS), "sinh": ("hyperbolic_sine({0})", FLOATS),
    "cosh": ("hyperbolic_cosine({0})", FLOATS), "tanh": ("hyperbolic_tangent({0})", FLOATS),
    "asinh": ("area_sine({0})", FLOATS), "acosh": ("area_cosine({0})", FLOATS), "atanh": ("area_tangent({0})", FLOATS),
    "hypot": ("hypotenuse({0}, {1})", FLOATS), "erf": ("tl.erf({0})", FLOATS), "erfc": ("complementary_erf({0})", FLOATS),
    "lgamma": ("log_gamma({0})", FLOATS), "erfinv": ("inverse_erf({0})", FLOAT32),
    "sigmoid": ("logistic({0})", FLOATS), "silu": ("silu({0})", FLOATS),
    "gelu_erf": ("gelu_erf({0})", FLOATS), "gelu_erf_slope": ("gelu_erf_slope({0})", FLOATS),
    "gelu_tanh": ("gelu_tanh({0})", FLOATS), "gelu_tanh_slope": ("gelu_tanh_slope({0})", FLOATS),
    "multiply_add": ("tl.fma({0}, {1}, {2})", FLOATS), "nearest": ("nearest_integer({0}, {1}, {2})", FLOAT32),
    "fmod": ("c_remainder({0}, {1})", ANY), "remainder": ("python_remainder({0}, {1})", ANY),
    "floor_div": ("floored_quotient({0}, {1})", ANY),
}  # fmt: skip
BY_TYPE = {
    "div": ("divide({0}, {1})", "truncated_quotient({0}, {1})"), "pow": ("power({0}, {1})", "integer_power({0}, {1})"),
}  # fmt: skip
SHIFTS = {"shift_left": "shifted_left", "shift_right": "shifted_right"}
UNFUSED = ("rounded_product",)  # products that must not become part of a fused multiply-add


def function_text(name: str, kind: str, bits: int) -> str | None:
    """Return a function's text over {0}, {1}, ... for operands of a compute type such as "float32"; None if there is none."""
    if name in BY_TYPE:
        return BY_TYPE[name][0 if kind in FLOATS else 1]
    if name in SHIFTS:
        return f"{SHIFTS[name]}({{0}}, {{1}}, {bits})"
    text, kinds = FUNCTIONS.get(name, ("", ANY))
    return text if text and (not kinds or kind in kinds) else None


_NAME = re.compile(r"^def (\w+)\(", re.MULTILINE)
_WORD = re.compile(r"\b\w+(?=\()|\b\w+\b(?=[,)])")


@functools.cache
def _definitions() -> dict[str, str]:
    """Return the device functions: name -> text."""
    text = Path(__file__).with_name("device_functions.py").read_text()
    blocks = text.split("@triton.jit\n")[1:]
    return {_NAME.search(block)[1]: f"@triton.jit\n{block.rstrip()}" for block in blocks}


def definitions_for(text: str) -> list[str]:
    """Return the definitions of all device functions that a text calls, those that are called first."""
    known, found = _definitions(), dict[str, str]()

    def visit(source: str, own: str) -> None:
        for name in dict.fromkeys(_WORD.findall(source)):
            if name in known and name != own and name not in found:
                visit(known[name], name)
                found[name] = known[name]

    visit(text, "")
    return list(found.values())
