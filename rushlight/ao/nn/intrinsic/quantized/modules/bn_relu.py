"""Batch normalisation of quantized tensors with ReLU."""

from __future__ import annotations

from rushlight.ao.nn import intrinsic
from rushlight.ao.nn.quantized.modules import batchnorm
from rushlight.core.tensor import Tensor
from rushlight.ops.packet import namespaces

__all__ = ["BNReLU2d", "BNReLU3d"]

quantized = namespaces.namespace("quantized")


class BNReLU2d(batchnorm.BatchNorm2d):
    """(batch, channels, height, width)."""

    _FLOAT_MODULE = intrinsic.BNReLU2d

    def forward(self, input: Tensor) -> Tensor:
        if len(input.shape) != 4:
            raise ValueError("Input shape must be `(N, C, H, W)`!")
        return quantized.batch_norm2d_relu(
            input,
            self.weight,
            self.bias,
            self.running_mean,
            self.running_var,
            self.eps,
            float(self.scale),
            int(self.zero_point),
        )

    def _get_name(self) -> str:
        return "QuantizedBNReLU2d"


class BNReLU3d(batchnorm.BatchNorm3d):
    """(batch, channels, depth, height, width)."""

    _FLOAT_MODULE = intrinsic.BNReLU3d

    def forward(self, input: Tensor) -> Tensor:
        if len(input.shape) != 5:
            raise ValueError("Input shape must be `(N, C, D, H, W)`!")
        return quantized.batch_norm3d_relu(
            input,
            self.weight,
            self.bias,
            self.running_mean,
            self.running_var,
            self.eps,
            float(self.scale),
            int(self.zero_point),
        )

    def _get_name(self) -> str:
        return "QuantizedBNReLU3d"
