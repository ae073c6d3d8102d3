"""Meta rules of the circular and hyperbolic functions: the floating type of the operands, broadcast."""

from __future__ import annotations

from rushlight.ops.meta.common import pointwise
from rushlight.ops.promotion import float_type, result_type
from rushlight.ops.registry import meta


@meta("tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh")
def unary(self):
    return pointwise(float_type(self.dtype), self)


@meta("atan2", "hypot")
def binary(self, other):
    return pointwise(float_type(result_type(self, other)), self, other)
