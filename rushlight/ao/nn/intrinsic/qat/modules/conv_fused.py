"""Convolutions with batch normalisation, whose weights are fake-quantized in training as if both were already folded.

The weight is scaled by the running statistics before it is rounded; the result is scaled back, so that batch normalisation sees
the unscaled values. From "Quantizing deep convolutional networks for efficient inference" (https://arxiv.org/abs/1806.08342),
section 3.2.2.
"""

from __future__ import annotations

import math
from typing import Any

from rushlight.ao.nn import intrinsic
from rushlight.ao.nn.intrinsic import _FusedModule
from rushlight.ao.nn.intrinsic.qat.modules.batch_statistics import BatchStatistics
from rushlight.ao.nn.qat.modules import conv as qat
from rushlight.ao.nn.qat.modules.weights import check_float_module, check_qconfig, detached
from rushlight.core.tensor import Tensor
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.modules import batchnorm
from rushlight.nn.modules import conv as floats
from rushlight.nn.modules.activation import ReLU
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.nn.utils.fusion import fuse_conv_bn_weights
from rushlight.ops.packet import namespaces

__all__ = [
    "ConvBn1d", "ConvBn2d", "ConvBn3d", "ConvBnReLU1d", "ConvBnReLU2d", "ConvBnReLU3d", "ConvReLU1d", "ConvReLU2d",
    "ConvReLU3d", "freeze_bn_stats", "update_bn_stats",
]  # fmt: skip

aten = namespaces.namespace("aten")
_NORMS = {1: batchnorm.BatchNorm1d, 2: batchnorm.BatchNorm2d, 3: batchnorm.BatchNorm3d}
_FORMER_NAMES = {
    "bn.weight": "gamma", "bn.bias": "beta", "bn.running_mean": "running_mean", "bn.running_var": "running_var",
    "bn.num_batches_tracked": "num_batches_tracked",
}  # fmt: skip


class _ConvBnNd(BatchStatistics, floats._Convolution, _FusedModule):
    """`bn(conv(x))`, and relu of it where the class says so."""

    _version = 2
    _FLOAT_MODULE: type
    _FLOAT_CONV_MODULE: type
    _FUSED_FLOAT_MODULE: type | None = None

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1, bias: bool | None = None, padding_mode: str = "zeros", eps: float = 1e-5, momentum: float = 0.1,
        freeze_bn: bool = False, qconfig: Any = None,
    ) -> None:  # fmt: skip
        floats._Convolution.__init__(
            self, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, False, padding_mode
        )
        self.qconfig = check_qconfig(qconfig)
        self.freeze_bn = freeze_bn if self.training else True
        self.bn = _NORMS[self.dims](out_channels, eps, momentum, True, True)
        self.weight_fake_quant = qconfig.weight()
        self.register_parameter("bias", Parameter(aten.empty.memory_format([out_channels])) if bias else None)
        self.reset_bn_parameters()
        if self.training and not freeze_bn:
            self.update_bn_stats()
        else:
            self.freeze_bn_stats()

    def reset_bn_parameters(self) -> None:
        """Uniform scales, no offsets, and a bias within 1 / sqrt(fan in)."""
        self.bn.reset_running_stats()
        init.uniform_(self.bn.weight)
        init.zeros_(self.bn.bias)
        if self.bias is not None:
            bound = 1 / math.sqrt(self.weight.shape[1] * math.prod(self.kernel_size))
            init.uniform_(self.bias, -bound, bound)

    def _forward(self, input: Tensor) -> Tensor:
        factor = self.bn.weight / aten.sqrt.default(self.bn.running_var + self.bn.eps)
        channels = [-1, *(1,) * self.dims]
        weight = self.weight_fake_quant(self.weight * factor.reshape([-1, 1, *(1,) * self.dims]))
        # A bias of zeros instead of none: kernels may add in another order without a bias, and results must equal torch's.
        zeros = aten.zeros.default([self.out_channels], dtype=input.dtype, device=weight.device)
        result = self._conv_forward(input, weight, zeros) / factor.reshape(channels)
        if self.bias is not None:
            result = result + self.bias.reshape(channels)
        return self.bn(result)

    def forward(self, input: Tensor) -> Tensor:
        return self._forward(input)

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        version = local_metadata.get("version")
        if version is None or version == 1:
            for name, former in _FORMER_NAMES.items():
                if prefix + former in state_dict:
                    state_dict[prefix + name] = state_dict.pop(prefix + former)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> _ConvBnNd:
        """Create the layer from a fused float one with a qconfig, over the same parameters."""
        check_float_module(cls, mod, cls._FLOAT_MODULE)
        conv, bn = mod[0], mod[1]
        made = cls(
            conv.in_channels, conv.out_channels, conv.kernel_size, conv.stride, conv.padding, conv.dilation, conv.groups,
            conv.bias is not None, conv.padding_mode, bn.eps, bn.momentum, False, mod.qconfig,
        )  # fmt: skip
        made.weight, made.bias = conv.weight, conv.bias
        for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
            setattr(made.bn, name, getattr(bn, name))
        return made

    def to_float(self) -> Module:
        """Return a float convolution with batch normalisation folded into it, and a ReLU after it where this layer has one."""
        made = self._FLOAT_CONV_MODULE(
            self.in_channels, self.out_channels, self.kernel_size, self.stride, self.padding, self.dilation, self.groups,
            self.bias is not None, self.padding_mode,
        )  # fmt: skip
        bn = self.bn
        made.weight, made.bias = fuse_conv_bn_weights(
            detached(self.weight), detached(self.bias), bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
        )
        if self._FUSED_FLOAT_MODULE is not None:
            made = self._FUSED_FLOAT_MODULE(made, ReLU())
        made.train(self.training)
        return made


