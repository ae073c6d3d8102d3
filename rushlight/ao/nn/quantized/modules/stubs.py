"""The conversions between float and quantized tensors."""

from __future__ import annotations

from typing import Any

from rushlight.ao.nn.quantized.modules.activation import _scale_of
from rushlight.core.dtype import dtype, int64
from rushlight.core.tensor import Tensor
from rushlight.nn.modules.module import Module
from rushlight.ops.construct import tensor
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


class Quantize(Module):
    """Quantizes a float32 tensor; its scale and zero point are buffers."""

    scale: Tensor
    zero_point: Tensor

    def __init__(self, scale: float, zero_point: int, dtype: dtype, factory_kwargs: dict[str, Any] | None = None) -> None:
        super().__init__()
        device = (factory_kwargs or {}).get("device")
        self.register_buffer("scale", tensor([scale], device=device))
        self.register_buffer("zero_point", tensor([zero_point], dtype=int64, device=device))
        self.dtype = dtype

    def forward(self, X: Tensor) -> Tensor:  # noqa: N803  (torch's name)
        return aten.quantize_per_tensor(X, float(self.scale), int(self.zero_point), self.dtype)

    @staticmethod
    def from_float(mod: Module, use_precomputed_fake_quant: bool = False) -> Quantize:
        """Create the module from a QuantStub with an observer."""
        if not hasattr(mod, "activation_post_process"):
            raise AssertionError(f"Module {type(mod).__name__} must have activation_post_process attribute")
        return Quantize(*_scale_of(mod), mod.activation_post_process.dtype)

    def extra_repr(self) -> str:
        return f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}"


class DeQuantize(Module):
    """Dequantizes a tensor to float32."""

    def forward(self, Xq: Tensor) -> Tensor:  # noqa: N803  (torch's name)
        return Xq.dequantize()

    @staticmethod
    def from_float(mod: Module, use_precomputed_fake_quant: bool = False) -> DeQuantize:
        """Create the module from a DeQuantStub."""
        return DeQuantize()
