"""Rearranging images: pixel shuffles, im2col and col2im."""

from __future__ import annotations

import math

from rushlight.core.layout import contiguous_format
from rushlight.ops.composite.network.common import arange, aten, in_order_of, select_windows, spread, window_count
from rushlight.ops.registry import composite


@composite("pixel_shuffle(Tensor self, int upscale_factor) -> Tensor")
def pixel_shuffle(self, upscale_factor):
    """Rearrange (..., C * r * r, H, W) to (..., C, H * r, W * r), for r = upscale_factor."""
    factor = upscale_factor
    _check_image(self, "pixel_shuffle")
    if factor <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {factor}")
    *lead, channels, height, width = self.shape
    if channels % (factor * factor):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={channels} is not divisible by {factor * factor}"
        )
    parts = self.reshape([*lead, channels // factor**2, factor, factor, height, width])
    n = len(lead)
    woven = parts.permute([*range(n + 1), n + 3, n + 1, n + 4, n + 2])
    return in_order_of(self, woven.reshape([*lead, channels // factor**2, height * factor, width * factor]))


@composite("pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor")
def pixel_unshuffle(self, downscale_factor):
    """Rearrange (..., C, H * r, W * r) to (..., C * r * r, H, W), for r = downscale_factor."""
    factor = downscale_factor
    _check_image(self, "pixel_unshuffle")
    if factor <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {factor}")
    *lead, channels, height, width = self.shape
    if height % factor or width % factor:
        raise RuntimeError(
            f"pixel_unshuffle expects height and width to be divisible by downscale_factor, "
            f"but {height} x {width} is not divisible by {factor}"
        )
    parts = self.reshape([*lead, channels, height // factor, factor, width // factor, factor])
    n = len(lead)
    woven = parts.permute([*range(n + 1), n + 2, n + 4, n + 1, n + 3])
    return in_order_of(self, woven.reshape([*lead, channels * factor**2, height // factor, width // factor]))


def _check_image(x, name: str) -> None:
    if x.dim() < 3:
        raise RuntimeError(
            f"{name} expects input to have at least 3 dimensions, but got input with {x.dim()} dimension(s)"
        )


@composite("channel_shuffle(Tensor self, SymInt groups) -> Tensor")
def channel_shuffle(self, groups):
    """Interleave the channels (dimension 1) of `groups` groups."""
    if self.dim() <= 2:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(self.shape)}")
    batch, channels, *rest = self.shape
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    if channels % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {channels} channels and {groups} groups."
        )
    grouped = self.reshape([batch, groups, channels // groups, *rest])
    dealt = grouped.transpose(1, 2).clone(memory_format=contiguous_format)  # copies even for a single group
    return in_order_of(self, dealt.reshape([batch, channels, *rest]))


def _blocks(size, kernel, dilation, padding, stride) -> list[int]:
    for name, values in (("kernel size", kernel), ("stride", stride), ("dilation", dilation)):
        if min(values) <= 0:
            raise RuntimeError(f"{name} should be greater than zero, but got {values}")
    counts = [window_count(*each) for each in zip(size, kernel, stride, padding, dilation, strict=True)]
    if min(counts) < 1:
        raise RuntimeError(
            f"Given input with spatial size {list(size)}, kernel_size={kernel}, dilation={dilation}, "
            f"padding={padding}, calculated shape of the array of sliding blocks as {counts}, "
            "but its components must be at least one."
        )
    return counts


def _pairs(**values) -> list[list[int]]:
    return [spread(value, 2, name) for name, value in values.items()]


@composite("im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor")
def im2col(self, kernel_size, dilation, padding, stride):
    """Rearrange (N, C, H, W) to (N, C * kernel elements, windows): each window as a column."""
    if self.dim() not in (3, 4):
        raise RuntimeError(f"Expected 3D or 4D input tensor for im2col, but got {list(self.shape)}")
    x = self if self.dim() == 4 else self.unsqueeze(0)
    kernel, gaps, borders, steps = _pairs(kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)
    counts = _blocks(x.shape[2:], kernel, gaps, borders, steps)
    x = aten.constant_pad_nd.default(x, [borders[1], borders[1], borders[0], borders[0]], 0)
    for index in range(2):
        # The position within the window varies slowest in the result, so `offsets` go first.
        offsets = arange(x, kernel[index]) * gaps[index]
        x = select_windows(x, 2 + 2 * index, offsets, arange(x, counts[index]) * steps[index])
    columns = x.permute([0, 1, 2, 4, 3, 5]).reshape([*x.shape[:1], x.shape[1] * math.prod(kernel), math.prod(counts)])
    return columns if self.dim() == 4 else columns.squeeze(0)


@composite(
    "col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, "
    "int[2] stride) -> Tensor"
)
def col2im(self, output_size, kernel_size, dilation, padding, stride):
    """Return the adjoint of im2col: (N, C * kernel elements, windows) to (N, C, H, W), summing where windows overlap."""
    if self.dim() not in (2, 3):
        raise RuntimeError(f"Expected 2D or 3D input tensor for col2im, but got {list(self.shape)}")
    columns = self if self.dim() == 3 else self.unsqueeze(0)
    size, kernel, gaps, borders, steps = _pairs(
        output_size=output_size, kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride
    )
    counts = _blocks(size, kernel, gaps, borders, steps)
    _check_columns(columns, size, kernel, counts)
    height, width = (extent + 2 * border for extent, border in zip(size, borders, strict=True))
    rows, positions = (
        (arange(columns, kernel[i]) * gaps[i]).unsqueeze(1) + arange(columns, counts[i]) * steps[i] for i in range(2)
    )
    flat = rows.view([kernel[0], 1, counts[0], 1]) * width + positions.view([1, kernel[1], 1, counts[1]])
    batch, channels = columns.shape[0], columns.shape[1] // math.prod(kernel)
    canvas = columns.new_zeros([batch, channels, height * width])
    values = columns.reshape([batch, channels, math.prod(kernel) * math.prod(counts)])
    summed = aten.index_put.default(canvas, [None, None, flat.reshape([-1])], values, True).view(
        [batch, channels, height, width]
    )
    image = summed.narrow(2, borders[0], size[0]).narrow(3, borders[1], size[1]).contiguous()
    return image if self.dim() == 3 else image.squeeze(0)


def _check_columns(columns, size, kernel, counts) -> None:
    if columns.shape[1] % math.prod(kernel):
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, "
            f"but got input.size(1)={columns.shape[1]} and kernel_size={kernel}."
        )
    if columns.shape[2] != math.prod(counts):
        raise RuntimeError(
            f"Given output_size={size} and kernel_size={kernel}, expected size of input's dimension 2 to match the "
            f"calculated number of sliding blocks {counts[0]} * {counts[1]} = {math.prod(counts)}, "
            f"but got input.size(2)={columns.shape[2]}."
        )
