"""Pooling in TorchScript's language. The signatures are those of `nn.functional`; sizes are lists."""

from __future__ import annotations

from typing import List, Optional, Tuple, Union  # noqa: UP035 (scripted code)

from rushlight.core.tensor import Tensor
from rushlight.jit.library.sizes import BroadcastingList1, BroadcastingList2, BroadcastingList3
from rushlight.nn import functional as F
from rushlight.nn.functional.common import aten


def steps(stride: Optional[List[int]]) -> List[int]:
    """Return a stride in the operators' form: an empty list means the kernel's size."""
    if stride is None:
        empty: List[int] = []
        return empty
    return stride


def max_pool1d(
    input: Tensor, kernel_size: BroadcastingList1[int], stride: Optional[BroadcastingList1[int]] = None,
    padding: BroadcastingList1[int] = 0, dilation: BroadcastingList1[int] = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    return aten.max_pool1d(input, kernel_size, steps(stride), padding, dilation, ceil_mode)


def max_pool2d(
    input: Tensor, kernel_size: BroadcastingList2[int], stride: Optional[BroadcastingList2[int]] = None,
    padding: BroadcastingList2[int] = 0, dilation: BroadcastingList2[int] = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    return aten.max_pool2d(input, kernel_size, steps(stride), padding, dilation, ceil_mode)


def max_pool3d(
    input: Tensor, kernel_size: BroadcastingList3[int], stride: Optional[BroadcastingList3[int]] = None,
    padding: BroadcastingList3[int] = 0, dilation: BroadcastingList3[int] = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    return aten.max_pool3d(input, kernel_size, steps(stride), padding, dilation, ceil_mode)


def max_pool1d_with_indices(
    input: Tensor, kernel_size: BroadcastingList1[int], stride: Optional[BroadcastingList1[int]] = None,
    padding: BroadcastingList1[int] = 0, dilation: BroadcastingList1[int] = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tuple[Tensor, Tensor]:
    return aten.max_pool1d_with_indices(input, kernel_size, steps(stride), padding, dilation, ceil_mode)


def max_pool2d_with_indices(
    input: Tensor, kernel_size: BroadcastingList2[int], stride: Optional[BroadcastingList2[int]] = None,
    padding: BroadcastingList2[int] = 0, dilation: BroadcastingList2[int] = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tuple[Tensor, Tensor]:
    return aten.max_pool2d_with_indices(input, kernel_size, steps(stride), padding, dilation, ceil_mode)


def max_pool3d_with_indices(
    input: Tensor, kernel_size: BroadcastingList3[int], stride: Optional[BroadcastingList3[int]] = None,
    padding: BroadcastingList3[int] = 0, dilation: BroadcastingList3[int] = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tuple[Tensor, Tensor]:
    return aten.max_pool3d_with_indices(input, kernel_size, steps(stride), padding, dilation, ceil_mode)


def avg_pool1d(
    input: Tensor, kernel_size: BroadcastingList1[int], stride: Optional[BroadcastingList1[int]] = None,
    padding: BroadcastingList1[int] = 0, ceil_mode: bool = False, count_include_pad: bool = True,
) -> Tensor:
    return aten.avg_pool1d(input, kernel_size, steps(stride), padding, ceil_mode, count_include_pad)


def avg_pool2d(
    input: Tensor, kernel_size: BroadcastingList2[int], stride: Optional[BroadcastingList2[int]] = None,
    padding: BroadcastingList2[int] = 0, ceil_mode: bool = False, count_include_pad: bool = True,
    divisor_override: Optional[int] = None,
) -> Tensor:
    return aten.avg_pool2d(input, kernel_size, steps(stride), padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(
    input: Tensor, kernel_size: BroadcastingList3[int], stride: Optional[BroadcastingList3[int]] = None,
    padding: BroadcastingList3[int] = 0, ceil_mode: bool = False, count_include_pad: bool = True,
    divisor_override: Optional[int] = None,
) -> Tensor:
    return aten.avg_pool3d(input, kernel_size, steps(stride), padding, ceil_mode, count_include_pad, divisor_override)


def norm_of_mean(mean: Tensor, count: int, norm_type: float) -> Tensor:
    """Return the norm of windows, from the mean of their powers."""
    return (mean.sign() * mean.abs().relu() * count).pow(1.0 / norm_type)


def lp_pool1d(
    input: Tensor, norm_type: Union[int, float], kernel_size: int,
    stride: Optional[BroadcastingList1[int]] = None, ceil_mode: bool = False,
) -> Tensor:
    mean = avg_pool1d(input.pow(float(norm_type)), kernel_size, stride, 0, ceil_mode)
    return norm_of_mean(mean, kernel_size, float(norm_type))


def lp_pool2d(
    input: Tensor, norm_type: Union[int, float], kernel_size: BroadcastingList2[int],
    stride: Optional[BroadcastingList2[int]] = None, ceil_mode: bool = False,
) -> Tensor:
    mean = avg_pool2d(input.pow(float(norm_type)), kernel_size, stride, 0, ceil_mode)
    return norm_of_mean(mean, kernel_size[0] * kernel_size[1], float(norm_type))


def lp_pool3d(
    input: Tensor, norm_type: Union[int, float], kernel_size: BroadcastingList3[int],
    stride: Optional[BroadcastingList3[int]] = None, ceil_mode: bool = False,
) -> Tensor:
    mean = avg_pool3d(input.pow(float(norm_type)), kernel_size, stride, 0, ceil_mode)
    return norm_of_mean(mean, kernel_size[0] * kernel_size[1] * kernel_size[2], float(norm_type))


def full_size(output_size: List[Optional[int]], sizes: List[int]) -> List[int]:
    """Return `output_size` with None replaced by the input's size."""
    if len(sizes) <= len(output_size):
        raise ValueError("Input dimension should be at least {}, got {}".format(len(output_size) + 1, len(sizes)))
    full: List[int] = []
    for index, wanted in enumerate(output_size):
        full.append(sizes[len(sizes) - len(output_size) + index] if wanted is None else wanted)
    return full


def adaptive_avg_pool1d(input: Tensor, output_size: BroadcastingList1[int]) -> Tensor:
    return aten.adaptive_avg_pool1d(input, output_size)


def adaptive_avg_pool2d(input: Tensor, output_size: BroadcastingList2[Optional[int]]) -> Tensor:
    return aten.adaptive_avg_pool2d(input, full_size(output_size, input.size()))


def adaptive_avg_pool3d(input: Tensor, output_size: BroadcastingList3[Optional[int]]) -> Tensor:
    return aten.adaptive_avg_pool3d(input, full_size(output_size, input.size()))


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: BroadcastingList1[int], return_indices: bool = False
) -> Tuple[Tensor, Tensor]:
    return aten.adaptive_max_pool1d(input, output_size)


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: BroadcastingList2[Optional[int]], return_indices: bool = False
) -> Tuple[Tensor, Tensor]:
    return aten.adaptive_max_pool2d(input, full_size(output_size, input.size()))


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: BroadcastingList3[Optional[int]], return_indices: bool = False
) -> Tuple[Tensor, Tensor]:
    return aten.adaptive_max_pool3d(input, full_size(output_size, input.size()))


def adaptive_max_pool1d(input: Tensor, output_size: BroadcastingList1[int], return_indices: bool = False) -> Tensor:
    return adaptive_max_pool1d_with_indices(input, output_size)[0]


def adaptive_max_pool2d(
    input: Tensor, output_size: BroadcastingList2[Optional[int]], return_indices: bool = False
) -> Tensor:
    return adaptive_max_pool2d_with_indices(input, output_size)[0]


def adaptive_max_pool3d(
    input: Tensor, output_size: BroadcastingList3[Optional[int]], return_indices: bool = False
) -> Tensor:
    return adaptive_max_pool3d_with_indices(input, output_size)[0]


def unpooled(
    input: Tensor, indices: Tensor, kernel_size: List[int], stride: List[int], padding: List[int],
    output_size: Optional[List[int]],
) -> Tensor:
    """Return maxima scattered back to their indices, zero elsewhere."""
    count = len(kernel_size)
    if input.size() != indices.size():
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({input.size()}) but got indices tensor with "
            f"shape: {indices.size()}"
        )
    if input.dim() != count + 1 and input.dim() != count + 2:
        raise RuntimeError(
            f"Input to max_unpooling{count}d should be a {count + 1}d or {count + 2}d Tensor, but got a tensor with "
            f"{input.dim()} dimensions."
        )
    lead = input.size()[: input.dim() - count]
    sizes: List[int] = []
    for index in range(count):
        extent = input.size(input.dim() - count + index)
        step = stride[index] if len(stride) > 0 else kernel_size[index]
        sizes.append((extent - 1) * step + kernel_size[index] - 2 * padding[index])
    if output_size is not None:
        sizes = output_size[-count:]
    total = 1
    for size in sizes:
        total *= size
    flat = input.new_zeros(lead + [total]).scatter(-1, indices.reshape(lead + [-1]), input.reshape(lead + [-1]))
    return flat.view(lead + sizes)


def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size: BroadcastingList1[int], stride: Optional[BroadcastingList1[int]] = None,
    padding: BroadcastingList1[int] = 0, output_size: Optional[List[int]] = None,
) -> Tensor:
    return unpooled(input, indices, kernel_size, steps(stride), padding, output_size)


def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: BroadcastingList2[int], stride: Optional[BroadcastingList2[int]] = None,
    padding: BroadcastingList2[int] = 0, output_size: Optional[List[int]] = None,
) -> Tensor:
    return unpooled(input, indices, kernel_size, steps(stride), padding, output_size)


def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size: BroadcastingList3[int], stride: Optional[BroadcastingList3[int]] = None,
    padding: BroadcastingList3[int] = 0, output_size: Optional[List[int]] = None,
) -> Tensor:
    return unpooled(input, indices, kernel_size, steps(stride), padding, output_size)


