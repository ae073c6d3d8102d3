"""Primitives that view memory in another way than by new sizes and strides."""

from __future__ import annotations

from rushlight.ops.registry import define_primitives

define_primitives("""
view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)
""")
