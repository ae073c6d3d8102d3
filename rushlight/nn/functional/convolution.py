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
        input (Tensor): the operand.
        weight (Tensor): the weights, or a factor per class.
        bias (Tensor | None): whether something is added to the result, or what.
        stride (Sizes): the distance between places, or the strides of the result in elements.
        padding (Sizes | str): how much is added on each side.
        dilation (Sizes): the distance between the elements of a kernel or window.
        groups (int): into how many groups the channels fall, each with its own kernels.

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
        input (Tensor): the operand.
        weight (Tensor): the weights, or a factor per class.
        bias (Tensor | None): whether something is added to the result, or what.
        stride (Sizes): the distance between places, or the strides of the result in elements.
        padding (Sizes | str): how much is added on each side.
        dilation (Sizes): the distance between the elements of a kernel or window.
        groups (int): into how many groups the channels fall, each with its own kernels.

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
        input (Tensor): the operand.
        weight (Tensor): the weights, or a factor per class.
        bias (Tensor | None): whether something is added to the result, or what.
        stride (Sizes): the distance between places, or the strides of the result in elements.
        padding (Sizes | str): how much is added on each side.
        dilation (Sizes): the distance between the elements of a kernel or window.
        groups (int): into how many groups the channels fall, each with its own kernels.

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
    """The adjoint of conv1d. Weight (in, out / groups, kernel).

    Args:
        input (Tensor): the operand.
        weight (Tensor): the weights, or a factor per class.
        bias (Tensor | None): whether something is added to the result, or what.
        stride (Sizes): the distance between places, or the strides of the result in elements.
        padding (Sizes): how much is added on each side.
        output_padding (Sizes): what is added to one side of the result.
        groups (int): into how many groups the channels fall, each with its own kernels.
        dilation (Sizes): the distance between the elements of a kernel or window.

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
    """The adjoint of conv2d. Weight (in, out / groups, kernel height, kernel width).

    Args:
        input (Tensor): the operand.
        weight (Tensor): the weights, or a factor per class.
        bias (Tensor | None): whether something is added to the result, or what.
        stride (Sizes): the distance between places, or the strides of the result in elements.
        padding (Sizes): how much is added on each side.
        output_padding (Sizes): what is added to one side of the result.
        groups (int): into how many groups the channels fall, each with its own kernels.
        dilation (Sizes): the distance between the elements of a kernel or window.

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
    """The adjoint of conv3d. Weight (in, out / groups, kernel depth, height, width).

    Args:
        input (Tensor): the operand.
        weight (Tensor): the weights, or a factor per class.
        bias (Tensor | None): whether something is added to the result, or what.
        stride (Sizes): the distance between places, or the strides of the result in elements.
        padding (Sizes): how much is added on each side.
        output_padding (Sizes): what is added to one side of the result.
        groups (int): into how many groups the channels fall, each with its own kernels.
        dilation (Sizes): the distance between the elements of a kernel or window.

    Example:
        >>> F.conv_transpose3d(torch.ones(1, 1, 4, 4, 4), torch.ones(1, 1, 2, 2, 2)).shape
        torch.Size([1, 1, 5, 5, 5])
    """
    return aten.conv_transpose3d.input(input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Convolution of (time, batch, in) with a weight (kernel, in, out) and a bias (out): (time', batch, out).

    Args:
        input (Tensor): the operand.
        weight (Tensor): the weights, or a factor per class.
        bias (Tensor): whether something is added to the result, or what.
        pad (int): amounts for the last dimension first: left, right, then the one before.

    Example:
        >>> F.conv_tbc(torch.ones(3, 1, 1), torch.ones(2, 1, 1), torch.zeros(1)).flatten()
        tensor([2., 2.])
    """
    return aten.conv_tbc.default(input, weight, bias, pad)
