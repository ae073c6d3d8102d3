"""Sampling images and volumes at the points of a grid (Jaderberg et al. 2015)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from rushlight.core.tensor import Tensor
from rushlight.nn.functional.common import aten

MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Return the values of (N, C, H, W) or (N, C, D, H, W) at the points of (N, ..., 2 or 3), which lie in [-1, 1] inside.

    -1 and 1 are the centres of the outermost elements if `align_corners`, their outer edges otherwise. Raises ValueError
    for an unknown mode ("bilinear", "nearest", "bicubic") or padding mode ("zeros", "border", "reflection").

    Args:
        input (Tensor): the input.
        grid (Tensor): the position to read for each output, x first, from -1 to 1.
        mode (str): "bilinear", "nearest" or "bicubic".
        padding_mode (str): "zeros", "border" or "reflection".
        align_corners (bool | None): whether -1 and 1 are the centres of the corner elements, instead of their outer edges.

    Example:
        >>> F.grid_sample(torch.ones(1, 1, 2, 2), torch.zeros(1, 1, 1, 2), align_corners=False)
        tensor([[[[1.]]]])
    """
    if mode not in MODES:
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', "
            f"but got: '{mode}'"
        )
    if padding_mode not in PADDING_MODES:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', "
            f"but got: '{padding_mode}'"
        )
    align_corners = _default_align_corners(align_corners, "grid_sample")
    return aten.grid_sampler.default(input, grid, MODES[mode], PADDING_MODES[padding_mode], align_corners)


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Return the grid for `grid_sample` that affine maps make: (N, 2, 3) and (N, C, H, W), or (N, 3, 4) and (N, C, D, H, W).

    Raises ValueError for shapes that do not fit, for sizes that are not positive and for integer dtypes.

    Args:
        theta (Tensor): affine maps, `(N, 2, 3)` or `(N, 3, 4)`.
        size (Sequence[int]): the size of the images or volumes, with batch and channels.
        align_corners (bool | None): whether -1 and 1 are the centres of the corner elements, instead of their outer edges.

    Example:
        >>> F.affine_grid(torch.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]), (1, 1, 2, 2), align_corners=False).shape
        torch.Size([1, 2, 2, 2])
    """
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    _check_theta(theta, list(size))
    align_corners = _default_align_corners(align_corners, "affine_grid")
    if align_corners and min(size[2:]) == 1:
        warnings.warn("affine_grid with align_corners=True has only one point, 0, along a size of 1", stacklevel=2)
    return aten.affine_grid_generator.default(theta, list(size), align_corners)


def _check_theta(theta: Tensor, size: list[int]) -> None:
    dims = len(size) - 2
    if dims not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. "
            f"Got size {size}."
        )
    if theta.dim() != 3 or list(theta.shape[-2:]) != [dims, dims + 1]:
        raise ValueError(
            f"Expected a batch of {dims}D affine matrices of shape Nx{dims}x{dims + 1} for size {size}. "
            f"Got {theta.shape}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")


def _default_align_corners(align_corners: bool | None, name: str) -> bool:
    if align_corners is None:
        warnings.warn(
            f"Default {name} behavior has changed to align_corners=False since 1.3.0. Please specify "
            "align_corners=True if the old behavior is desired.",
            stacklevel=3,
        )
        return False
    return align_corners
