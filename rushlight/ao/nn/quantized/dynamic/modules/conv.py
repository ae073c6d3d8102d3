"""Convolutions on float tensors, which they quantize dynamically, with qint8 weights."""

from __future__ import annotations

from rushlight.ao.nn.quantized.modules import conv as static
from rushlight.ao.nn.quantized.modules.conv import _reverse_repeat_padding
from rushlight.core.tensor import Tensor
from rushlight.nn import functional as F
from rushlight.ops.packet import namespaces

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

quantized = namespaces.namespace("quantized")


class Conv1d(static.Conv1d):
    """(batch, channels, length)."""

    _NNIQAT_CONV_BN_MODULE = _NNI_CONV_RELU_MODULE = None

    def _get_name(self) -> str:
        return "DynamicQuantizedConv1d"

    def forward(self, input: Tensor, reduce_range: bool = True) -> Tensor:
        if len(input.shape) != 3:
            raise ValueError("Input shape must be `(N, C, L)`!")
        if self.padding_mode != "zeros":
            input = F.pad(input, _reverse_repeat_padding(self.padding), mode=self.padding_mode)
        return quantized.conv1d_dynamic(input, self._packed_params, reduce_range)


class Conv2d(static.Conv2d):
    """(batch, channels, height, width)."""

    _NNIQAT_CONV_BN_MODULE = _NNI_CONV_RELU_MODULE = None

    def _get_name(self) -> str:
        return "DynamicQuantizedConv2d"

    def forward(self, input: Tensor, reduce_range: bool = True) -> Tensor:
        if len(input.shape) != 4:
            raise ValueError("Input shape must be `(N, C, H, W)`!")
        if self.padding_mode != "zeros":
            input = F.pad(input, _reverse_repeat_padding(self.padding), mode=self.padding_mode)
        return quantized.conv2d_dynamic(input, self._packed_params, reduce_range)


class Conv3d(static.Conv3d):
    """(batch, channels, depth, height, width)."""

    _NNIQAT_CONV_BN_MODULE = _NNI_CONV_RELU_MODULE = None

    def _get_name(self) -> str:
        return "DynamicQuantizedConv3d"

    def forward(self, input: Tensor, reduce_range: bool = True) -> Tensor:
        if len(input.shape) != 5:
            raise ValueError("Input shape must be `(N, C, D, H, W)`!")
        return quantized.conv3d_dynamic(input, self._packed_params, reduce_range)


class ConvTranspose1d(static.ConvTranspose1d):
    """The adjoint: (batch, channels, length)."""

    def _get_name(self) -> str:
        return "DynamicQuantizedConvTranspose1d"

    def forward(self, input: Tensor, reduce_range: bool = True) -> Tensor:
        if len(input.shape) != 3:
            raise ValueError("Input shape must be `(N, C, L)`!")
        return quantized.conv_transpose1d_dynamic(input, self._packed_params, reduce_range)


class ConvTranspose2d(static.ConvTranspose2d):
    """The adjoint: (batch, channels, height, width)."""

    def _get_name(self) -> str:
        return "DynamicQuantizedConvTranspose2d"

    def forward(self, input: Tensor, reduce_range: bool = True) -> Tensor:
        if len(input.shape) != 4:
            raise ValueError("Input shape must be `(N, C, H, W)`!")
        return quantized.conv_transpose2d_dynamic(input, self._packed_params, reduce_range)


class ConvTranspose3d(static.ConvTranspose3d):
    """The adjoint: (batch, channels, depth, height, width)."""

    def _get_name(self) -> str:
        return "DynamicQuantizedConvTranspose3d"

    def forward(self, input: Tensor, reduce_range: bool = True) -> Tensor:
        if len(input.shape) != 5:
            raise ValueError("Input shape must be `(N, C, T, H, W)`!")
        return quantized.conv_transpose3d_dynamic(input, self._packed_params, reduce_range)