REPLACEMENTS = {
    F.max_pool1d: max_pool1d, F.max_pool2d: max_pool2d, F.max_pool3d: max_pool3d,
    F.max_pool1d_with_indices: max_pool1d_with_indices, F.max_pool2d_with_indices: max_pool2d_with_indices,
    F.max_pool3d_with_indices: max_pool3d_with_indices, F.avg_pool2d: avg_pool2d, F.avg_pool3d: avg_pool3d,
    F.lp_pool1d: lp_pool1d, F.lp_pool2d: lp_pool2d, F.lp_pool3d: lp_pool3d,
    F.adaptive_avg_pool1d: adaptive_avg_pool1d, F.adaptive_avg_pool2d: adaptive_avg_pool2d,
    F.adaptive_avg_pool3d: adaptive_avg_pool3d, F.adaptive_max_pool1d: adaptive_max_pool1d,
    F.adaptive_max_pool2d: adaptive_max_pool2d, F.adaptive_max_pool3d: adaptive_max_pool3d,
    F.adaptive_max_pool1d_with_indices: adaptive_max_pool1d_with_indices,
    F.adaptive_max_pool2d_with_indices: adaptive_max_pool2d_with_indices,
    F.adaptive_max_pool3d_with_indices: adaptive_max_pool3d_with_indices,
    F.max_unpool1d: max_unpool1d, F.max_unpool2d: max_unpool2d, F.max_unpool3d: max_unpool3d,
}  # fmt: skip
WITH_INDICES = {
    F.max_pool1d: (max_pool1d_with_indices, 6), F.max_pool2d: (max_pool2d_with_indices, 6),
    F.max_pool3d: (max_pool3d_with_indices, 6), F.adaptive_max_pool1d: (adaptive_max_pool1d_with_indices, 2),
    F.adaptive_max_pool2d: (adaptive_max_pool2d_with_indices, 2),
    F.adaptive_max_pool3d: (adaptive_max_pool3d_with_indices, 2),
}  # fmt: skip
"""The function compiled for `return_indices=True`, which returns two tensors, and the position of that argument."""
