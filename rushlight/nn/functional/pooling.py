"""Pooling. Inputs are (N, C, sizes...) or (C, sizes...); a stride of None is the kernel size."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rushlight.core.determinism import DETERMINISM
from rushlight.core.tensor import Tensor
from rushlight.nn.functional.common import as_tuple, aten
from rushlight.ops.composite.network.common import values_of
from rushlight.ops.out import finish

Sizes = int | Sequence[int]


def _stride(stride: Sizes | None) -> Sizes:
    return [] if stride is None else stride


def max_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """Return the maximum of each window, with its index in the input if `return_indices`.

    Args:
        input (Tensor): the input.
        kernel_size (Sizes): the size of the window.
        stride (Sizes | None): the step between windows; the kernel size if None.
        padding (Sizes): the padding on each side.
        dilation (Sizes): the distance between elements of a window.
        ceil_mode (bool): whether to round the number of windows up, so that the last one may reach past the end.
        return_indices (bool): whether to return the indices of the maxima, too.

    Example:
        >>> F.max_pool1d(torch.arange(4.0).view(1, 1, 4), 2).flatten()
        tensor([1., 3.])
    """
    pool = aten.max_pool1d_with_indices if return_indices else aten.max_pool1d
    return pool(input, kernel_size, _stride(stride), padding, dilation, ceil_mode)


def max_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """Return the maximum of each window, with its index in the flattened image if `return_indices`.

    Args:
        input (Tensor): the input.
        kernel_size (Sizes): the size of the window.
        stride (Sizes | None): the step between windows; the kernel size if None.
        padding (Sizes): the padding on each side.
        dilation (Sizes): the distance between elements of a window.
        ceil_mode (bool): whether to round the number of windows up, so that the last one may reach past the end.
        return_indices (bool): whether to return the indices of the maxima, too.

    Example:
        >>> F.max_pool2d(torch.arange(16.0).view(1, 1, 4, 4), 2).flatten()
        tensor([ 5.,  7., 13., 15.])
    """
    if not return_indices:
        return aten.max_pool2d.default(input, kernel_size, _stride(stride), padding, dilation, ceil_mode)
    kernel = as_tuple(kernel_size, 2)
    steps = kernel if stride is None else as_tuple(stride, 2)
    return aten.max_pool2d_with_indices(input, kernel, steps, as_tuple(padding, 2), as_tuple(dilation, 2), ceil_mode)


def max_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """Return the maximum of each window, with its index in the flattened volume if `return_indices`.

    Args:
        input (Tensor): the input.
        kernel_size (Sizes): the size of the window.
        stride (Sizes | None): the step between windows; the kernel size if None.
        padding (Sizes): the padding on each side.
        dilation (Sizes): the distance between elements of a window.
        ceil_mode (bool): whether to round the number of windows up, so that the last one may reach past the end.
        return_indices (bool): whether to return the indices of the maxima, too.

    Example:
        >>> F.max_pool3d(torch.arange(64.0).view(1, 1, 4, 4, 4), 2).flatten()
        tensor([21., 23., 29., 31., 53., 55., 61., 63.])
    """
    pool = aten.max_pool3d_with_indices if return_indices else aten.max_pool3d
    return pool(input, kernel_size, _stride(stride), padding, dilation, ceil_mode)


def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """max_pool1d that always returns the indices.

    Args:
        input (Tensor): the input.
        kernel_size (Sizes): the size of the window.
        stride (Sizes | None): the step between windows; the kernel size if None.
        padding (Sizes): the padding on each side.
        dilation (Sizes): the distance between elements of a window.
        ceil_mode (bool): whether to round the number of windows up, so that the last one may reach past the end.
        return_indices (bool): whether to return the indices of the maxima, too.

    Example:
        >>> F.max_pool1d_with_indices(torch.arange(4.0).view(1, 1, 4), 2)[1].flatten()
        tensor([1, 3])
    """
    return max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """max_pool2d that always returns the indices.

    Args:
        input (Tensor): the input.
        kernel_size (Sizes): the size of the window.
        stride (Sizes | None): the step between windows; the kernel size if None.
        padding (Sizes): the padding on each side.
        dilation (Sizes): the distance between elements of a window.
        ceil_mode (bool): whether to round the number of windows up, so that the last one may reach past the end.
        return_indices (bool): whether to return the indices of the maxima, too.

    Example:
        >>> F.max_pool2d_with_indices(torch.arange(16.0).view(1, 1, 4, 4), 2)[1].flatten()
        tensor([ 5,  7, 13, 15])
    """
    return max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """max_pool3d that always returns the indices.

    Args:
        input (Tensor): the input.
        kernel_size (Sizes): the size of the window.
        stride (Sizes | None): the step between windows; the kernel size if None.
        padding (Sizes): the padding on each side.
        dilation (Sizes): the distance between elements of a window.
        ceil_mode (bool): whether to round the number of windows up, so that the last one may reach past the end.
        return_indices (bool): whether to return the indices of the maxima, too.

    Example:
        >>> F.max_pool3d_with_indices(torch.arange(64.0).view(1, 1, 4, 4, 4), 2)[1].flatten()
        tensor([21, 23, 29, 31, 53, 55, 61, 63])
    """
    return max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


def avg_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window.

    Args:
        input (Tensor): the input.
        kernel_size (Sizes): the size of the window.
        stride (Sizes | None): the step between windows; the kernel size if None.
        padding (Sizes): the padding on each side.
        ceil_mode (bool): whether to round the number of windows up, so that the last one may reach past the end.
        count_include_pad (bool): whether padding counts in the average.

    Example:
        >>> F.avg_pool1d(torch.arange(4.0).view(1, 1, 4), 2).flatten()
        tensor([0.5000, 2.5000])
    """
    return aten.avg_pool1d(input, kernel_size, _stride(stride), padding, ceil_mode, count_include_pad)


