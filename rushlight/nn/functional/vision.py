"""Images and volumes: resizing, pixel shuffles, sliding blocks."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.core.tensor import Tensor
from rushlight.nn.functional.common import as_tuple, aten
from rushlight.nn.functional.pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from rushlight.ops.composite.network.upsampling import scaled_size

Sizes = int | Sequence[int]
_WEIGHTED = {"linear": (1, "upsample_linear1d"), "bilinear": (2, "upsample_bilinear2d"),
             "trilinear": (3, "upsample_trilinear3d"), "bicubic": (2, "upsample_bicubic2d")}  # fmt: skip
_ANTIALIASED = {"bilinear": "_upsample_bilinear2d_aa", "bicubic": "_upsample_bicubic2d_aa"}
_NEAREST = {"nearest": "upsample_nearest{}d", "nearest-exact": "_upsample_nearest_exact{}d"}


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(..., C * r * r, H, W) to (..., C, H * r, W * r) (Shi et al. 2016).

    Args:
        input (Tensor): the input.
        upscale_factor (int): the factor by which height and width grow.

    Example:
        >>> F.pixel_shuffle(torch.ones(1, 4, 2, 2), 2).shape
        torch.Size([1, 1, 4, 4])
    """
    return aten.pixel_shuffle(input, upscale_factor)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(..., C, H * r, W * r) to (..., C * r * r, H, W).

    Args:
        input (Tensor): the input.
        downscale_factor (int): the factor by which height and width shrink.

    Example:
        >>> F.pixel_unshuffle(torch.ones(1, 1, 4, 4), 2).shape
        torch.Size([1, 4, 2, 2])
    """
    return aten.pixel_unshuffle(input, downscale_factor)


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Interleave the channels of the groups (Zhang et al. 2017).

    Args:
        input (Tensor): the input.
        groups (int): the number of groups of channels.

    Example:
        >>> F.channel_shuffle(torch.ones(1, 4, 1, 1), 2).shape
        torch.Size([1, 4, 1, 1])
    """
    return aten.channel_shuffle(input, groups)


def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """channel_shuffle under the name of its kernel.

    Args:
        input (Tensor): the input.
        groups (int): the number of groups of channels.

    Example:
        >>> F.native_channel_shuffle(torch.ones(1, 4, 1, 1), 2).shape
        torch.Size([1, 4, 1, 1])
    """
    return aten.channel_shuffle(input, groups)


