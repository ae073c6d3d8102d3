"""Convolutions whose weights are fake-quantized in training."""

from __future__ import annotations

from typing import Any

from rushlight.ao.nn.intrinsic import _FusedModule
from rushlight.ao.nn.qat.modules.weights import check_float_module, check_qconfig, detached
from rushlight.core.tensor import Tensor
from rushlight.nn.modules import conv as floats
from rushlight.nn.modules.module import Module

__all__ = ["Conv1d", "Conv2d", "Conv3d"]


class _ConvNd(floats._Convolution):
    """A convolution whose weight `weight_fake_quant` rounds; `qconfig.weight` creates that module."""

    _FLOAT_MODULE: type
    _FLOAT_CONV_MODULE: type

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1, bias: bool = True, padding_mode: str = "zeros", qconfig: Any = None, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype
        )
        self.qconfig = check_qconfig(qconfig)
        self.weight_fake_quant = qconfig.weight(factory_kwargs={"device": device, "dtype": dtype})

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight_fake_quant(self.weight), self.bias)

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> _ConvNd:
        """Create the layer from a float one with a qconfig, over the same parameters."""
        check_float_module(cls, mod, cls._FLOAT_MODULE)
        inner = mod[0] if isinstance(mod, _FusedModule) else mod
        made = cls(
            inner.in_channels, inner.out_channels, inner.kernel_size, inner.stride, inner.padding, inner.dilation,
            inner.groups, inner.bias is not None, inner.padding_mode, qconfig=inner.qconfig,
        )  # fmt: skip
        made.weight, made.bias = inner.weight, inner.bias
        return made

    def to_float(self) -> Module:
        """Return a float layer over the same parameters."""
        made = self._FLOAT_CONV_MODULE(
            self.in_channels, self.out_channels, self.kernel_size, self.stride, self.padding, self.dilation, self.groups,
            self.bias is not None, self.padding_mode,
        )  # fmt: skip
        made.weight, made.bias = detached(self.weight), detached(self.bias)
        return made


class Conv1d(_ConvNd, floats.Conv1d):
    """`nn.Conv1d`."""

    _FLOAT_MODULE = _FLOAT_CONV_MODULE = floats.Conv1d


class Conv2d(_ConvNd, floats.Conv2d):
    """`nn.Conv2d`."""

    _FLOAT_MODULE = _FLOAT_CONV_MODULE = floats.Conv2d


class Conv3d(_ConvNd, floats.Conv3d):
    """`nn.Conv3d`."""

    _FLOAT_MODULE = _FLOAT_CONV_MODULE = floats.Conv3d
