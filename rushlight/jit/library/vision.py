"""Resizing and sampling of images in TorchScript's language. The signatures are those of `nn.functional`."""

from __future__ import annotations

import math
import warnings
from typing import List, Optional  # noqa: UP035 (scripted code)

from rushlight.core.tensor import Tensor
from rushlight.jit.library.pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from rushlight.jit.overloads import overload
from rushlight.nn import functional as F
from rushlight.nn.functional.common import aten


def resized(
    input: Tensor, size: Optional[List[int]], scale_factor: Optional[List[float]], mode: str, align_corners: Optional[bool],
    recompute_scale_factor: Optional[bool], antialias: bool,
) -> Tensor:
    """Return `interpolate` with lists."""
    dims = input.dim() - 2
    corners = False if align_corners is None else align_corners
    sizes: List[int] = []
    scales: List[Optional[float]] = []
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    elif size is not None:
        sizes = size * dims if len(size) == 1 else size
        for _ in range(dims):
            scales.append(None)
    elif scale_factor is not None:
        factors = scale_factor * dims if len(scale_factor) == 1 else scale_factor
        for index in range(dims):
            factor = factors[index]
            sizes.append(int(math.floor(float(input.size(index + 2)) * factor)))
            if recompute_scale_factor is not None and recompute_scale_factor:
                scales.append(None)
            else:
                scales.append(factor)
    else:
        raise ValueError("either size or scale_factor should be defined")
    if mode == "area":
        if dims == 1:
            return adaptive_avg_pool1d(input, sizes)
        if dims == 2:
            return adaptive_avg_pool2d(input, list_of_optional(sizes))
        return adaptive_avg_pool3d(input, list_of_optional(sizes))
    if mode == "nearest" and dims == 1:
        return aten.upsample_nearest1d(input, sizes, scales[0])
    if mode == "nearest" and dims == 2:
        return aten.upsample_nearest2d(input, sizes, scales[0], scales[1])
    if mode == "nearest" and dims == 3:
        return aten.upsample_nearest3d(input, sizes, scales[0], scales[1], scales[2])
    if mode == "nearest-exact" and dims == 1:
        return aten._upsample_nearest_exact1d(input, sizes, scales[0])
    if mode == "nearest-exact" and dims == 2:
        return aten._upsample_nearest_exact2d(input, sizes, scales[0], scales[1])
    if mode == "nearest-exact" and dims == 3:
        return aten._upsample_nearest_exact3d(input, sizes, scales[0], scales[1], scales[2])
    if mode == "linear" and dims == 1:
        return aten.upsample_linear1d(input, sizes, corners, scales[0])
    if mode == "bilinear" and dims == 2:
        if antialias:
            return aten._upsample_bilinear2d_aa(input, sizes, corners, scales[0], scales[1])
        return aten.upsample_bilinear2d(input, sizes, corners, scales[0], scales[1])
    if mode == "bicubic" and dims == 2:
        if antialias:
            return aten._upsample_bicubic2d_aa(input, sizes, corners, scales[0], scales[1])
        return aten.upsample_bicubic2d(input, sizes, corners, scales[0], scales[1])
    if mode == "trilinear" and dims == 3:
        return aten.upsample_trilinear3d(input, sizes, corners, scales[0], scales[1], scales[2])
    raise NotImplementedError("Input Error: a {}D input can't be resized with mode {}".format(input.dim(), mode))


def list_of_optional(values: List[int]) -> List[Optional[int]]:
    """Return the same numbers in a list of Optional."""
    found: List[Optional[int]] = []
    for value in values:
        found.append(value)
    return found


@overload
def interpolate(input: Tensor, size: Optional[int] = None, scale_factor: Optional[List[float]] = None, mode: str = "nearest",
                align_corners: Optional[bool] = None, recompute_scale_factor: Optional[bool] = None,
                antialias: bool = False) -> Tensor: ...
@overload
def interpolate(input: Tensor, size: Optional[List[int]] = None, scale_factor: Optional[List[float]] = None,
                mode: str = "nearest", align_corners: Optional[bool] = None, recompute_scale_factor: Optional[bool] = None,
                antialias: bool = False) -> Tensor: ...
@overload
def interpolate(input: Tensor, size: Optional[int] = None, scale_factor: Optional[float] = None, mode: str = "nearest",
                align_corners: Optional[bool] = None, recompute_scale_factor: Optional[bool] = None,
                antialias: bool = False) -> Tensor: ...
@overload
def interpolate(input: Tensor, size: Optional[List[int]] = None, scale_factor: Optional[float] = None, mode: str = "nearest",
                align_corners: Optional[bool] = None, recompute_scale_factor: Optional[bool] = None,
                antialias: bool = False) -> Tensor: ...
def interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias):
    sizes: Optional[List[int]] = None
    if isinstance(size, int):
        sizes = [size]
    elif isinstance(size, List[int]):
        sizes = size
    scales: Optional[List[float]] = None
    if isinstance(scale_factor, float):
        scales = [scale_factor]
    elif isinstance(scale_factor, List[float]):
        scales = scale_factor
    return resized(input, sizes, scales, mode, align_corners, recompute_scale_factor, antialias)


def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: Optional[bool] = None
) -> Tensor:
    modes = {"bilinear": 0, "nearest": 1, "bicubic": 2}
    paddings = {"zeros": 0, "border": 1, "reflection": 2}
    if mode not in modes:
        raise ValueError("grid_sample(): expected mode to be bilinear, nearest or bicubic, but got: {}".format(mode))
    if padding_mode not in paddings:
        raise ValueError(
            "grid_sample(): expected padding_mode to be zeros, border, or reflection, but got: {}".format(padding_mode)
        )
    corners = False
    if align_corners is None:
        warnings.warn("grid_sample takes align_corners=False where it is not given", stacklevel=2)
    else:
        corners = align_corners
    return aten.grid_sampler(input, grid, modes[mode], paddings[padding_mode], corners)


def affine_grid(theta: Tensor, size: List[int], align_corners: Optional[bool] = None) -> Tensor:
    corners = False if align_corners is None else align_corners
    return aten.affine_grid_generator(theta, size, corners)


REPLACEMENTS = {F.interpolate: interpolate, F.upsample: interpolate, F.grid_sample: grid_sample, F.affine_grid: affine_grid}
