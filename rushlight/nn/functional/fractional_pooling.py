"""Fractional max pooling (Graham 2014): windows at random positions, for any ratio of output to input."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.core.tensor import Tensor
from rushlight.nn.functional.common import as_tuple, aten

Sizes = int | Sequence[int]


def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """Return the maxima of (N, C, H, W) or (C, H, W) in windows at random positions, with their indices if `return_indices`.

    There are `output_size` windows, or the input's size times `output_ratio`. Raises ValueError when neither is given.

    Args:
        input (Tensor): the input.
        kernel_size (Sizes): the size of the window.
        output_size (Sizes | None): the size of the result; None if `output_ratio` is given.
        output_ratio (float | Sequence[float] | None): the output's size as a share of the input's.
        return_indices (bool): whether to return the indices of the maxima, too.

    Example:
        >>> F.fractional_max_pool2d(torch.arange(16.0).view(1, 1, 4, 4), 2, output_size=2).shape
        torch.Size([1, 1, 2, 2])
    """
    result = _pool(2, input, kernel_size, output_size, output_ratio, _random_samples)
    return result if return_indices else result[0]


def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """fractional_max_pool2d for (N, C, T, H, W) or (C, T, H, W).

    Args:
        input (Tensor): the input.
        kernel_size (Sizes): the size of the window.
        output_size (Sizes | None): the size of the result; None if `output_ratio` is given.
        output_ratio (float | Sequence[float] | None): the output's size as a share of the input's.
        return_indices (bool): whether to return the indices of the maxima, too.

    Example:
        >>> F.fractional_max_pool3d(torch.arange(64.0).view(1, 1, 4, 4, 4), 2, output_size=2).shape
        torch.Size([1, 1, 2, 2, 2])
    """
    result = _pool(3, input, kernel_size, output_size, output_ratio, _random_samples)
    return result if return_indices else result[0]


def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """fractional_max_pool2d that always returns the indices.

    Args:
        input (Tensor): the input.
        kernel_size (Sizes): the size of the window.
        output_size (Sizes | None): the size of the result; None if `output_ratio` is given.
        output_ratio (float | Sequence[float] | None): the output's size as a share of the input's.
        return_indices (bool): whether to return the indices of the maxima, too.

    Example:
        >>> F.fractional_max_pool2d_with_indices(torch.arange(16.0).view(1, 1, 4, 4), 2, output_size=2)[0].shape
        torch.Size([1, 1, 2, 2])
    """
    return _pool(2, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """fractional_max_pool3d that always returns the indices.

    Args:
        input (Tensor): the input.
        kernel_size (Sizes): the size of the window.
        output_size (Sizes | None): the size of the result; None if `output_ratio` is given.
        output_ratio (float | Sequence[float] | None): the output's size as a share of the input's.
        return_indices (bool): whether to return the indices of the maxima, too.

    Example:
        >>> F.fractional_max_pool3d_with_indices(torch.arange(64.0).view(1, 1, 4, 4, 4), 2, output_size=2)[0].shape
        torch.Size([1, 1, 2, 2, 2])
    """
    return _pool(3, input, kernel_size, output_size, output_ratio, _random_samples)


def _pool(dims: int, input: Tensor, kernel_size, output_size, output_ratio, samples: Tensor | None):
    if output_size is None and output_ratio is None:
        raise ValueError(f"fractional_max_pool{dims}d requires specifying either an output_size or an output_ratio")
    if output_size is None:
        ratios = as_tuple(output_ratio, dims)
        if len(ratios) > dims:
            raise ValueError(
                f"fractional_max_pool{dims}d requires output_ratio to either be a single Int or tuple of Ints."
            )
        output_size = [int(size * ratio) for size, ratio in zip(input.shape[-dims:], ratios, strict=True)]
    if samples is None:
        batch = 1 if input.dim() == dims + 1 else input.shape[0]
        samples = aten.rand.default([batch, input.shape[-dims - 1], dims], dtype=input.dtype, device=input.device)
    pool = aten.fractional_max_pool2d if dims == 2 else aten.fractional_max_pool3d
    return pool(input, as_tuple(kernel_size, dims), as_tuple(output_size, dims), samples)
