"""Pack weights of recurrent layers for their operators."""

from __future__ import annotations

from typing import Any

from rushlight.ao.nn.quantized.dynamic.modules.linear import dynamic_observer
from rushlight.ao.nn.quantized.modules.utils import _quantize_weight
from rushlight.core.dtype import dtype, float32, qint8
from rushlight.core.tensor import Tensor
from rushlight.nn.modules.module import Module
from rushlight.ops.packet import namespaces
from rushlight.quantized.functions import quantize_per_tensor

aten, quantized = namespaces.namespace("aten"), namespaces.namespace("quantized")


def pack_weight_bias(qweight: Tensor, bias: Tensor | None, dtype: dtype) -> Any:
    """Return a packed linear layer: from a qint8 weight, or a float32 one that is rounded to float16."""
    packing = quantized.linear_prepack if dtype is qint8 else quantized.linear_prepack_fp16
    return packing(qweight, bias)


def placeholder(rows: int, columns: int, kind: dtype, scale: float) -> Tensor:
    """Return a random weight, to be replaced by a state or a float layer's weight."""
    made = aten.randn.default([rows, columns], dtype=float32)
    return quantize_per_tensor(made, scale, 0, qint8) if kind is qint8 else made


def as_quantized(mod: Module, weight: Tensor, kind: dtype) -> Tensor:
    """Return a float layer's weight quantized to qint8 by its qconfig's observer; float32 for float16."""
    if kind is not qint8:
        return weight.float()
    observer = dynamic_observer(mod)
    observer(weight)
    return _quantize_weight(weight.float(), observer)


def taken_from(state_dict: dict[str, Any], key: str) -> Any:
    """Return packed weights from a state, also from that of a checkpoint or scripted code."""
    value = state_dict.pop(key)
    return getattr(value, "held", value)
