"""Meta rules of the operators on complex numbers."""

from __future__ import annotations

from rushlight.ops.meta.common import pointwise
from rushlight.ops.promotion import float_type
from rushlight.ops.registry import meta


@meta("conj_physical", "sgn")
def same_type(self):
    return pointwise(self.dtype, self)


@meta("angle")
def angle(self):
    return pointwise(float_type(self.dtype).to_real(), self)
