"""Fractional max pooling layers (Graham 2014)."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.core.tensor import Tensor
from rushlight.nn import functional as F
from rushlight.nn.functional.common import as_tuple
from rushlight.nn.modules.module import Module

Sizes = int | Sequence[int]


class _FractionalMaxPoolNd(Module):
    """Max pooling in windows at random positions. ValueError unless exactly one of output_size and output_ratio is given."""

    dims: int

    def __init__(
        self,
        kernel_size: Sizes,
        output_size: Sizes | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        name = self._get_name()
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        self.kernel_size = as_tuple(kernel_size, self.dims)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else as_tuple(output_size, self.dims)
        self.output_ratio = None if output_ratio is None else as_tuple(output_ratio, self.dims)
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        pool = F.fractional_max_pool2d if self.dims == 2 else F.fractional_max_pool3d
        return pool(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples
        )


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """(N, C, H, W) to (N, C, H', W') maxima; the new sizes are output_size, or the input's size times output_ratio.

    Args:
        kernel_size (Sizes): the size of the window.
        output_size (Sizes | None): the size of the result; None if `output_ratio` is given.
        output_ratio (float | Sequence[float] | None): the output's size as a share of the input's.
        return_indices (bool): whether to return the indices of the maxima, too.

    Example:
        >>> torch.nn.FractionalMaxPool2d(2, output_size=2)(torch.arange(16.0).view(1, 1, 4, 4)).shape
        torch.Size([1, 1, 2, 2])
    """

    dims = 2


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """(N, C, T, H, W) to (N, C, T', H', W') maxima; the new sizes are output_size, or the input's size times output_ratio.

    Args:
        kernel_size (Sizes): the size of the window.
        output_size (Sizes | None): the size of the result; None if `output_ratio` is given.
        output_ratio (float | Sequence[float] | None): the output's size as a share of the input's.
        return_indices (bool): whether to return the indices of the maxima, too.

    Example:
        >>> torch.nn.FractionalMaxPool3d(2, output_size=2)(torch.arange(64.0).view(1, 1, 4, 4, 4)).shape
        torch.Size([1, 1, 2, 2, 2])
    """

    dims = 3
