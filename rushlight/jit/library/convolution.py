"""Convolutions in TorchScript's language. The signatures are those of `nn.functional`; sizes are lists."""

from __future__ import annotations

from typing import List, Optional  # noqa: UP035 (scripted code)

from rushlight.core.tensor import Tensor
from rushlight.jit.library.sizes import BroadcastingList1, BroadcastingList2, BroadcastingList3
from rushlight.jit.overloads import overload
from rushlight.nn import functional as F
from rushlight.nn.functional.common import aten


@overload
def conv1d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: BroadcastingList1[int] = 1,
           padding: BroadcastingList1[int] = 0, dilation: BroadcastingList1[int] = 1, groups: int = 1) -> Tensor: ...
@overload
def conv1d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: BroadcastingList1[int] = 1,
           padding: str = "valid", dilation: BroadcastingList1[int] = 1, groups: int = 1) -> Tensor: ...
def conv1d(input, weight, bias, stride, padding, dilation, groups):
    return aten.conv1d(input, weight, bias, stride, padding, dilation, groups)


@overload
def conv2d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: BroadcastingList2[int] = 1,
           padding: BroadcastingList2[int] = 0, dilation: BroadcastingList2[int] = 1, groups: int = 1) -> Tensor: ...
@overload
def conv2d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: BroadcastingList2[int] = 1,
           padding: str = "valid", dilation: BroadcastingList2[int] = 1, groups: int = 1) -> Tensor: ...
def conv2d(input, weight, bias, stride, padding, dilation, groups):
    return aten.conv2d(input, weight, bias, stride, padding, dilation, groups)


@overload
def conv3d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: BroadcastingList3[int] = 1,
           padding: BroadcastingList3[int] = 0, dilation: BroadcastingList3[int] = 1, groups: int = 1) -> Tensor: ...
@overload
def conv3d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: BroadcastingList3[int] = 1,
           padding: str = "valid", dilation: BroadcastingList3[int] = 1, groups: int = 1) -> Tensor: ...
def conv3d(input, weight, bias, stride, padding, dilation, groups):
    return aten.conv3d(input, weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(
    input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: BroadcastingList1[int] = 1,
    padding: BroadcastingList1[int] = 0, output_padding: BroadcastingList1[int] = 0, groups: int = 1,
    dilation: BroadcastingList1[int] = 1,
) -> Tensor:
    return aten.conv_transpose1d(input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(
    input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: BroadcastingList2[int] = 1,
    padding: BroadcastingList2[int] = 0, output_padding: BroadcastingList2[int] = 0, groups: int = 1,
    dilation: BroadcastingList2[int] = 1,
) -> Tensor:
    return aten.conv_transpose2d(input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose3d(
    input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: BroadcastingList3[int] = 1,
    padding: BroadcastingList3[int] = 0, output_padding: BroadcastingList3[int] = 0, groups: int = 1,
    dilation: BroadcastingList3[int] = 1,
) -> Tensor:
    return aten.conv_transpose3d(input, weight, bias, stride, padding, output_padding, groups, dilation)


def unfold(
    input: Tensor, kernel_size: BroadcastingList2[int], dilation: BroadcastingList2[int] = 1,
    padding: BroadcastingList2[int] = 0, stride: BroadcastingList2[int] = 1,
) -> Tensor:
    return aten.im2col(input, kernel_size, dilation, padding, stride)


def fold(
    input: Tensor, output_size: BroadcastingList2[int], kernel_size: BroadcastingList2[int],
    dilation: BroadcastingList2[int] = 1, padding: BroadcastingList2[int] = 0, stride: BroadcastingList2[int] = 1,
) -> Tensor:
    return aten.col2im(input, output_size, kernel_size, dilation, padding, stride)


def both_sides(padding: List[int]) -> List[int]:
    """Return a convolution's padding in the form of `pad`, last dimension first."""
    sides: List[int] = []
    for index in range(len(padding)):
        amount = padding[len(padding) - 1 - index]
        sides.append(amount)
        sides.append(amount)
    return sides


def same_sides(kernel_size: List[int], dilation: List[int]) -> List[int]:
    """Return the padding that keeps sizes, in the form of `pad`."""
    sides: List[int] = []
    for index in range(len(kernel_size)):
        last = len(kernel_size) - 1 - index
        total = dilation[last] * (kernel_size[last] - 1)
        sides.append(total // 2)
        sides.append(total - total // 2)
    return sides


def missing_padding(
    sizes: List[int], output_size: List[int], stride: List[int], padding: List[int], kernel_size: List[int],
    dilation: List[int],
) -> List[int]:
    """Return the output padding of a transposed convolution that gives `output_size`. ValueError if there is none."""
    count = len(kernel_size)
    if len(output_size) == len(sizes):
        output_size = output_size[-count:]
    if len(output_size) != count:
        raise ValueError("output_size must have {} or {} elements (got {})".format(count, len(sizes), len(output_size)))
    missing: List[int] = []
    for index in range(count):
        size = sizes[len(sizes) - count + index]
        least = (size - 1) * stride[index] - 2 * padding[index] + dilation[index] * (kernel_size[index] - 1) + 1
        if output_size[index] < least or output_size[index] > least + stride[index] - 1:
            raise ValueError("requested an output size of {}, but valid sizes begin at {}".format(output_size, least))
        missing.append(output_size[index] - least)
    return missing


REPLACEMENTS = {
    F.conv1d: conv1d, F.conv2d: conv2d, F.conv3d: conv3d, F.conv_transpose1d: conv_transpose1d,
    F.conv_transpose2d: conv_transpose2d, F.conv_transpose3d: conv_transpose3d, F.unfold: unfold, F.fold: fold,
}  # fmt: skip