class ConvBn1d(_ConvBnNd, floats.Conv1d):
    """Conv1d, BatchNorm1d."""

    _FLOAT_MODULE, _FLOAT_CONV_MODULE = intrinsic.ConvBn1d, floats.Conv1d


class ConvBn2d(_ConvBnNd, floats.Conv2d):
    """Conv2d, BatchNorm2d."""

    _FLOAT_MODULE, _FLOAT_CONV_MODULE = intrinsic.ConvBn2d, floats.Conv2d


class ConvBn3d(_ConvBnNd, floats.Conv3d):
    """Conv3d, BatchNorm3d."""

    _FLOAT_MODULE, _FLOAT_CONV_MODULE = intrinsic.ConvBn3d, floats.Conv3d


class ConvBnReLU1d(ConvBn1d):
    """Conv1d, BatchNorm1d, ReLU."""

    _FLOAT_MODULE, _FUSED_FLOAT_MODULE = intrinsic.ConvBnReLU1d, intrinsic.ConvReLU1d

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(self._forward(input))


class ConvBnReLU2d(ConvBn2d):
    """Conv2d, BatchNorm2d, ReLU."""

    _FLOAT_MODULE, _FUSED_FLOAT_MODULE = intrinsic.ConvBnReLU2d, intrinsic.ConvReLU2d

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(self._forward(input))


class ConvBnReLU3d(ConvBn3d):
    """Conv3d, BatchNorm3d, ReLU."""

    _FLOAT_MODULE, _FUSED_FLOAT_MODULE = intrinsic.ConvBnReLU3d, intrinsic.ConvReLU3d

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(self._forward(input))


class _ConvReLU(_FusedModule):
    """The mixin of convolutions with a ReLU; it follows the convolution among their bases."""

    def to_float(self) -> Module:
        """Return a float convolution and a ReLU."""
        made = self._FLOAT_MODULE(super().to_float(), ReLU())
        made.train(self.training)
        return made


class ConvReLU1d(_ConvReLU, qat.Conv1d):
    """Conv1d, ReLU."""

    _FLOAT_MODULE = intrinsic.ConvReLU1d

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(self._conv_forward(input, self.weight_fake_quant(self.weight), self.bias))


class ConvReLU2d(_ConvReLU, qat.Conv2d):
    """Conv2d, ReLU."""

    _FLOAT_MODULE = intrinsic.ConvReLU2d

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(self._conv_forward(input, self.weight_fake_quant(self.weight), self.bias))


class ConvReLU3d(_ConvReLU, qat.Conv3d):
    """Conv3d, ReLU."""

    _FLOAT_MODULE = intrinsic.ConvReLU3d

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(self._conv_forward(input, self.weight_fake_quant(self.weight), self.bias))


def update_bn_stats(mod: Module) -> None:
    """Normalise by batches, if a module is a convolution with batch normalisation: `model.apply(update_bn_stats)`."""
    if isinstance(mod, _ConvBnNd):
        mod.update_bn_stats()


def freeze_bn_stats(mod: Module) -> None:
    """Normalise by the running statistics, if a module is a convolution with batch normalisation."""
    if isinstance(mod, _ConvBnNd):
        mod.freeze_bn_stats()