def unfold(input: Tensor, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> Tensor:
    """(N, C, H, W) to (N, C * kernel elements, blocks): each sliding block as a column.

    Args:
        input (Tensor): the input.
        kernel_size (Sizes): the size of the window.
        dilation (Sizes): the distance between elements of a window.
        padding (Sizes): the padding on each side.
        stride (Sizes): the step between windows.

    Example:
        >>> F.unfold(torch.ones(1, 1, 3, 3), 2).shape
        torch.Size([1, 4, 4])
    """
    return aten.im2col(input, *(as_tuple(value, 2) for value in (kernel_size, dilation, padding, stride)))


def fold(
    input: Tensor,
    output_size: Sizes,
    kernel_size: Sizes,
    dilation: Sizes = 1,
    padding: Sizes = 0,
    stride: Sizes = 1,
) -> Tensor:
    """(N, C * kernel elements, blocks) to (N, C, H, W): overlapping blocks add up.

    Args:
        input (Tensor): the input.
        output_size (Sizes): the size of the result.
        kernel_size (Sizes): the size of the window.
        dilation (Sizes): the distance between elements of a window.
        padding (Sizes): the padding on each side.
        stride (Sizes): the step between windows.

    Example:
        >>> F.fold(torch.ones(1, 4, 1), (2, 2), 2).shape
        torch.Size([1, 1, 2, 2])
    """
    return aten.col2im(input, *(as_tuple(value, 2) for value in (output_size, kernel_size, dilation, padding, stride)))


def interpolate(
    input: Tensor,
    size: Sizes | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resize the dimensions after the channels to `size`, or by `scale_factor`.

    `mode`: "nearest", "nearest-exact", "area", "linear" (3-D input), "bilinear", "bicubic" (4-D) or "trilinear" (5-D). With
    `antialias` ("bilinear" and "bicubic"), each output averages all inputs that it covers.

    Args:
        input (Tensor): the input.
        size (Sizes | None): the output's size.
        scale_factor (float | Sequence[float] | None): the ratio of the output's size to the input's.
        mode (str): the interpolation method.
        align_corners (bool | None): whether the centres of the corner elements of input and output coincide.
        recompute_scale_factor (bool | None): whether to recompute the factor from the sizes.
        antialias (bool): whether to average over all inputs that an output covers when shrinking.

    Example:
        >>> F.interpolate(torch.tensor([[[1.0, 2.0]]]), scale_factor=2)
        tensor([[[1., 1., 2., 2.]]])
    """
    weighted = mode in _WEIGHTED
    if align_corners is not None and not weighted:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    if antialias and (mode not in _ANTIALIASED or input.dim() != 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor as input; got "
            f"mode={mode!r} and {input.dim()} dimensions"
        )
    sizes, scales = _target(input, size, scale_factor, recompute_scale_factor)
    dims = input.dim() - 2
    if antialias:
        return getattr(aten, _ANTIALIASED[mode]).default(input, sizes, bool(align_corners), *scales)
    if mode == "area":
        return (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[dims - 1](input, sizes)
    if mode in _NEAREST and 1 <= dims <= 3:
        return getattr(aten, _NEAREST[mode].format(dims)).default(input, sizes, *scales)
    if weighted and _WEIGHTED[mode][0] == dims:
        return getattr(aten, _WEIGHTED[mode][1]).default(input, sizes, bool(align_corners), *scales)
    raise NotImplementedError(
        "Input Error: Only 3D, 4D and 5D input Tensors supported with the modes nearest | nearest-exact | area, "
        f"linear (3D), bilinear and bicubic (4D), trilinear (5D); got {input.dim()}D for the mode {mode}"
    )


def _target(input: Tensor, size, scale_factor, recompute: bool | None) -> tuple[list[int], list[float | None]]:
    """Return the output's sizes, and the scales for calculating coordinates (None: computed from the sizes)."""
    dims = input.dim() - 2
    if (size is None) == (scale_factor is None):
        raise ValueError("exactly one of size and scale_factor should be defined")
    if size is not None:
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        return _per_dimension(size, input, "size"), [None] * dims
    scales = _per_dimension(scale_factor, input, "scale_factor")
    sizes = [scaled_size(extent, scale) for extent, scale in zip(input.shape[2:], scales, strict=True)]
    return sizes, [None] * dims if recompute else [float(scale) for scale in scales]


def _per_dimension(value, input: Tensor, name: str) -> list:
    dims = input.dim() - 2
    values = list(as_tuple(value, dims))
    if len(values) != dims:
        raise ValueError(
            f"Input and {name} must have the same number of spatial dimensions, but got input with spatial dimensions "
            f"of {list(input.shape[2:])} and {name} of {value}. Please provide input tensor in (N, C, d1, ..., dK) "
            f"format and {name} in (o1, ..., oK) format."
        )
    return values


def upsample(
    input: Tensor,
    size: Sizes | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Return the old name of interpolate.

    Args:
        input (Tensor): the input.
        size (Sizes | None): the output's size.
        scale_factor (float | Sequence[float] | None): the ratio of the output's size to the input's.
        mode (str): the interpolation method.
        align_corners (bool | None): whether the centres of the corner elements of input and output coincide.

    Example:
        >>> F.upsample(torch.tensor([[[1.0, 2.0]]]), scale_factor=2)
        tensor([[[1., 1., 2., 2.]]])
    """
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Sizes | None = None, scale_factor=None) -> Tensor:
    """interpolate with mode="nearest".

    Args:
        input (Tensor): the input.
        size (Sizes | None): the output's size.
        scale_factor: the ratio of the output's size to the input's.

    Example:
        >>> F.upsample_nearest(torch.ones(1, 1, 2, 2), scale_factor=2).shape
        torch.Size([1, 1, 4, 4])
    """
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size: Sizes | None = None, scale_factor=None) -> Tensor:
    """interpolate with mode="bilinear" and align_corners=True.

    Args:
        input (Tensor): the input.
        size (Sizes | None): the output's size.
        scale_factor: the ratio of the output's size to the input's.

    Example:
        >>> F.upsample_bilinear(torch.ones(1, 1, 2, 2), scale_factor=2).shape
        torch.Size([1, 1, 4, 4])
    """
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)
