"""Pooling layers."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.core.lazy_module import lazy_names
from rushlight.core.tensor import Tensor
from rushlight.nn import functional as F
from rushlight.nn.functional.common import as_tuple
from rushlight.nn.modules.module import Module

Sizes = int | Sequence[int]


class _MaxPoolNd(Module):
    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def _options(self) -> tuple:
        return self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPoolNd):
    """The maximum of each window of (N, C, L).

    Args:
        kernel_size (Sizes): the size of the window.
        stride (Sizes | None): the step between windows; the kernel size if None.
        padding (Sizes): the padding on each side.
        dilation (Sizes): the distance between elements of a window.
        return_indices (bool): whether to return the indices of the maxima, too.
        ceil_mode (bool): whether to round the number of windows up, so that the last one may reach past the end.

    Example:
        >>> torch.nn.MaxPool1d(2)(torch.arange(4.0).view(1, 1, 4)).flatten()
        tensor([1., 3.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.max_pool1d(input, *self._options())


class MaxPool2d(_MaxPoolNd):
    """The maximum of each window of (N, C, H, W).

    Args:
        kernel_size (Sizes): the size of the window.
        stride (Sizes | None): the step between windows; the kernel size if None.
        padding (Sizes): the padding on each side.
        dilation (Sizes): the distance between elements of a window.
        return_indices (bool): whether to return the indices of the maxima, too.
        ceil_mode (bool): whether to round the number of windows up, so that the last one may reach past the end.

    Example:
        >>> torch.nn.MaxPool2d(2)(torch.arange(16.0).view(1, 1, 4, 4)).flatten()
        tensor([ 5.,  7., 13., 15.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.max_pool2d(input, *self._options())


class MaxPool3d(_MaxPoolNd):
    """The maximum of each window of (N, C, D, H, W).

    Args:
        kernel_size (Sizes): the size of the window.
        stride (Sizes | None): the step between windows; the kernel size if None.
        padding (Sizes): the padding on each side.
        dilation (Sizes): the distance between elements of a window.
        return_indices (bool): whether to return the indices of the maxima, too.
        ceil_mode (bool): whether to round the number of windows up, so that the last one may reach past the end.

    Example:
        >>> torch.nn.MaxPool3d(2)(torch.arange(64.0).view(1, 1, 4, 4, 4)).flatten()
        tensor([21., 23., 29., 31., 53., 55., 61., 63.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.max_pool3d(input, *self._options())


class _MaxUnpoolNd(Module):
    dims: int

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0) -> None:
        super().__init__()
        self.kernel_size = as_tuple(kernel_size, self.dims)
        self.stride = as_tuple(stride if stride is not None else kernel_size, self.dims)
        self.padding = as_tuple(padding, self.dims)

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        unpool = (F.max_unpool1d, F.max_unpool2d, F.max_unpool3d)[self.dims - 1]
        return unpool(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """Puts maxima back at the indices that MaxPool1d returned.

    Args:
        kernel_size (Sizes): the size of the window.
        stride (Sizes | None): the step between windows; the kernel size if None.
        padding (Sizes): the padding on each side.

    Example:
        >>> torch.nn.MaxUnpool1d(2)(*torch.nn.MaxPool1d(2, return_indices=True)(torch.arange(4.0).view(1, 1, 4))).shape
        torch.Size([1, 1, 4])
    """

    dims = 1


class MaxUnpool2d(_MaxUnpoolNd):
    """Puts maxima back at the indices that MaxPool2d returned.

    Args:
        kernel_size (Sizes): the size of the window.
        stride (Sizes | None): the step between windows; the kernel size if None.
        padding (Sizes): the padding on each side.

    Example:
        >>> torch.nn.MaxUnpool2d(2)(*torch.nn.MaxPool2d(2, return_indices=True)(torch.arange(16.0).view(1, 1, 4, 4))).shape
        torch.Size([1, 1, 4, 4])
    """

    dims = 2


class MaxUnpool3d(_MaxUnpoolNd):
    """Puts maxima back at the indices that MaxPool3d returned.

    Args:
        kernel_size (Sizes): the size of the window.
        stride (Sizes | None): the step between windows; the kernel size if None.
        padding (Sizes): the padding on each side.

    Example:
        >>> torch.nn.MaxUnpool3d(2)(*torch.nn.MaxPool3d(2, return_indices=True)(torch.arange(64.0).view(1, 1, 4, 4, 4))).shape
        torch.Size([1, 1, 4, 4, 4])
    """

    dims = 3


class AvgPool1d(Module):
    """The mean of each window of (N, C, L).

    Args:
        kernel_size (Sizes): the size of the window.
        stride (Sizes | None): the step between windows; the kernel size if None.
        padding (Sizes): the padding on each side.
        ceil_mode (bool): whether to round the number of windows up, so that the last one may reach past the end.
        count_include_pad (bool): whether padding counts in the average.

    Example:
        >>> torch.nn.AvgPool1d(2)(torch.arange(4.0).view(1, 1, 4)).flatten()
        tensor([0.5000, 2.5000])
    """

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = as_tuple(kernel_size, 1)
        self.stride = as_tuple(stride if stride is not None else kernel_size, 1)
        self.padding = as_tuple(padding, 1)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AvgPoolNd(Module):
    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def _options(self) -> tuple:
        window = (self.kernel_size, self.stride, self.padding)
        return *window, self.ceil_mode, self.count_include_pad, self.divisor_override

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(_AvgPoolNd):
    """The mean of each window of (N, C, H, W).

    Args:
        kernel_size (Sizes): the size of the window.
        stride (Sizes | None): the step between windows; the kernel size if None.
        padding (Sizes): the padding on each side.
        ceil_mode (bool): whether to round the number of windows up, so that the last one may reach past the end.
        count_include_pad (bool): whether padding counts in the average.
        divisor_override (int | None): the divisor of the sums, instead of the window's size.

    Example:
        >>> torch.nn.AvgPool2d(2)(torch.arange(16.0).view(1, 1, 4, 4)).flatten()
        tensor([ 2.5000,  4.5000, 10.5000, 12.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool2d(input, *self._options())


class AvgPool3d(_AvgPoolNd):
    """The mean of each window of (N, C, D, H, W).

    Args:
        kernel_size (Sizes): the size of the window.
        stride (Sizes | None): the step between windows; the kernel size if None.
        padding (Sizes): the padding on each side.
        ceil_mode (bool): whether to round the number of windows up, so that the last one may reach past the end.
        count_include_pad (bool): whether padding counts in the average.
        divisor_override (int | None): the divisor of the sums, instead of the window's size.

    Example:
        >>> torch.nn.AvgPool3d(2)(torch.arange(64.0).view(1, 1, 4, 4, 4)).flatten()
        tensor([10.5000, 12.5000, 18.5000, 20.5000, 42.5000, 44.5000, 50.5000, 52.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool3d(input, *self._options())


class _LPPoolNd(Module):
    def __init__(
        self, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def _options(self) -> tuple:
        return float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPoolNd):
    """The norm of each window of (N, C, L).

    Args:
        norm_type (float): the exponent of the norm.
        kernel_size (Sizes): the size of the window.
        stride (Sizes | None): the step between windows; the kernel size if None.
        ceil_mode (bool): whether to round the number of windows up, so that the last one may reach past the end.

    Example:
        >>> torch.nn.LPPool1d(2, 2)(torch.arange(4.0).view(1, 1, 4)).shape
        torch.Size([1, 1, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool1d(input, *self._options())


class LPPool2d(_LPPoolNd):
    """The norm of each window of (N, C, H, W).

    Args:
        norm_type (float): the exponent of the norm.
        kernel_size (Sizes): the size of the window.
        stride (Sizes | None): the step between windows; the kernel size if None.
        ceil_mode (bool): whether to round the number of windows up, so that the last one may reach past the end.

    Example:
        >>> torch.nn.LPPool2d(2, 2)(torch.arange(16.0).view(1, 1, 4, 4)).shape
        torch.Size([1, 1, 2, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool2d(input, *self._options())


class LPPool3d(_LPPoolNd):
    """The norm of each window of (N, C, D, H, W).

    Args:
        norm_type (float): the exponent of the norm.
        kernel_size (Sizes): the size of the window.
        stride (Sizes | None): the step between windows; the kernel size if None.
        ceil_mode (bool): whether to round the number of windows up, so that the last one may reach past the end.

    Example:
        >>> torch.nn.LPPool3d(2, 2)(torch.arange(64.0).view(1, 1, 4, 4, 4)).shape
        torch.Size([1, 1, 2, 2, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool3d(input, *self._options())


class _AdaptiveAvgPoolNd(Module):
    def __init__(self, output_size: int | Sequence[int | None] | None) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """(N, C, L) to (N, C, output_size): means of even windows.

    Args:
        output_size (int | Sequence[int | None] | None): the size of the result; None keeps the input's size.

    Example:
        >>> torch.nn.AdaptiveAvgPool1d(1)(torch.arange(4.0).view(1, 1, 4)).flatten()
        tensor([1.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """(N, C, H, W) to (N, C, *output_size): means of even windows.

    Args:
        output_size (int | Sequence[int | None] | None): the size of the result; None keeps the input's size.

    Example:
        >>> torch.nn.AdaptiveAvgPool2d(1)(torch.arange(16.0).view(1, 1, 4, 4)).flatten()
        tensor([7.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """(N, C, D, H, W) to (N, C, *output_size): means of even windows.

    Args:
        output_size (int | Sequence[int | None] | None): the size of the result; None keeps the input's size.

    Example:
        >>> torch.nn.AdaptiveAvgPool3d(1)(torch.arange(64.0).view(1, 1, 4, 4, 4)).flatten()
        tensor([31.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool3d(input, self.output_size)


class _AdaptiveMaxPoolNd(Module):
    def __init__(self, output_size: int | Sequence[int | None] | None, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """(N, C, L) to (N, C, output_size): maxima of even windows.

    Args:
        output_size (int | Sequence[int | None] | None): the size of the result; None keeps the input's size.
        return_indices (bool): whether to return the indices of the maxima, too.

    Example:
        >>> torch.nn.AdaptiveMaxPool1d(1)(torch.arange(4.0).view(1, 1, 4)).flatten()
        tensor([3.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """(N, C, H, W) to (N, C, *output_size): maxima of even windows.

    Args:
        output_size (int | Sequence[int | None] | None): the size of the result; None keeps the input's size.
        return_indices (bool): whether to return the indices of the maxima, too.

    Example:
        >>> torch.nn.AdaptiveMaxPool2d(1)(torch.arange(16.0).view(1, 1, 4, 4)).flatten()
        tensor([15.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """(N, C, D, H, W) to (N, C, *output_size): maxima of even windows.

    Args:
        output_size (int | Sequence[int | None] | None): the size of the result; None keeps the input's size.
        return_indices (bool): whether to return the indices of the maxima, too.

    Example:
        >>> torch.nn.AdaptiveMaxPool3d(1)(torch.arange(64.0).view(1, 1, 4, 4, 4)).flatten()
        tensor([63.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)


# PyTorch's module of this name also has these classes; they are imported lazily.
__getattr__, __dir__ = lazy_names(globals(), {
    "rushlight.nn.modules.fractional_pooling": ("FractionalMaxPool2d", "FractionalMaxPool3d"),
})  # fmt: skip