def avg_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The mean of each window; or its sum divided by `divisor_override`.

    Args:
        input (Tensor): the input.
        kernel_size (Sizes): the size of the window.
        stride (Sizes | None): the step between windows; the kernel size if None.
        padding (Sizes): the padding on each side.
        ceil_mode (bool): whether to round the number of windows up, so that the last one may reach past the end.
        count_include_pad (bool): whether padding counts in the average.
        divisor_override (int | None): the divisor of the sums, instead of the window's size.
        out (Tensor | None): where the result is written, if given.

    Example:
        >>> F.avg_pool2d(torch.arange(16.0).view(1, 1, 4, 4), 2).flatten()
        tensor([ 2.5000,  4.5000, 10.5000, 12.5000])
    """
    kernel = as_tuple(kernel_size, 2)
    steps = kernel if stride is None or stride == [] else as_tuple(stride, 2)
    result = aten.avg_pool2d.default(
        input, kernel, steps, as_tuple(padding, 2), ceil_mode, count_include_pad, divisor_override
    )
    return finish("avg_pool2d", out, result, input)


def avg_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The mean of each window; or its sum divided by `divisor_override`.

    Args:
        input (Tensor): the input.
        kernel_size (Sizes): the size of the window.
        stride (Sizes | None): the step between windows; the kernel size if None.
        padding (Sizes): the padding on each side.
        ceil_mode (bool): whether to round the number of windows up, so that the last one may reach past the end.
        count_include_pad (bool): whether padding counts in the average.
        divisor_override (int | None): the divisor of the sums, instead of the window's size.
        out (Tensor | None): where the result is written, if given.

    Example:
        >>> F.avg_pool3d(torch.arange(64.0).view(1, 1, 4, 4, 4), 2).flatten()
        tensor([10.5000, 12.5000, 18.5000, 20.5000, 42.5000, 44.5000, 50.5000, 52.5000])
    """
    result = aten.avg_pool3d(input, kernel_size, _stride(stride), padding, ceil_mode, count_include_pad, divisor_override)
    return finish("avg_pool3d", out, result, input)


