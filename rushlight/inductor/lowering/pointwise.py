"""Lowering of elementwise operators. The tables map them to functions of `rl::` in the native headers."""

from __future__ import annotations

from rushlight.core.dtype import bfloat16, bool_, dtype, float16, float32, uint8
from rushlight.core.strides import broadcast_shapes
from rushlight.core.symbolic import SymInt
from rushlight.inductor.lowering.builder import GraphBuilder, call, cast
from rushlight.inductor.lowering.registry import lowering
from rushlight.inductor.tensor_box import TensorBox
from rushlight.ops.promotion import float_type, rounded

SAME_TYPE = {
    "neg": "neg", "abs": "abs", "sign": "sign", "floor": "floor", "ceil": "ceil", "round": "round",
    "trunc": "trunc", "relu": "relu", "bitwise_not": "bitwise_not",
}  # fmt: skip
FLOAT_TYPE = {
    "exp": "exp", "expm1": "expm1", "log": "log", "log1p": "log1p", "log2": "log2", "sqrt": "sqrt", "rsqrt": "rsqrt",
    "reciprocal": "reciprocal", "sin": "sin", "cos": "cos", "tanh": "tanh", "erf": "erf", "sigmoid": "sigmoid",
    "tan": "tan", "asin": "asin", "acos": "acos", "atan": "atan", "sinh": "sinh", "cosh": "cosh", "asinh": "asinh",
    "acosh": "acosh", "atanh": "atanh", "erfc": "erfc", "lgamma": "lgamma",
}  # fmt: skip
PROMOTING = {
    "mul.Tensor": "mul", "maximum": "maximum", "minimum": "minimum",
    "bitwise_and.Tensor": "bitwise_and", "bitwise_or.Tensor": "bitwise_or", "bitwise_xor.Tensor": "bitwise_xor",
}  # fmt: skip
REMAINDERS = {"remainder.Tensor": "remainder", "fmod.Tensor": "fmod"}
COMPARISONS = {
    "eq.Tensor": "eq", "ne.Tensor": "ne", "lt.Tensor": "lt", "le.Tensor": "le", "gt.Tensor": "gt", "ge.Tensor": "ge",
}  # fmt: skip
LOGICAL = {"logical_and": "logical_and", "logical_or": "logical_or", "logical_xor": "logical_xor"}
_BOOLEAN_NAMES = {
    "bitwise_and": "logical_and", "bitwise_or": "logical_or", "bitwise_xor": "logical_xor", "bitwise_not": "logical_not",
    "mul": "logical_and", "add": "logical_or", "maximum": "logical_or", "minimum": "logical_and",
}  # fmt: skip
HALVES = (bfloat16, float16)
_INTEGER_IDENTITY = ("floor", "ceil", "round", "trunc")
_BOOLEAN_IDENTITY = (*_INTEGER_IDENTITY, "abs", "sign", "relu")


def _name_for(function: str, kind: dtype) -> str:
    """Return the function for type `kind`: booleans use logical functions instead of arithmetic."""
    return _BOOLEAN_NAMES.get(function, function) if kind is bool_ else function


def _register_all(table: dict[str, str], make) -> None:
    for name, function in table.items():
        lowering(name)(make(function))


def _make_same_type_rule(function: str):
    def rule(graph: GraphBuilder, self: TensorBox) -> TensorBox:
        if self.dtype.is_integral and function in (_BOOLEAN_IDENTITY if self.dtype is bool_ else _INTEGER_IDENTITY):
            return clone(graph, self)
        return graph.elementwise(_name_for(function, self.dtype), self.dtype, self.dtype, self)

    return rule


def _make_float_rule(function: str):
    def rule(graph: GraphBuilder, self: TensorBox) -> TensorBox:
        kind = float_type(self.dtype)
        return graph.elementwise(function, kind, kind, self)

    return rule


def _make_promoting_rule(function: str):
    def rule(graph: GraphBuilder, self, other) -> TensorBox:
        kind = graph.promote(self, other)
        return graph.elementwise(_name_for(function, kind), kind, kind, self, other)

    return rule


