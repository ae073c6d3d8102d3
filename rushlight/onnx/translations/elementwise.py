"""Elementwise operators as ONNX nodes: arithmetic, comparisons, choices and conversions."""

from __future__ import annotations

import math
from typing import Any

from rushlight.core.dtype import bool_, dtype, float32, int64
from rushlight.onnx.builder import GraphBuilder, Value
from rushlight.onnx.translations.table import TRANSLATIONS, translation
from rushlight.ops.functional import result_type

_UNARY = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh", "atan": "Atan", "atanh": "Atanh",
    "ceil": "Ceil", "cos": "Cos", "cosh": "Cosh", "erf": "Erf", "exp": "Exp", "floor": "Floor", "log": "Log", "neg": "Neg",
    "reciprocal": "Reciprocal", "relu": "Relu", "round": "Round", "sigmoid": "Sigmoid", "sign": "Sign", "sgn": "Sign",
    "sin": "Sin", "sinh": "Sinh", "sqrt": "Sqrt", "tan": "Tan", "tanh": "Tanh",
}  # fmt: skip
_COMPARISONS = {"eq": "Equal", "ge": "GreaterOrEqual", "gt": "Greater", "le": "LessOrEqual", "lt": "Less"}


def _result(g: GraphBuilder) -> dtype:
    return g.output.dtype


def _unary(kind: str):
    def translate(g: GraphBuilder, x: Value) -> str:
        return g.op(kind, g.tensor(x, _result(g)))

    return translate


TRANSLATIONS.update({name: _unary(kind) for name, kind in _UNARY.items()})


def _common(g: GraphBuilder, x: Any, y: Any, kind: dtype) -> tuple[str, str]:
    return g.tensor(x, kind), g.tensor(y, kind)


def _comparison_dtype(x: Any, y: Any) -> dtype:
    """Return the dtype in which two values are compared."""
    return result_type(*(each.meta if isinstance(each, Value) else each for each in (x, y)))


def _comparison(kind: str):
    def translate(g: GraphBuilder, x: Any, y: Any) -> str:
        return g.op(kind, *_common(g, x, y, _comparison_dtype(x, y)))

    return translate


TRANSLATIONS.update({name: _comparison(kind) for name, kind in _COMPARISONS.items()})


@translation("ne")
def not_equal(g: GraphBuilder, x: Any, y: Any) -> str:
    return g.op("Not", g.op("Equal", *_common(g, x, y, _comparison_dtype(x, y))))


@translation("add", "sub")
def add(g: GraphBuilder, x: Any, y: Any, alpha: float = 1) -> str:
    kind = _result(g)
    first, second = _common(g, x, y, kind)
    if alpha != 1:
        second = g.op("Mul", second, g.scalar(alpha, kind))
    if kind is bool_:
        return g.op("Or", first, second)
    return g.op("Sub" if g.output_op == "sub" else "Add", first, second)


@translation("rsub")
def reverse_sub(g: GraphBuilder, x: Any, y: Any) -> str:
    return g.op("Sub", *_common(g, y, x, _result(g)))


@translation("mul")
def mul(g: GraphBuilder, x: Any, y: Any) -> str:
    kind = _result(g)
    return g.op("And" if kind is bool_ else "Mul", *_common(g, x, y, kind))


@translation("div")
def div(g: GraphBuilder, x: Any, y: Any, rounding_mode: str | None = None) -> str:
    kind = _result(g)
    if rounding_mode is None or not kind.is_floating_point:
        found = g.op("Div", *_common(g, x, y, kind))
        return _floor_quotient(g, found, x, y, kind) if rounding_mode == "floor" else found
    found = g.op("Div", *_common(g, x, y, kind))
    return g.op("Floor", found) if rounding_mode == "floor" else _truncate(g, found)


def _truncate(g: GraphBuilder, x: str) -> str:
    return g.op("Mul", g.op("Sign", x), g.op("Floor", g.op("Abs", x)))


def _floor_quotient(g: GraphBuilder, quotient: str, x: Any, y: Any, kind: dtype) -> str:
    """Round a quotient of integers down: ONNX rounds towards zero, so subtract 1 if the remainder's sign differs from y's."""
    first, second = _common(g, x, y, kind)
    rest = g.op("Sub", first, g.op("Mul", quotient, second))
    zero = g.scalar(0, kind)
    differs = g.op("Xor", g.op("Less", rest, zero), g.op("Less", second, zero))
    lower = g.op("And", differs, g.op("Not", g.op("Equal", rest, zero)))
    return g.op("Sub", quotient, g.cast(lower, kind))


@translation("floor_divide")
def floor_divide(g: GraphBuilder, x: Any, y: Any) -> str:
    return div(g, x, y, "floor")


@translation("remainder", "fmod")
def remainder(g: GraphBuilder, x: Any, y: Any) -> str:
    kind = _result(g)
    first, second = _common(g, x, y, kind)
    if g.output_op == "fmod" or not kind.is_floating_point:
        return g.op("Mod", first, second, fmod=int(g.output_op == "fmod"))
    return g.op("Sub", first, g.op("Mul", second, g.op("Floor", g.op("Div", first, second))))


@translation("pow")
def power(g: GraphBuilder, x: Any, y: Any) -> str:
    return g.op("Pow", *_common(g, x, y, _result(g)))


@translation("maximum", "fmax")
def maximum(g: GraphBuilder, x: Any, y: Any) -> str:
    return g.op("Max", *_common(g, x, y, _result(g)))


@translation("minimum", "fmin")
def minimum(g: GraphBuilder, x: Any, y: Any) -> str:
    return g.op("Min", *_common(g, x, y, _result(g)))