def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False
) -> Tensor:
    """Return the `norm_type`-norm of each window.

    Args:
        input (Tensor): the input.
        norm_type (float): the exponent of the norm.
        kernel_size (Sizes): the size of the window.
        stride (Sizes | None): the step between windows; the kernel size if None.
        ceil_mode (bool): whether to round the number of windows up, so that the last one may reach past the end.

    Example:
        >>> F.lp_pool1d(torch.arange(4.0).view(1, 1, 4), 2.0, 2).shape
        torch.Size([1, 1, 2])
    """
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False
) -> Tensor:
    """Return the `norm_type`-norm of each window.

    Args:
        input (Tensor): the input.
        norm_type (float): the exponent of the norm.
        kernel_size (Sizes): the size of the window.
        stride (Sizes | None): the step between windows; the kernel size if None.
        ceil_mode (bool): whether to round the number of windows up, so that the last one may reach past the end.

    Example:
        >>> F.lp_pool2d(torch.arange(16.0).view(1, 1, 4, 4), 2.0, 2).shape
        torch.Size([1, 1, 2, 2])
    """
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False
) -> Tensor:
    """Return the `norm_type`-norm of each window.

    Args:
        input (Tensor): the input.
        norm_type (float): the exponent of the norm.
        kernel_size (Sizes): the size of the window.
        stride (Sizes | None): the step between windows; the kernel size if None.
        ceil_mode (bool): whether to round the number of windows up, so that the last one may reach past the end.

    Example:
        >>> F.lp_pool3d(torch.arange(64.0).view(1, 1, 4, 4, 4), 2.0, 2).shape
        torch.Size([1, 1, 2, 2, 2])
    """
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


