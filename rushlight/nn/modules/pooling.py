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
    """The maximum of each window of (N, C, L)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.max_pool1d(input, *self._options())


class MaxPool2d(_MaxPoolNd):
    """The maximum of each window of (N, C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.max_pool2d(input, *self._options())


class MaxPool3d(_MaxPoolNd):
    """The maximum of each window of (N, C, D, H, W)."""

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
    """Puts maxima back to the places that MaxPool1d gave."""

    dims = 1


class MaxUnpool2d(_MaxUnpoolNd):
    """Puts maxima back to the places that MaxPool2d gave."""

    dims = 2


class MaxUnpool3d(_MaxUnpoolNd):
    """Puts maxima back to the places that MaxPool3d gave."""

    dims = 3


class AvgPool1d(Module):
    """The mean of each window of (N, C, L)."""

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
    """The mean of each window of (N, C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool2d(input, *self._options())


class AvgPool3d(_AvgPoolNd):
    """The mean of each window of (N, C, D, H, W)."""

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
    """The norm of each window of (N, C, L)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool1d(input, *self._options())


class LPPool2d(_LPPoolNd):
    """The norm of each window of (N, C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool2d(input, *self._options())


class LPPool3d(_LPPoolNd):
    """The norm of each window of (N, C, D, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool3d(input, *self._options())


class _AdaptiveAvgPoolNd(Module):
    def __init__(self, output_size: int | Sequence[int | None] | None) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """(N, C, L) to (N, C, output_size): means of even windows."""

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """(N, C, H, W) to (N, C, *output_size): means of even windows."""

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """(N, C, D, H, W) to (N, C, *output_size): means of even windows."""

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
    """(N, C, L) to (N, C, output_size): maxima of even windows."""

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """(N, C, H, W) to (N, C, *output_size): maxima of even windows."""

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """(N, C, D, H, W) to (N, C, *output_size): maxima of even windows."""

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)


# Classes that PyTorch has in this module.
__getattr__, __dir__ = lazy_names(globals(), {
    "rushlight.nn.modules.fractional_pooling": ("FractionalMaxPool2d", "FractionalMaxPool3d"),
})  # fmt: skip
