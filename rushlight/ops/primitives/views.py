"""Primitive views that reinterpret memory, beyond new sizes and strides."""

from __future__ import annotations

from rushlight.ops.registry import define_primitives

define_primitives("""
view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)
""")
