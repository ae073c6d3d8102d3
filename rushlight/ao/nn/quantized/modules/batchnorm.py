"""Batch normalisation of quantized tensors, by stored statistics."""

from __future__ import annotations

from typing import Any

from rushlight.ao.nn.intrinsic import BNReLU2d, BNReLU3d
from rushlight.ao.nn.quantized.modules.activation import register_scale
from rushlight.ao.nn.quantized.modules.utils import inner_of
from rushlight.core.tensor import Tensor
from rushlight.nn.modules.batchnorm import _BatchNorm as _FloatBatchNorm
from rushlight.nn.modules.module import Module
from rushlight.ops.packet import namespaces

__all__ = ["BatchNorm2d", "BatchNorm3d"]

quantized = namespaces.namespace("quantized")


class _BatchNorm(_FloatBatchNorm):
    """The scale and zero point of the results are buffers."""

    _NNI_BN_RELU_MODULE: type

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(num_features, eps, momentum, True, True, device=device, dtype=dtype)
        register_scale(self, 1.0, 0, device, dtype)

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> _BatchNorm:
        """Create the layer from a float one with an observer."""
        return cls.from_reference(inner_of(mod), *mod.activation_post_process.calculate_qparams())

    @classmethod
    def from_reference(cls, bn: Module, output_scale: Tensor, output_zero_point: Tensor) -> _BatchNorm:
        """Create the layer from a float one and a scale."""
        made = cls(bn.num_features, bn.eps)
        for name in ("weight", "bias", "running_mean", "running_var"):
            setattr(made, name, getattr(bn, name))
        made.scale, made.zero_point = output_scale, output_zero_point
        return made


class BatchNorm2d(_BatchNorm):
    """For (batch, channels, height, width)."""

    _NNI_BN_RELU_MODULE = BNReLU2d

    def _get_name(self) -> str:
        return "QuantizedBatchNorm2d"

    def _check_input_dim(self, input):
        if len(input.shape) != 4:
            raise ValueError("Input shape must be `(N, C, H, W)`!")

    def forward(self, input: Tensor) -> Tensor:
        return quantized.batch_norm2d(
            input,
            self.weight,
            self.bias,
            self.running_mean,
            self.running_var,
            self.eps,
            float(self.scale),
            int(self.zero_point),
        )


class BatchNorm3d(_BatchNorm):
    """For (batch, channels, depth, height, width)."""

    _NNI_BN_RELU_MODULE = BNReLU3d

    def _get_name(self) -> str:
        return "QuantizedBatchNorm3d"

    def _check_input_dim(self, input):
        if len(input.shape) != 5:
            raise ValueError("Input shape must be `(N, C, D, H, W)`!")

    def forward(self, input: Tensor) -> Tensor:
        return quantized.batch_norm3d(
            input,
            self.weight,
            self.bias,
            self.running_mean,
            self.running_var,
            self.eps,
            float(self.scale),
            int(self.zero_point),
        )
