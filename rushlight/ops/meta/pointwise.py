"""Meta rules of elementwise operators: broadcast sizes, strides that follow the operands, promoted dtypes."""

from __future__ import annotations

from rushlight.core.dtype import bool_
from rushlight.ops.meta.common import pointwise
from rushlight.ops.promotion import float_type, result_type
from rushlight.ops.registry import meta

SAME_TYPE = "neg sign floor ceil round trunc relu bitwise_not".split()
FLOAT_TYPE = "exp expm1 log log1p log2 sqrt rsqrt reciprocal sin cos tanh erf sigmoid".split()
PROMOTING = """add.Tensor sub.Tensor mul.Tensor remainder.Tensor fmod.Tensor pow.Tensor_Tensor pow.Tensor_Scalar pow.Scalar
maximum minimum bitwise_and.Tensor bitwise_or.Tensor bitwise_xor.Tensor""".split()
PREDICATES = """eq.Tensor ne.Tensor lt.Tensor le.Tensor gt.Tensor ge.Tensor logical_and logical_or logical_xor logical_not isnan
isinf""".split()


@meta(*SAME_TYPE)
def same_type(self):
    return pointwise(self.dtype, self)


@meta("abs")
def magnitude(self):
    return pointwise(self.dtype.to_real(), self)


@meta(*FLOAT_TYPE)
def in_float_type(self):
    return pointwise(float_type(self.dtype), self)


@meta("gelu", "silu", "gelu_backward", "threshold_backward")
def activation(*operands, approximate="none"):
    return pointwise(result_type(*[each for each in operands if hasattr(each, "_impl")]), *operands)


@meta(*PROMOTING)
def promoting(*operands, alpha=1):
    return pointwise(result_type(*operands), *operands)


@meta(*PREDICATES)
def predicate(*operands):
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
