"""Convolution and transposed convolution layers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rushlight.core.lazy_module import lazy_names
from rushlight.core.tensor import Tensor
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.creation import new_parameter
from rushlight.nn.functional.common import as_tuple
from rushlight.nn.modules.module import Module

Sizes = int | Sequence[int]
PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """The base of convolutions. `dims` is the number of spatial dimensions; `transposed` makes it the adjoint."""

    dims: int
    transposed: bool

    def _set_up(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes,
        padding: Sizes | str,
        dilation: Sizes,
        output_padding: Sizes,
        groups: int,
        bias: bool,
        padding_mode: str,
        device,
        dtype,
    ) -> None:
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = as_tuple(kernel_size, self.dims)
        self.stride = as_tuple(stride, self.dims)
        self.padding = padding if isinstance(padding, str) else as_tuple(padding, self.dims)
        self.dilation = as_tuple(dilation, self.dims)
        self.output_padding = as_tuple(output_padding, self.dims)
        self.groups = groups
        self.padding_mode = padding_mode
        self._check()
        lead = [in_channels, out_channels // groups] if self.transposed else [out_channels, in_channels // groups]
        self.weight = new_parameter([*lead, *self.kernel_size], device, dtype)
        self.register_parameter("bias", new_parameter([out_channels], device, dtype) if bias else None)
        self.reset_parameters()

    def _check(self) -> None:
        if self.groups <= 0:
            raise ValueError("groups must be a positive integer")
        if self.in_channels % self.groups:
            raise ValueError("in_channels must be divisible by groups")
        if self.out_channels % self.groups:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(self.padding, str):
            if self.padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {self.padding!r}, should be one of ('valid', 'same')")
            if self.padding == "same" and any(step != 1 for step in self.stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if self.padding_mode not in PADDING_MODES:
            raise ValueError(f"padding_mode must be one of {PADDING_MODES}, but got padding_mode='{self.padding_mode}'")
        if self.transposed and self.padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')

    def reset_parameters(self) -> None:
        """Uniform numbers within 1 / sqrt(fan in)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in = self.weight.shape[1] * math.prod(self.kernel_size)
            if fan_in:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def _border(self) -> list[int]:
        """Return the padding in the form of F.pad."""
        if self.padding == "valid":
            return [0] * (2 * self.dims)
        if self.padding == "same":
            totals = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
            return [side for total in reversed(totals) for side in (total // 2, total - total // 2)]
        return [side for amount in reversed(self.padding) for side in (amount, amount)]

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * self.dims:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * self.dims:
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * self.dims:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        return text + (f", padding_mode={self.padding_mode}" if self.padding_mode != "zeros" else "")


class _Convolution(_ConvNd):
    transposed = False

    def __init__(
        self,
        in_channels: int,
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
        super().__init__()
        self._set_up(
            in_channels, out_channels, kernel_size, stride, padding, dilation, 0, groups, bias, padding_mode,
            device, dtype,
        )  # fmt: skip

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        convolve = (F.conv1d, F.conv2d, F.conv3d)[self.dims - 1]
        padding = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._border(), mode=self.padding_mode), 0
        return convolve(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class Conv1d(_Convolution):
    """(N, in, L) to (N, out, L'): cross-correlation with `weight` (out, in / groups, kernel).

    Args:
        in_channels (int): the channels of the input.
        out_channels (int): the channels of the result.
        kernel_size (Sizes): the size of the kernel.
        stride (Sizes): the step between positions of the kernel.
        padding (Sizes | str): the padding on each side, or "valid" or "same".
        dilation (Sizes): the distance between elements of the kernel.
        groups (int): the number of groups of channels; each group has its own kernels.
        bias (bool): whether the layer has a learned bias.
        padding_mode (str): "zeros", "reflect", "replicate" or "circular".
        device: the device of the parameters.
        dtype: the dtype of the parameters.

    Example:
        >>> torch.nn.Conv1d(1, 2, 2)(torch.ones(1, 1, 4)).shape
        torch.Size([1, 2, 3])
    """

    dims = 1


class Conv2d(_Convolution):
    """(N, in, H, W) to (N, out, H', W'): cross-correlation with `weight` (out, in / groups, height, width).

    Args:
        in_channels (int): the channels of the input.
        out_channels (int): the channels of the result.
        kernel_size (Sizes): the size of the kernel.
        stride (Sizes): the step between positions of the kernel.
        padding (Sizes | str): the padding on each side, or "valid" or "same".
        dilation (Sizes): the distance between elements of the kernel.
        groups (int): the number of groups of channels; each group has its own kernels.
        bias (bool): whether the layer has a learned bias.
        padding_mode (str): "zeros", "reflect", "replicate" or "circular".
        device: the device of the parameters.
        dtype: the dtype of the parameters.

    Example:
        >>> torch.nn.Conv2d(1, 2, 2)(torch.ones(1, 1, 4, 4)).shape
        torch.Size([1, 2, 3, 3])
    """

    dims = 2


class Conv3d(_Convolution):
    """(N, in, D, H, W) to (N, out, D', H', W'): cross-correlation with `weight` (out, in / groups, ...).

    Args:
        in_channels (int): the channels of the input.
        out_channels (int): the channels of the result.
        kernel_size (Sizes): the size of the kernel.
        stride (Sizes): the step between positions of the kernel.
        padding (Sizes | str): the padding on each side, or "valid" or "same".
        dilation (Sizes): the distance between elements of the kernel.
        groups (int): the number of groups of channels; each group has its own kernels.
        bias (bool): whether the layer has a learned bias.
        padding_mode (str): "zeros", "reflect", "replicate" or "circular".
        device: the device of the parameters.
        dtype: the dtype of the parameters.

    Example:
        >>> torch.nn.Conv3d(1, 2, 2)(torch.ones(1, 1, 4, 4, 4)).shape
        torch.Size([1, 2, 3, 3, 3])
    """

    dims = 3


class _TransposedConvolution(_ConvNd):
    transposed = True

    def __init__(
        self,
        in_channels: int,
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
        super().__init__()
        self._set_up(
            in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding, groups, bias,
            padding_mode, device, dtype,
        )  # fmt: skip

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        convolve = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[self.dims - 1]
        extra = self.output_padding if output_size is None else self._output_padding(input, list(output_size))
        return convolve(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)

    def _output_padding(self, input: Tensor, output_size: list[int]) -> list[int]:
        """Return the output padding that gives `output_size`."""
        if len(output_size) == input.dim():
            output_size = output_size[-self.dims :]
        if len(output_size) != self.dims:
            raise ValueError(
                f"ConvTranspose{self.dims}D: for {input.dim()}D input, output_size must have {self.dims} "
                f"or {input.dim()} elements (got {len(output_size)})"
            )
        smallest = [
            (size - 1) * step - 2 * border + gap * (width - 1) + 1
            for size, step, border, gap, width in zip(
                input.shape[-self.dims :], self.stride, self.padding, self.dilation, self.kernel_size, strict=True
            )
        ]
        largest = [size + step - 1 for size, step in zip(smallest, self.stride, strict=True)]
        if any(not low <= size <= high for low, size, high in zip(smallest, output_size, largest, strict=True)):
            raise ValueError(
                f"requested an output size of {output_size}, but valid sizes range from {smallest} to {largest} "
                f"(for an input of {list(input.shape[2:])})"
            )
        return [size - low for size, low in zip(output_size, smallest, strict=True)]


class ConvTranspose1d(_TransposedConvolution):
    """(N, in, L) to (N, out, L'): the adjoint of Conv1d, with `weight` (in, out / groups, kernel).

    Args:
        in_channels (int): the channels of the input.
        out_channels (int): the channels of the result.
        kernel_size (Sizes): the size of the kernel.
        stride (Sizes): the step between positions of the kernel.
        padding (Sizes): the padding on each side.
        output_padding (Sizes): extra size at the end of each dimension of the result.
        groups (int): the number of groups of channels; each group has its own kernels.
        bias (bool): whether the layer has a learned bias.
        dilation (Sizes): the distance between elements of the kernel.
        padding_mode (str): "zeros", "reflect", "replicate" or "circular".
        device: the device of the parameters.
        dtype: the dtype of the parameters.

    Example:
        >>> torch.nn.ConvTranspose1d(1, 2, 2)(torch.ones(1, 1, 4)).shape
        torch.Size([1, 2, 5])
    """

    dims = 1


class ConvTranspose2d(_TransposedConvolution):
    """(N, in, H, W) to (N, out, H', W'): the adjoint of Conv2d, with `weight` (in, out / groups, height, width).

    Args:
        in_channels (int): the channels of the input.
        out_channels (int): the channels of the result.
        kernel_size (Sizes): the size of the kernel.
        stride (Sizes): the step between positions of the kernel.
        padding (Sizes): the padding on each side.
        output_padding (Sizes): extra size at the end of each dimension of the result.
        groups (int): the number of groups of channels; each group has its own kernels.
        bias (bool): whether the layer has a learned bias.
        dilation (Sizes): the distance between elements of the kernel.
        padding_mode (str): "zeros", "reflect", "replicate" or "circular".
        device: the device of the parameters.
        dtype: the dtype of the parameters.

    Example:
        >>> torch.nn.ConvTranspose2d(1, 2, 2)(torch.ones(1, 1, 4, 4)).shape
        torch.Size([1, 2, 5, 5])
    """

    dims = 2


class ConvTranspose3d(_TransposedConvolution):
    """(N, in, D, H, W) to (N, out, D', H', W'): the adjoint of Conv3d, with `weight` (in, out / groups, ...).

    Args:
        in_channels (int): the channels of the input.
        out_channels (int): the channels of the result.
        kernel_size (Sizes): the size of the kernel.
        stride (Sizes): the step between positions of the kernel.
        padding (Sizes): the padding on each side.
        output_padding (Sizes): extra size at the end of each dimension of the result.
        groups (int): the number of groups of channels; each group has its own kernels.
        bias (bool): whether the layer has a learned bias.
        dilation (Sizes): the distance between elements of the kernel.
        padding_mode (str): "zeros", "reflect", "replicate" or "circular".
        device: the device of the parameters.
        dtype: the dtype of the parameters.

    Example:
        >>> torch.nn.ConvTranspose3d(1, 2, 2)(torch.ones(1, 1, 4, 4, 4)).shape
        torch.Size([1, 2, 5, 5, 5])
    """

    dims = 3


# PyTorch's module of this name also has these classes; they are imported lazily.
__getattr__, __dir__ = lazy_names(globals(), {
    "rushlight.nn.modules.lazy_layers": (
        "LazyConv1d", "LazyConv2d", "LazyConv3d",
        "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d",
    ),
})  # fmt: skip
