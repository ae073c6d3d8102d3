"""Meta rules of elementwise operators: broadcast sizes, strides that follow the operands, promoted dtypes."""

from __future__ import annotations

from rushlight.core.dtype import bool_, dtype
from rushlight.ops.meta.common import pointwise
from rushlight.ops.promotion import check_exponent, check_factor, check_int, float_type, result_type
from rushlight.ops.registry import meta

SAME_TYPE = "sign floor ceil round trunc bitwise_not".split()
FLOAT_TYPE = "exp expm1 log log1p log2 sqrt rsqrt reciprocal sin cos tanh erf sigmoid".split()
PROMOTING = """mul.Tensor remainder.Tensor fmod.Tensor maximum minimum bitwise_and.Tensor bitwise_or.Tensor
bitwise_xor.Tensor""".split()
PREDICATES = """eq.Tensor ne.Tensor lt.Tensor le.Tensor gt.Tensor ge.Tensor logical_and logical_or logical_xor logical_not isnan
isinf""".split()


def check_negatable(name: str, kind: dtype) -> None:
    """Raise RuntimeError for the negation or the relu of bools."""
    if kind is bool_ and name == "neg":
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the "
            "`~` or `logical_not()` operator instead."
        )
    if kind is bool_ and name == "relu":
        raise RuntimeError("Boolean inputs not supported for relu")


@meta(*SAME_TYPE)
def same_type(self):
    return pointwise(self.dtype, self)


@meta("neg")
def neg(self):
    check_negatable("neg", self.dtype)
    return same_type(self)


@meta("relu")
def relu(self):
    check_negatable("relu", self.dtype)
    return same_type(self)


@meta("abs")
def magnitude(self):
    return pointwise(self.dtype.to_real(), self)


@meta(*FLOAT_TYPE)
def in_float_type(self):
    return pointwise(float_type(self.dtype), self)


def check_approximate(approximate: str) -> None:
    """Raise RuntimeError for a word that names no form of gelu."""
    if approximate not in ("none", "tanh"):
        raise RuntimeError(f"approximate argument must be either none or tanh, got {approximate!r}")


@meta("gelu", "silu", "gelu_backward", "threshold_backward")
def activation(*operands, approximate="none"):
    check_approximate(approximate)
    return pointwise(result_type(*[each for each in operands if hasattr(each, "_impl")]), *operands)


@meta(*PROMOTING)
def promoting(*operands):
    _check_operands(operands)
    return pointwise(result_type(*operands), *operands)


@meta("add.Tensor", "sub.Tensor")
def scaled_sum(self, other, *, alpha=1):
    kind = result_type(self, other)
    check_factor("alpha", alpha, kind)
    _check_operands((self, other))
    return pointwise(kind, self, other)


@meta("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar")
def power(self, exponent):
    kind = result_type(self, exponent)
    if kind.is_integral:
        check_exponent(exponent, kind)
    _check_operands((self, exponent))
    return pointwise(kind, self, exponent)


def _check_operands(operands: tuple) -> None:
    """Raise OverflowError for an integer among the operands that no integer of 64 bits holds."""
    for operand in operands:
        if type(operand) is int:
            check_int(operand)


@meta(*PREDICATES)
def predicate(*operands):
    _check_operands(operands)
    return pointwise(bool_, *operands)


@meta("div.Tensor")
def div(self, other):
    return pointwise(float_type(result_type(self, other)), self, other)


@meta("div.Tensor_mode")
def div_mode(self, other, *, rounding_mode):
    kind = result_type(self, other)
    return pointwise(float_type(kind) if rounding_mode is None else kind, self, other)


@meta("where.self")
def where(condition, self, other):
    return pointwise(result_type(self, other), condition, self, other)