def _check_divisor(graph: GraphBuilder, other: object, kind: dtype) -> object:
    """Check a divisor for 0 if it is an integer tensor."""
    if not kind.is_integral or not isinstance(other, TensorBox):
        return other
    return graph.elementwise("nonzero_divisor", kind, kind, other)


def _make_remainder_rule(function: str):
    def rule(graph: GraphBuilder, self, other) -> TensorBox:
        kind = graph.promote(self, other)
        operands = [_round_scalar(operand, kind) for operand in (self, _check_divisor(graph, other, kind))]
        return graph.elementwise(function, kind, kind, *operands)

    return rule


def _round_scalar(operand: object, kind: dtype) -> object:
    """Round a number to half precision, as eager does, if the other operand is a half-precision tensor."""
    return rounded(operand, kind) if kind in HALVES and type(operand) in (int, float) else operand


def _round_to_dtype(graph: GraphBuilder, operand: object, kind: dtype) -> object:
    """Round a value to its dtype, because a fused value has more digits than its dtype holds."""
    if not isinstance(operand, TensorBox):
        return _round_scalar(operand, kind)
    stored = kind if kind in HALVES and operand.dtype.is_floating_point else operand.dtype
    if stored not in HALVES:
        return operand
    return graph.pointwise(operand.size, stored, lambda index: cast(cast(operand.value(index), float32), stored))


def _make_comparison_rule(function: str):
    def rule(graph: GraphBuilder, self, other) -> TensorBox:
        kind = graph.promote(self, other)
        if kind is bool_ and function not in ("eq", "ne"):
            kind = uint8  # compare as uint8: a vector of bools holds -1 for True, so True would be less than False
        return graph.elementwise(function, kind, bool_, _round_to_dtype(graph, self, kind), _round_to_dtype(graph, other, kind))

    return rule


def _make_logical_rule(function: str):
    def rule(graph: GraphBuilder, self, other) -> TensorBox:
        return graph.elementwise(function, bool_, bool_, self, other)

    return rule


_register_all(SAME_TYPE, _make_same_type_rule)
_register_all(FLOAT_TYPE, _make_float_rule)
_register_all(PROMOTING, _make_promoting_rule)
_register_all(REMAINDERS, _make_remainder_rule)
_register_all(COMPARISONS, _make_comparison_rule)
_register_all(LOGICAL, _make_logical_rule)


@lowering("logical_not")
def logical_not(graph, self):
    return graph.elementwise("logical_not", bool_, bool_, self)


@lowering("isnan")
def isnan(graph, self):
    if self.dtype.is_integral:
        return graph.elementwise("ne", self.dtype, bool_, self, self)
    return graph.elementwise("isnan", self.dtype, bool_, self)


@lowering("isinf")
def isinf(graph, self):
    if self.dtype.is_integral:
        return graph.elementwise("ne", self.dtype, bool_, self, self)
    return graph.elementwise("isinf", self.dtype, bool_, self)


def scaled(graph: GraphBuilder, other: object, alpha: object, kind: dtype) -> object:
    """Return `other * alpha`, computed as type `kind`."""
    if alpha == 1:
        return other
    if not isinstance(other, TensorBox):
        return other * alpha
    return graph.elementwise(_name_for("mul", kind), kind, kind, other, alpha)


@lowering("add.Tensor")
def add(graph, self, other, *, alpha=1):
    kind = graph.promote(self, other)
    operands = [_round_scalar(operand, kind) for operand in (self, other)]
    return graph.elementwise(_name_for("add", kind), kind, kind, operands[0], scaled(graph, operands[1], alpha, kind))


@lowering("sub.Tensor")
def sub(graph, self, other, *, alpha=1):
    kind = graph.promote(self, other)
    operands = [_round_scalar(operand, kind) for operand in (self, other)]
    return graph.elementwise("sub", kind, kind, operands[0], scaled(graph, operands[1], alpha, kind))


@lowering("div.Tensor")
def div(graph, self, other):
    kind = float_type(graph.promote(self, other))
    return graph.elementwise("div", kind, kind, self, other)


