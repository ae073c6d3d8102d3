"""Primitives of trigonometry: the circular and hyperbolic functions beyond `sin`, `cos` and `tanh`, and their inverses."""

from __future__ import annotations

from rushlight.ops.registry import define_inplace, define_primitives

UNARY = """
tan(Tensor self) -> Tensor
asin(Tensor self) -> Tensor
acos(Tensor self) -> Tensor
atan(Tensor self) -> Tensor
sinh(Tensor self) -> Tensor
cosh(Tensor self) -> Tensor
asinh(Tensor self) -> Tensor
acosh(Tensor self) -> Tensor
atanh(Tensor self) -> Tensor
"""

BINARY = """
atan2(Tensor self, Tensor other) -> Tensor
hypot(Tensor self, Tensor other) -> Tensor
"""

define_primitives(UNARY)
define_primitives(BINARY)
define_inplace(line.partition("(")[0] for line in (UNARY + BINARY).split("\n") if line)