@translation("clamp")
def clamp(g: GraphBuilder, x: Value, min: Any = None, max: Any = None) -> str:
    kind = _result(g)
    found = g.tensor(x, kind)
    found = found if min is None else g.op("Max", found, g.tensor(min, kind))
    return found if max is None else g.op("Min", found, g.tensor(max, kind))


def _logical(kind: str, bits: str):
    def translate(g: GraphBuilder, x: Any, y: Any) -> str:
        if _result(g) is bool_:
            return g.op(kind, *_common(g, x, y, bool_))
        return g.op(bits, *_common(g, x, y, _result(g)))

    return translate


for _name in ("and", "or", "xor"):
    TRANSLATIONS[f"logical_{_name}"] = TRANSLATIONS[f"bitwise_{_name}"] = _logical(
        _name.capitalize(), f"Bitwise{_name.capitalize()}"
    )


@translation("logical_not", "bitwise_not")
def logical_not(g: GraphBuilder, x: Value) -> str:
    if _result(g) is bool_:
        return g.op("Not", g.tensor(x, bool_))
    return g.op("BitwiseNot", x)


@translation("rsqrt")
def rsqrt(g: GraphBuilder, x: Value) -> str:
    return g.op("Reciprocal", g.op("Sqrt", g.tensor(x, _result(g))))


@translation("expm1")
def expm1(g: GraphBuilder, x: Value) -> str:
    return g.op("Sub", g.op("Exp", g.tensor(x, _result(g))), g.scalar(1, _result(g)))


@translation("log1p")
def log1p(g: GraphBuilder, x: Value) -> str:
    return g.op("Log", g.op("Add", g.tensor(x, _result(g)), g.scalar(1, _result(g))))


@translation("log2", "log10")
def log_of_base(g: GraphBuilder, x: Value) -> str:
    base = 2 if g.output_op == "log2" else 10
    return g.op("Div", g.op("Log", g.tensor(x, _result(g))), g.scalar(math.log(base), _result(g)))


@translation("exp2")
def exp2(g: GraphBuilder, x: Value) -> str:
    return g.op("Pow", g.scalar(2, _result(g)), g.tensor(x, _result(g)))


@translation("trunc")
def trunc(g: GraphBuilder, x: Value) -> str:
    return _truncate(g, x.name)


@translation("isnan")
def isnan(g: GraphBuilder, x: Value) -> str:
    return g.op("IsNaN", g.tensor(x, x.dtype if x.dtype.is_floating_point else float32))


@translation("isinf")
def isinf(g: GraphBuilder, x: Value) -> str:
    return g.op("IsInf", g.tensor(x, x.dtype if x.dtype.is_floating_point else float32))


@translation("silu")
def silu(g: GraphBuilder, x: Value) -> str:
    return g.op("Mul", x, g.op("Sigmoid", x))


@translation("gelu")
def gelu(g: GraphBuilder, x: Value, approximate: str = "none") -> str:
    kind = x.dtype
    if approximate == "tanh":
        cubed = g.op("Mul", g.op("Pow", x, g.scalar(3, kind)), g.scalar(0.044715, kind))
        bent = g.op("Tanh", g.op("Mul", g.op("Add", x, cubed), g.scalar(math.sqrt(2 / math.pi), kind)))
    else:
        bent = g.op("Erf", g.op("Mul", x, g.scalar(math.sqrt(0.5), kind)))
    half = g.op("Mul", x, g.scalar(0.5, kind))
    return g.op("Mul", half, g.op("Add", bent, g.scalar(1, kind)))


@translation("leaky_relu")
def leaky_relu(g: GraphBuilder, x: Value, negative_slope: float = 0.01) -> str:
    return g.op("LeakyRelu", x, alpha=float(negative_slope))


@translation("where")
def where(g: GraphBuilder, condition: Value, x: Any, y: Any) -> str:
    return g.op("Where", g.tensor(condition, bool_), *_common(g, x, y, _result(g)))


@translation("masked_fill")
def masked_fill(g: GraphBuilder, x: Value, mask: Value, value: Any) -> str:
    return g.op("Where", g.tensor(mask, bool_), g.tensor(value, x.dtype), x)


@translation("_to_copy", "clone", "alias", "detach", "contiguous", "lift_fresh_copy")
def convert(g: GraphBuilder, x: Value, **options: Any) -> str:
    return g.op("Identity", x) if x.dtype is _result(g) else g.cast(x, _result(g))


@translation("_checked")
def unchecked(g: GraphBuilder, x: Value, holds: Value, error: str, message: str) -> str:
    return g.op("Identity", x)


@translation("full", "full_like")
def full(g: GraphBuilder, size: Any, value: Any, **options: Any) -> str:
    sizes = g.op("Shape", size) if isinstance(size, Value) else g.shape(size)
    found = g.tensor(value, _result(g))
    return found if not isinstance(size, Value) and not size else g.op("Expand", found, sizes)


@translation("zeros", "zeros_like", "ones", "ones_like", "empty", "empty_like", "new_zeros")
def filled(g: GraphBuilder, size: Any, *_: Any, **options: Any) -> str:
    return full(g, size, int(g.output_op.startswith("ones")))


@translation("arange")
def arange(g: GraphBuilder, *limits: Any, **options: Any) -> str:
    start, end, step = (0, limits[0], 1) if len(limits) == 1 else (*limits, 1)[:3]
    kind = _result(g)
    return g.op("Range", *(g.tensor(each, kind) for each in (start, end, step)))


@translation("sym_size")
def sym_size(g: GraphBuilder, x: Value, dim: int) -> str:
    return g.op("Gather", g.op("Shape", x), g.scalar(dim, int64), axis=0)
