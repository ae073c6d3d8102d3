"""Layer, group and instance normalisation of quantized tensors; the results' scale and zero point are buffers."""

from __future__ import annotations

from typing import Any

from rushlight.ao.nn.quantized.modules.activation import _scale_of, register_scale
from rushlight.core.tensor import Tensor
from rushlight.nn import modules as nn
from rushlight.nn.modules.module import Module
from rushlight.ops.packet import namespaces

__all__ = ["GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LayerNorm"]

quantized = namespaces.namespace("quantized")


class LayerNorm(nn.LayerNorm):
    """`layer_norm`."""

    def __init__(
        self, normalized_shape: Any, weight: Tensor | None, bias: Tensor | None, scale: float, zero_point: int,
        eps: float = 1e-5, elementwise_affine: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(normalized_shape, eps=eps, elementwise_affine=elementwise_affine, device=device, dtype=dtype)
        self.weight, self.bias = weight, bias
        register_scale(self, scale, zero_point, device, dtype)

    def forward(self, input):
        return quantized.layer_norm(
            input, self.normalized_shape, self.weight, self.bias, self.eps, float(self.scale), int(self.zero_point)
        )

    def _get_name(self) -> str:
        return "QuantizedLayerNorm"

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> LayerNorm:
        """Create the layer from a float one with an observer."""
        return cls.from_reference(mod, *_scale_of(mod))

    @classmethod
    def from_reference(cls, mod: Module, scale: float, zero_point: int) -> LayerNorm:
        """Create the layer from a float one and a scale."""
        return cls(mod.normalized_shape, mod.weight, mod.bias, float(scale), int(zero_point), mod.eps, mod.elementwise_affine)


class GroupNorm(nn.GroupNorm):
    """`group_norm`."""

    def __init__(
        self, num_groups: int, num_channels: int, weight: Tensor | None, bias: Tensor | None, scale: float, zero_point: int,
        eps: float = 1e-5, affine: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(num_groups, num_channels, eps, affine, device=device, dtype=dtype)
        self.weight, self.bias = weight, bias
        register_scale(self, scale, zero_point, device, dtype)

    def forward(self, input):
        return quantized.group_norm(
            input, self.num_groups, self.weight, self.bias, self.eps, float(self.scale), int(self.zero_point)
        )

    def _get_name(self) -> str:
        return "QuantizedGroupNorm"

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> GroupNorm:
        """Create the layer from a float one with an observer."""
        return cls(mod.num_groups, mod.num_channels, mod.weight, mod.bias, *_scale_of(mod), mod.eps, mod.affine)


class _InstanceNorm:
    """The base for all ranks, which precedes the float class among the bases."""

    def __init__(
        self, num_features: int, weight: Tensor | None, bias: Tensor | None, scale: float, zero_point: int, eps: float = 1e-5,
        momentum: float = 0.1, affine: bool = False, track_running_stats: bool = False, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device=device, dtype=dtype)
        self.weight, self.bias = weight, bias
        register_scale(self, scale, zero_point, device, dtype)

    def forward(self, input):
        return quantized.instance_norm(input, self.weight, self.bias, self.eps, float(self.scale), int(self.zero_point))

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}"

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> Module:
        """Create the layer from a float one with an observer."""
        return cls.from_reference(mod, *_scale_of(mod))

    @classmethod
    def from_reference(cls, mod: Module, scale: float, zero_point: int) -> Module:
        """Create the layer from a float one and a scale."""
        return cls(mod.num_features, mod.weight, mod.bias, float(scale), int(zero_point), mod.eps, affine=mod.affine)


class InstanceNorm1d(_InstanceNorm, nn.InstanceNorm1d):
    """`instance_norm` of (batch, channels, length)."""


class InstanceNorm2d(_InstanceNorm, nn.InstanceNorm2d):
    """`instance_norm` of (batch, channels, height, width)."""


class InstanceNorm3d(_InstanceNorm, nn.InstanceNorm3d):
    """`instance_norm` of (batch, channels, depth, height, width)."""
