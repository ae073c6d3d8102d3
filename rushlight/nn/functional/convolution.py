"""Convolutions (cross-correlations). Inputs are (N, C, sizes...) or (C, sizes...)."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.core.tensor import Tensor
from rushlight.nn.functional.common import aten

Sizes = int | Sequence[int]


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Weight (out, in / groups, kernel). `padding` may be "valid" or "same".

    Args:
        input (Tensor): the input.
        weight (Tensor): the kernels.
        bias (Tensor | None): the bias, if given.
        stride (Sizes): the step between positions of the kernel.
        padding (Sizes | str): the padding on each side, or "valid" or "same".
        dilation (Sizes): the distance between elements of the kernel.
        groups (int): the number of groups of channels; each group has its own kernels.

    Example:
        >>> F.conv1d(torch.ones(1, 1, 4), torch.ones(1, 1, 2)).shape
        torch.Size([1, 1, 3])
    """
    convolve = aten.conv1d.padding if isinstance(padding, str) else aten.conv1d.default
    return convolve(input, weight, bias, stride, padding, dilation, groups)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Weight (out, in / groups, kernel height, kernel width). `padding` may be "valid" or "same".

    Args:
        input (Tensor): the input.
        weight (Tensor): the kernels.
        bias (Tensor | None): the bias, if given.
        stride (Sizes): the step between positions of the kernel.
        padding (Sizes | str): the padding on each side, or "valid" or "same".
        dilation (Sizes): the distance between elements of the kernel.
        groups (int): the number of groups of channels; each group has its own kernels.

    Example:
        >>> F.conv2d(torch.ones(1, 1, 4, 4), torch.ones(1, 1, 2, 2)).shape
        torch.Size([1, 1, 3, 3])
    """
    convolve = aten.conv2d.padding if isinstance(padding, str) else aten.conv2d.default
    return convolve(input, weight, bias, stride, padding, dilation, groups)


def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Weight (out, in / groups, kernel depth, height, width). `padding` may be "valid" or "same".

    Args:
        input (Tensor): the input.
        weight (Tensor): the kernels.
        bias (Tensor | None): the bias, if given.
        stride (Sizes): the step between positions of the kernel.
        padding (Sizes | str): the padding on each side, or "valid" or "same".
        dilation (Sizes): the distance between elements of the kernel.
        groups (int): the number of groups of channels; each group has its own kernels.

    Example:
        >>> F.conv3d(torch.ones(1, 1, 4, 4, 4), torch.ones(1, 1, 2, 2, 2)).shape
        torch.Size([1, 1, 3, 3, 3])
    """
    convolve = aten.conv3d.padding if isinstance(padding, str) else aten.conv3d.default
    return convolve(input, weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """Return the adjoint of conv1d. Weight (in, out / groups, kernel).

    Args:
        input (Tensor): the input.
        weight (Tensor): the kernels.
        bias (Tensor | None): the bias, if given.
        stride (Sizes): the step between positions of the kernel.
        padding (Sizes): the padding on each side.
        output_padding (Sizes): extra size at the end of each dimension of the result.
        groups (int): the number of groups of channels; each group has its own kernels.
        dilation (Sizes): the distance between elements of the kernel.

    Example:
        >>> F.conv_transpose1d(torch.ones(1, 1, 4), torch.ones(1, 1, 2)).shape
        torch.Size([1, 1, 5])
    """
    return aten.conv_transpose1d.default(input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """Return the adjoint of conv2d. Weight (in, out / groups, kernel height, kernel width).

    Args:
        input (Tensor): the input.
        weight (Tensor): the kernels.
        bias (Tensor | None): the bias, if given.
        stride (Sizes): the step between positions of the kernel.
        padding (Sizes): the padding on each side.
        output_padding (Sizes): extra size at the end of each dimension of the result.
        groups (int): the number of groups of channels; each group has its own kernels.
        dilation (Sizes): the distance between elements of the kernel.

    Example:
        >>> F.conv_transpose2d(torch.ones(1, 1, 4, 4), torch.ones(1, 1, 2, 2)).shape
        torch.Size([1, 1, 5, 5])
    """
    return aten.conv_transpose2d.input(input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """Return the adjoint of conv3d. Weight (in, out / groups, kernel depth, height, width).

    Args:
        input (Tensor): the input.
        weight (Tensor): the kernels.
        bias (Tensor | None): the bias, if given.
        stride (Sizes): the step between positions of the kernel.
        padding (Sizes): the padding on each side.
        output_padding (Sizes): extra size at the end of each dimension of the result.
        groups (int): the number of groups of channels; each group has its own kernels.
        dilation (Sizes): the distance between elements of the kernel.

    Example:
        >>> F.conv_transpose3d(torch.ones(1, 1, 4, 4, 4), torch.ones(1, 1, 2, 2, 2)).shape
        torch.Size([1, 1, 5, 5, 5])
    """
    return aten.conv_transpose3d.input(input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Convolution of (time, batch, in) with a weight (kernel, in, out) and a bias (out): (time', batch, out).

    Args:
        input (Tensor): the input.
        weight (Tensor): the kernels.
        bias (Tensor): the bias.
        pad (int): the padding on both sides of time.

    Example:
        >>> F.conv_tbc(torch.ones(3, 1, 1), torch.ones(2, 1, 1), torch.zeros(1)).flatten()
        tensor([2., 2.])
    """
    return aten.conv_tbc.default(input, weight, bias, pad)
