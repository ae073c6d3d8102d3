"""Layers that rearrange or resize images."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.core.tensor import Tensor
from rushlight.nn import functional as F
from rushlight.nn.modules.module import Module

Sizes = int | Sequence[int]


class PixelShuffle(Module):
    """(..., C * r * r, H, W) to (..., C, H * r, W * r).

    Args:
        upscale_factor (int): the factor by which height and width grow.

    Example:
        >>> torch.nn.PixelShuffle(2)(torch.ones(1, 4, 2, 2)).shape
        torch.Size([1, 1, 4, 4])
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """(..., C, H * r, W * r) to (..., C * r * r, H, W).

    Args:
        downscale_factor (int): the factor by which height and width shrink.

    Example:
        >>> torch.nn.PixelUnshuffle(2)(torch.ones(1, 1, 4, 4)).shape
        torch.Size([1, 4, 2, 2])
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Interleaves the channels of the groups.

    Args:
        groups (int): the number of groups of channels.

    Example:
        >>> torch.nn.ChannelShuffle(2)(torch.ones(1, 4, 1, 1)).shape
        torch.Size([1, 4, 1, 1])
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"


class Upsample(Module):
    """Resizes the dimensions after the channels to `size`, or by `scale_factor`.

    Args:
        size (Sizes | None): the output's size.
        scale_factor (float | Sequence[float] | None): the ratio of the output's size to the input's.
        mode (str): the interpolation method.
        align_corners (bool | None): whether the centres of the corner elements of input and output coincide.
        recompute_scale_factor (bool | None): whether to recompute the factor from the sizes.

    Example:
        >>> torch.nn.Upsample(scale_factor=2)(torch.tensor([[[1.0, 2.0]]]))
        tensor([[[1., 1., 2., 2.]]])
    """

    def __init__(
        self,
        size: Sizes | None = None,
        scale_factor: float | Sequence[float] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.size = size
        if isinstance(scale_factor, tuple):
            self.scale_factor = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )

    def extra_repr(self) -> str:
        target = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"
        return f"{target}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Upsample of images with nearest-neighbour interpolation.

    Args:
        size (Sizes | None): the output's size.
        scale_factor (float | Sequence[float] | None): the ratio of the output's size to the input's.

    Example:
        >>> torch.nn.UpsamplingNearest2d(scale_factor=2)(torch.ones(1, 1, 2, 2)).shape
        torch.Size([1, 1, 4, 4])
    """

    def __init__(self, size: Sizes | None = None, scale_factor: float | Sequence[float] | None = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Upsample of images with bilinear interpolation and aligned corners.

    Args:
        size (Sizes | None): the output's size.
        scale_factor (float | Sequence[float] | None): the ratio of the output's size to the input's.

    Example:
        >>> torch.nn.UpsamplingBilinear2d(scale_factor=2)(torch.ones(1, 1, 2, 2)).shape
        torch.Size([1, 1, 4, 4])
    """

    def __init__(self, size: Sizes | None = None, scale_factor: float | Sequence[float] | None = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


class Unfold(Module):
    """(N, C, H, W) to (N, C * kernel elements, blocks): each sliding block as a column.

    Args:
        kernel_size (Sizes): the size of the window.
        dilation (Sizes): the distance between elements of a window.
        padding (Sizes): the padding on each side.
        stride (Sizes): the step between windows.

    Example:
        >>> torch.nn.Unfold(2)(torch.ones(1, 1, 3, 3)).shape
        torch.Size([1, 4, 4])
    """

    def __init__(self, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"


class Fold(Module):
    """(N, C * kernel elements, blocks) to (N, C, H, W): overlapping blocks add up.

    Args:
        output_size (Sizes): the size of the result.
        kernel_size (Sizes): the size of the window.
        dilation (Sizes): the distance between elements of a window.
        padding (Sizes): the padding on each side.
        stride (Sizes): the step between windows.

    Example:
        >>> torch.nn.Fold((2, 2), 2)(torch.ones(1, 4, 1)).shape
        torch.Size([1, 1, 2, 2])
    """

    def __init__(
        self, output_size: Sizes, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, dilation={self.dilation}, "
            f"padding={self.padding}, stride={self.stride}"
        )