@lowering("div.Tensor_mode")
def div_mode(graph, self, other, *, rounding_mode):
    if rounding_mode is None:
        return div(graph, self, other)
    kind = graph.promote(self, other)
    other = _check_divisor(graph, other, kind)
    if rounding_mode == "floor":
        return graph.elementwise("floor_div", kind, kind, self, other)
    quotient = graph.elementwise("div", kind, kind, self, other)
    return quotient if kind.is_integral else graph.elementwise("trunc", kind, kind, quotient)


_SMALL_POWERS = (1, 2, 3, 4)
_ROOTS = {0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal"}


@lowering("pow.Tensor_Scalar", "pow.Tensor_Tensor", "pow.Scalar")
def power(graph, self, exponent):
    kind = graph.promote(self, exponent)
    if isinstance(self, TensorBox) and not isinstance(exponent, TensorBox | SymInt) and exponent in _SMALL_POWERS:
        return _repeated_product(graph, self, int(exponent), kind)
    root = _ROOTS.get(exponent) if isinstance(exponent, int | float) and kind.is_floating_point else None
    if root is not None:
        return graph.elementwise(root, kind, kind, self)
    return graph.elementwise("pow", kind, kind, _round_scalar(self, kind), _round_scalar(exponent, kind))


def _repeated_product(graph: GraphBuilder, self: TensorBox, exponent: int, kind) -> TensorBox:
    """Return the power by at most two multiplications, for exponents from 1 to 4."""
    def inner(index):
        base = cast(self.value(index), kind)
        if exponent == 1:
            return base
        square = call("mul", kind, base, base)
        if exponent == 2:
            return square
        return call("mul", kind, square, base if exponent == 3 else square)

    return graph.pointwise(self.size, kind, inner)


@lowering("where.self")
def where(graph, condition, self, other):
    kind = graph.promote(self, other)
    size = broadcast_shapes(*[box.size for box in (condition, self, other) if isinstance(box, TensorBox)])
    for operand in (condition, self, other):
        graph.prepare(operand, size)

    def inner(index):
        mask = graph.load(condition, index, size, bool_)
        return call("where", kind, mask, graph.load(self, index, size, kind), graph.load(other, index, size, kind))

    return graph.pointwise(size, kind, inner)


@lowering("_checked")
def checked(graph, self, holds, error, message):
    for operand in (self, holds):
        graph.prepare(operand, self.size)

    def inner(index):
        mask = graph.load(holds, index, self.size, bool_)
        return call("required", self.dtype, graph.load(self, index, self.size, self.dtype), mask)

    return graph.pointwise(self.size, self.dtype, inner)


@lowering("gelu")
def gelu(graph, self, *, approximate="none"):
    return graph.elementwise("gelu_erf" if approximate == "none" else "gelu_tanh", self.dtype, self.dtype, self)


@lowering("gelu_backward")
def gelu_backward(graph, grad_output, self, *, approximate="none"):
    slope = "gelu_erf_slope" if approximate == "none" else "gelu_tanh_slope"
    return graph.elementwise("mul", self.dtype, self.dtype, grad_output, graph.elementwise(slope, self.dtype, self.dtype, self))


@lowering("silu")
def silu(graph, self):
    return graph.elementwise("silu", float_type(self.dtype), float_type(self.dtype), self)


@lowering("threshold_backward")
def threshold_backward(graph, grad_output, self, threshold):
    keep = graph.elementwise("gt", self.dtype, bool_, self, threshold)
    return where(graph, keep, grad_output, 0)


@lowering("_to_copy")
def to_copy(graph, self, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False,
            memory_format=None):  # fmt: skip
    kind = dtype or self.dtype
    return graph.pointwise(self.size, kind, lambda index: cast(self.value(index), kind))


@lowering("clone")
def clone(graph, self, *, memory_format=None):
    return graph.pointwise(self.size, self.dtype, self.value)



def mul_boxes(graph: GraphBuilder, self: TensorBox, other: TensorBox) -> TensorBox:
    """Return the product of two boxes."""
    return _make_promoting_rule("mul")(graph, self, other)
