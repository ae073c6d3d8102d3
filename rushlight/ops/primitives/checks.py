"""The primitive by which a graph checks values that are not known while it is captured."""

from __future__ import annotations

from rushlight.ops.registry import define_primitives

define_primitives("_checked(Tensor self, Tensor holds, str error, str message) -> Tensor")
