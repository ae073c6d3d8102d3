"""Dropout in quantized models, which do not train: the identity."""

from __future__ import annotations

from rushlight.nn import modules as nn
from rushlight.nn.modules.module import Module

__all__ = ["Dropout"]


class Dropout(nn.Dropout):
    """Returns its input."""

    def forward(self, input):
        return input

    def _get_name(self) -> str:
        return "QuantizedDropout"

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> Dropout:
        """Create the layer from a float one."""
        return cls(mod.p, mod.inplace)

    @classmethod
    def from_reference(cls, mod: Module, scale: float, zero_point: int) -> Dropout:
        """Create the layer from a float one; it has no scale."""
        return cls(mod.p, mod.inplace)
