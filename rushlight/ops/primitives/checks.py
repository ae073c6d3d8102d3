"""The primitive with which a graph checks, at run time, values that are unknown during capture."""

from __future__ import annotations

from rushlight.ops.registry import define_primitives

define_primitives("_checked(Tensor self, Tensor holds, str error, str message) -> Tensor")
