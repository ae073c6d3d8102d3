"""Layers that infer their number of inputs from the first input."""

from __future__ import annotations

from typing import Any

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.dtype import int64
from rushlight.core.tensor import Tensor
from rushlight.nn.creation import new_tensor
from rushlight.nn.modules.batchnorm import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    _NormBase,
)
from rushlight.nn.modules.conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    Sizes,
    _ConvNd,
    _Convolution,
    _TransposedConvolution,
)
from rushlight.nn.modules.lazy import LazyModuleMixin
from rushlight.nn.modules.linear import Linear
from rushlight.nn.parameter import UninitializedBuffer, UninitializedParameter


class LazyLinear(LazyModuleMixin, Linear):
    """Linear whose `in_features` is the last size of its first input.

    Args:
        out_features (int): the features of the result.
        bias (bool): whether the layer has a learned bias.
        device: the device of the parameters.
        dtype: the dtype of the parameters.

    Example:
        >>> torch.nn.LazyLinear(2)(torch.ones(4, 3)).shape
        torch.Size([4, 2])
    """

    cls_to_become = Linear

    def __init__(self, out_features: int, bias: bool = True, device=None, dtype=None) -> None:
        super().__init__(0, 0, False)
        self.out_features = out_features
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """(out_features, last size of `input`), filled as Linear fills them."""
        if self.has_uninitialized_params():
            with no_grad():
                self.in_features = input.shape[-1]
                self.weight.materialize((self.out_features, self.in_features))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                self.reset_parameters()
        if self.in_features == 0:
            self.in_features = self.weight.shape[-1]


class _LazyConvNd(LazyModuleMixin):
    """Convolution whose `in_channels` is the number of channels of its first input."""

    def _forget_sizes(self, out_channels: int, bias: bool, device, dtype) -> None:
        self.out_channels = out_channels
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self: Any, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Shapes by the channels of `input`; ValueError unless `groups` divides these."""
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._channels(input)
        if self.in_channels % self.groups:
            raise ValueError("in_channels must be divisible by groups")
        inputs, outputs = self.in_channels, self.out_channels
        lead = (inputs, outputs // self.groups) if self.transposed else (outputs, inputs // self.groups)
        self.weight.materialize((*lead, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((outputs,))
        self.reset_parameters()

    def _channels(self: Any, input: Tensor) -> int:
        unbatched = self.dims + 1
        if input.dim() not in (unbatched, unbatched + 1):
            raise RuntimeError(
                f"Expected {unbatched}D (unbatched) or {unbatched + 1}D (batched) input to {self._get_name()}, "
                f"but got input of size: {input.shape}"
            )
        return input.shape[-unbatched]


class _LazyConvolution(_LazyConvNd, _Convolution):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device=None,
        dtype=None,
    ) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        self._forget_sizes(out_channels, bias, device, dtype)


class _LazyTransposedConvolution(_LazyConvNd, _TransposedConvolution):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Sizes = 1,
        padding_mode: str = "zeros",
        device=None,
        dtype=None,
    ) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode)
        self._forget_sizes(out_channels, bias, device, dtype)


class _LazyNorm(LazyModuleMixin, _NormBase):
    """Normalisation whose `num_features` is size 1 of its first input."""

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device=None,
        dtype=None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            self.bias = UninitializedParameter(device=device, dtype=dtype) if bias else None
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = new_tensor([], device, int64, 0)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Materialize a weight, bias, mean and variance for each channel."""
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        for value in (self.weight, self.bias, self.running_mean, self.running_var):
            if value is not None:
                value.materialize((self.num_features,))
        self.reset_parameters()


def _define(name: str, lazy: type, ordinary: type[_ConvNd | _NormBase]) -> type:
    summary = f"{ordinary.__name__} that learns its number of input channels from its first input."
    return type(name, (lazy, ordinary), {"__doc__": summary, "__module__": __name__, "cls_to_become": ordinary})


LazyConv1d = _define("LazyConv1d", _LazyConvolution, Conv1d)
LazyConv2d = _define("LazyConv2d", _LazyConvolution, Conv2d)
LazyConv3d = _define("LazyConv3d", _LazyConvolution, Conv3d)
LazyConvTranspose1d = _define("LazyConvTranspose1d", _LazyTransposedConvolution, ConvTranspose1d)
LazyConvTranspose2d = _define("LazyConvTranspose2d", _LazyTransposedConvolution, ConvTranspose2d)
LazyConvTranspose3d = _define("LazyConvTranspose3d", _LazyTransposedConvolution, ConvTranspose3d)
LazyBatchNorm1d = _define("LazyBatchNorm1d", _LazyNorm, BatchNorm1d)
LazyBatchNorm2d = _define("LazyBatchNorm2d", _LazyNorm, BatchNorm2d)
LazyBatchNorm3d = _define("LazyBatchNorm3d", _LazyNorm, BatchNorm3d)
LazyInstanceNorm1d = _define("LazyInstanceNorm1d", _LazyNorm, InstanceNorm1d)
LazyInstanceNorm2d = _define("LazyInstanceNorm2d", _LazyNorm, InstanceNorm2d)
LazyInstanceNorm3d = _define("LazyInstanceNorm3d", _LazyNorm, InstanceNorm3d)
