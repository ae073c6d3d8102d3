"""Primitives of signs, exponents, neighbouring floats, integer arithmetic, and minima that skip NaN."""

from __future__ import annotations

from rushlight.ops.registry import define_inplace, define_primitives

FLOATING = """
copysign.Tensor(Tensor self, Tensor other) -> Tensor
nextafter(Tensor self, Tensor other) -> Tensor
fmax(Tensor self, Tensor other) -> Tensor
fmin(Tensor self, Tensor other) -> Tensor
frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)
signbit(Tensor self) -> Tensor
"""

INTEGER = """
gcd(Tensor self, Tensor other) -> Tensor
lcm(Tensor self, Tensor other) -> Tensor
bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor
bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor
"""

define_primitives(FLOATING)
define_primitives(INTEGER)
define_inplace(("copysign.Tensor", "nextafter"))
define_inplace(line.partition("(")[0] for line in INTEGER.split("\n") if line)
