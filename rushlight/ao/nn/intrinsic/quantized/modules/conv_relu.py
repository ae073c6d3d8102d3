"""Quantized convolutions with ReLU."""

from __future__ import annotations

from rushlight.ao.nn import intrinsic
from rushlight.ao.nn.intrinsic import qat
from rushlight.ao.nn.quantized.modules import conv
from rushlight.ao.nn.quantized.modules.conv import _reverse_repeat_padding
from rushlight.nn import functional as F
from rushlight.nn.modules.module import Module
from rushlight.ops.packet import namespaces

__all__ = ["ConvReLU1d", "ConvReLU2d", "ConvReLU3d"]

quantized = namespaces.namespace("quantized")


class ConvReLU1d(conv.Conv1d):
    """(batch, channels, length)."""

    _FLOAT_MODULE, _NNIQAT_CONV_BN_MODULE = intrinsic.ConvReLU1d, qat.ConvBnReLU1d

    def forward(self, input):
        if len(input.shape) != 3:
            raise ValueError("Input shape must be `(N, C, L)`!")
        if self.padding_mode != "zeros":
            input = F.pad(input, _reverse_repeat_padding(self.padding), mode=self.padding_mode)
        return quantized.conv1d_relu(input, self._packed_params, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedConvReLU1d"

    @classmethod
    def from_reference(cls, ref_qconv: Module, output_scale: float, output_zero_point: int) -> ConvReLU1d:
        """Create the layer from a reference module, which computes in floats with a quantized weight."""
        return super().from_reference(ref_qconv[0], output_scale, output_zero_point)


class ConvReLU2d(conv.Conv2d):
    """(batch, channels, height, width)."""

    _FLOAT_MODULE, _NNIQAT_CONV_BN_MODULE = intrinsic.ConvReLU2d, qat.ConvBnReLU2d

    def forward(self, input):
        if len(input.shape) != 4:
            raise ValueError("Input shape must be `(N, C, H, W)`!")
        if self.padding_mode != "zeros":
            input = F.pad(input, _reverse_repeat_padding(self.padding), mode=self.padding_mode)
        return quantized.conv2d_relu(input, self._packed_params, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedConvReLU2d"

    @classmethod
    def from_reference(cls, ref_qconv: Module, output_scale: float, output_zero_point: int) -> ConvReLU2d:
        """Create the layer from a reference module, which computes in floats with a quantized weight."""
        return super().from_reference(ref_qconv[0], output_scale, output_zero_point)


class ConvReLU3d(conv.Conv3d):
    """(batch, channels, depth, height, width)."""

    _FLOAT_MODULE, _NNIQAT_CONV_BN_MODULE = intrinsic.ConvReLU3d, qat.ConvBnReLU3d

    def forward(self, input):
        if len(input.shape) != 5:
            raise ValueError("Input shape must be `(N, C, D, H, W)`!")
        return quantized.conv3d_relu(input, self._packed_params, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedConvReLU3d"

    @classmethod
    def from_reference(cls, ref_qconv: Module, output_scale: float, output_zero_point: int) -> ConvReLU3d:
        """Create the layer from a reference module, which computes in floats with a quantized weight."""
        return super().from_reference(ref_qconv[0], output_scale, output_zero_point)
