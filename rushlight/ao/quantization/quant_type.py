"""`torch.ao.quantization.quant_type`: the kinds of quantization."""

from __future__ import annotations

import enum

__all__ = ["QuantType"]


class QuantType(enum.IntEnum):
    """Dynamic, static, quantization-aware training, or weights only."""

    DYNAMIC = 0
    STATIC = 1
    QAT = 2
    WEIGHT_ONLY = 3
