"""Primitives for complex numbers: their parts as real views, conjugates, directions and angles."""

from __future__ import annotations

from rushlight.ops.registry import define_inplace, define_primitives

define_primitives("""
view_as_real(Tensor(a) self) -> Tensor(a)
view_as_complex(Tensor(a) self) -> Tensor(a)
conj_physical(Tensor self) -> Tensor
sgn(Tensor self) -> Tensor
angle(Tensor self) -> Tensor
""")
define_inplace(("conj_physical", "sgn"))