def _lp_pool(dims: int, input: Tensor, norm_type: float, kernel_size: Sizes, stride, ceil_mode: bool) -> Tensor:
    if norm_type == math.inf:
        return (max_pool1d, max_pool2d, max_pool3d)[dims - 1](input.abs(), kernel_size, stride, 0, 1, ceil_mode)
    average = (avg_pool1d, avg_pool2d, avg_pool3d)[dims - 1]
    count = 1
    for size in as_tuple(kernel_size, dims):
        count *= size
    mean = average(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    return (mean.sign() * mean.abs().relu() * count).pow(1.0 / norm_type)


def _full_size(output_size: int | Sequence[int | None] | None, input: Tensor, dims: int) -> list[int]:
    """Return `output_size` with None replaced by the input's size."""
    wanted = [output_size] * dims if isinstance(output_size, int | None) else list(output_size)
    if input.dim() <= len(wanted):
        raise ValueError(f"Input dimension should be at least {len(wanted) + 1}, got {input.dim()}")
    own_sizes = input.shape[input.dim() - len(wanted) :]
    return [own if size is None else size for size, own in zip(wanted, own_sizes, strict=True)]


def adaptive_avg_pool1d(input: Tensor, output_size: Sizes) -> Tensor:
    """The mean of each of `output_size` windows.

    Args:
        input (Tensor): the input.
        output_size (Sizes): the size of the result.

    Example:
        >>> F.adaptive_avg_pool1d(torch.arange(4.0).view(1, 1, 4), 1).flatten()
        tensor([1.5000])
    """
    return aten.adaptive_avg_pool1d(input, output_size)


def adaptive_avg_pool2d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """The mean of each of the windows that divide the image into `output_size`.

    Args:
        input (Tensor): the input.
        output_size (int | Sequence[int | None] | None): the size of the result; None keeps the input's size.

    Example:
        >>> F.adaptive_avg_pool2d(torch.arange(16.0).view(1, 1, 4, 4), 1).flatten()
        tensor([7.5000])
    """
    return aten.adaptive_avg_pool2d(input, _full_size(output_size, input, 2))


def adaptive_avg_pool3d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """The mean of each of the windows that divide the volume into `output_size`.

    Args:
        input (Tensor): the input.
        output_size (int | Sequence[int | None] | None): the size of the result; None keeps the input's size.

    Example:
        >>> F.adaptive_avg_pool3d(torch.arange(64.0).view(1, 1, 4, 4, 4), 1).flatten()
        tensor([31.5000])
    """
    return aten.adaptive_avg_pool3d(input, _full_size(output_size, input, 3))


def adaptive_max_pool1d(
    input: Tensor, output_size: Sizes, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """Return the maximum of each of `output_size` windows.

    Args:
        input (Tensor): the input.
        output_size (Sizes): the size of the result.
        return_indices (bool): whether to return the indices of the maxima, too.

    Example:
        >>> F.adaptive_max_pool1d(torch.arange(4.0).view(1, 1, 4), 1).flatten()
        tensor([3.])
    """
    result = aten.adaptive_max_pool1d(input, output_size)
    return result if return_indices else result[0]


def adaptive_max_pool2d(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """Return the maximum of each of the windows that divide the image into `output_size`.

    Args:
        input (Tensor): the input.
        output_size (int | Sequence[int | None] | None): the size of the result; None keeps the input's size.
        return_indices (bool): whether to return the indices of the maxima, too.

    Example:
        >>> F.adaptive_max_pool2d(torch.arange(16.0).view(1, 1, 4, 4), 1).flatten()
        tensor([15.])
    """
    result = aten.adaptive_max_pool2d(input, _full_size(output_size, input, 2))
    return result if return_indices else result[0]


def adaptive_max_pool3d(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """Return the maximum of each of the windows that divide the volume into `output_size`.

    Args:
        input (Tensor): the input.
        output_size (int | Sequence[int | None] | None): the size of the result; None keeps the input's size.
        return_indices (bool): whether to return the indices of the maxima, too.

    Example:
        >>> F.adaptive_max_pool3d(torch.arange(64.0).view(1, 1, 4, 4, 4), 1).flatten()
        tensor([63.])
    """
    result = aten.adaptive_max_pool3d(input, _full_size(output_size, input, 3))
    return result if return_indices else result[0]


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: Sizes, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """adaptive_max_pool1d that always returns the indices.

    Args:
        input (Tensor): the input.
        output_size (Sizes): the size of the result.
        return_indices (bool): whether to return the indices of the maxima, too.

    Example:
        >>> F.adaptive_max_pool1d_with_indices(torch.arange(4.0).view(1, 1, 4), 1)[1].flatten()
        tensor([3])
    """
    return adaptive_max_pool1d(input, output_size, True)


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """adaptive_max_pool2d that always returns the indices.

    Args:
        input (Tensor): the input.
        output_size (int | Sequence[int | None] | None): the size of the result; None keeps the input's size.
        return_indices (bool): whether to return the indices of the maxima, too.

    Example:
        >>> F.adaptive_max_pool2d_with_indices(torch.arange(16.0).view(1, 1, 4, 4), 1)[1].flatten()
        tensor([15])
    """
    return adaptive_max_pool2d(input, output_size, True)


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """adaptive_max_pool3d that always returns the indices.

    Args:
        input (Tensor): the input.
        output_size (int | Sequence[int | None] | None): the size of the result; None keeps the input's size.
        return_indices (bool): whether to return the indices of the maxima, too.

    Example:
        >>> F.adaptive_max_pool3d_with_indices(torch.arange(64.0).view(1, 1, 4, 4, 4), 1)[1].flatten()
        tensor([63])
    """
    return adaptive_max_pool3d(input, output_size, True)


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Put maxima back at the indices that max_pool1d returned; zero elsewhere.

    Args:
        input (Tensor): the input.
        indices (Tensor): the indices that the max pooling returned.
        kernel_size (Sizes): the size of the window.
        stride (Sizes | None): the step between windows; the kernel size if None.
        padding (Sizes): the padding on each side.
        output_size (Sequence[int] | None): the size of the result; None for the smallest one that fits.

    Example:
        >>> F.max_unpool1d(*F.max_pool1d(torch.arange(4.0).view(1, 1, 4), 2, return_indices=True), 2).shape
        torch.Size([1, 1, 4])
    """
    return _max_unpool(1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Put maxima back at the indices that max_pool2d returned; zero elsewhere.

    Args:
        input (Tensor): the input.
        indices (Tensor): the indices that the max pooling returned.
        kernel_size (Sizes): the size of the window.
        stride (Sizes | None): the step between windows; the kernel size if None.
        padding (Sizes): the padding on each side.
        output_size (Sequence[int] | None): the size of the result; None for the smallest one that fits.

    Example:
        >>> F.max_unpool2d(*F.max_pool2d(torch.arange(16.0).view(1, 1, 4, 4), 2, return_indices=True), 2).shape
        torch.Size([1, 1, 4, 4])
    """
    return _max_unpool(2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Put maxima back at the indices that max_pool3d returned; zero elsewhere.

    Args:
        input (Tensor): the input.
        indices (Tensor): the indices that the max pooling returned.
        kernel_size (Sizes): the size of the window.
        stride (Sizes | None): the step between windows; the kernel size if None.
        padding (Sizes): the padding on each side.
        output_size (Sequence[int] | None): the size of the result; None for the smallest one that fits.

    Example:
        >>> F.max_unpool3d(*F.max_pool3d(torch.arange(64.0).view(1, 1, 4, 4, 4), 2, return_indices=True), 2).shape
        torch.Size([1, 1, 4, 4, 4])
    """
    return _max_unpool(3, input, indices, kernel_size, stride, padding, output_size)


def _max_unpool(dims: int, input: Tensor, indices: Tensor, kernel_size, stride, padding, output_size) -> Tensor:
    if input.shape != indices.shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(input.shape)}) "
            f"but got indices tensor with shape: {list(indices.shape)}"
        )
    if input.dim() not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"Input to max_unpooling{dims}d should be a {dims + 1}d or {dims + 2}d Tensor, but got a tensor with {input.dim()} "
            "dimensions."
        )
    kernel, borders = as_tuple(kernel_size, dims), as_tuple(padding, dims)
    steps = kernel if stride is None else as_tuple(stride, dims)
    sizes = _unpooled_size(input, kernel, steps, borders, output_size)
    lead = list(input.shape[: input.dim() - dims])
    count = 1
    for size in sizes:
        count *= size
    positions = values_of(indices)
    if positions is not None and positions.size and not 0 <= positions.min() <= positions.max() < count:
        raise RuntimeError(
            f"Found an invalid max index: {positions.max()} (output volumes are of size {'x'.join(map(str, sizes))})"
        )
    DETERMINISM.alert(f"max_unpooling{max(dims, 2)}d_forward_out")
    flat = input.new_zeros([*lead, count]).scatter(-1, indices.reshape([*lead, -1]), input.reshape([*lead, -1]))
    return flat.view([*lead, *sizes])


def _unpooled_size(input: Tensor, kernel, stride, padding, output_size) -> list[int]:
    dims = len(kernel)
    default = [
        (size - 1) * step + width - 2 * border
        for size, step, width, border in zip(input.shape[-dims:], stride, kernel, padding, strict=True)
    ]
    if output_size is None:
        return default
    if len(output_size) not in (dims, input.dim()):
        raise ValueError(
            f"output_size should be a sequence containing {dims} or {dims + 2} elements, but it has a length of "
            f"'{len(output_size)}'"
        )
    wanted = list(output_size)[-dims:]
    for size, usual, step in zip(wanted, default, stride, strict=True):
        if not usual - step < size < usual + step:
            raise ValueError(f"invalid output_size {wanted}: each size must lie strictly within a stride of {default}")
    return wanted
