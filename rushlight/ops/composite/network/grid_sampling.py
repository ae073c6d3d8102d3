"""grid_sampler: values of images or volumes at given points (Jaderberg et al. 2015), and affine grids of points.

Points are (..., x, y) or (..., x, y, z), where -1 and 1 are the borders of the input: the centres of the outermost elements
with align_corners, their outer edges without.
"""

from __future__ import annotations

import itertools

from rushlight.core.dtype import bool_, int64
from rushlight.core.tensor import Tensor
from rushlight.ops.composite.network.common import arange, aten
from rushlight.ops.composite.network.upsampling import CUBIC
from rushlight.ops.registry import composite

_BILINEAR, _NEAREST, _BICUBIC = 0, 1, 2
_ZEROS, _BORDER, _REFLECTION = 0, 1, 2


def _check(input: Tensor, grid: Tensor, interpolation_mode: int, dims: int | None = None) -> None:
    if input.dtype is not grid.dtype:
        raise RuntimeError(
            f"grid_sampler(): expected input and grid to have same dtype, but input has {input.dtype} and grid has {grid.dtype}"
        )
    if input.shape[:1] != grid.shape[:1]:
        raise RuntimeError(
            "grid_sampler(): expected grid and input to have same batch size, but got input with sizes "
            f"{list(input.shape)} and grid with sizes {list(grid.shape)}"
        )
    if grid.shape[-1:] != (input.dim() - 2,):
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {input.dim() - 2} in last dimension, but got grid with sizes "
            f"{list(grid.shape)}"
        )
    if input.dim() not in (4, 5) or input.dim() != grid.dim() or (dims is not None and input.dim() != dims + 2):
        raise RuntimeError(
            "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got input with sizes "
            f"{list(input.shape)} and grid with sizes {list(grid.shape)}"
        )
    for dim, size in enumerate(input.shape[2:], 2):
        if size <= 0:
            raise RuntimeError(
                "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
                f"{list(input.shape)} with dimension {dim} being empty"
            )
    if interpolation_mode == _BICUBIC and input.dim() != 4:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")


def _to_pixels(coordinate: Tensor, size: int, align_corners: bool) -> Tensor:
    if align_corners:
        return (coordinate + 1) / 2 * (size - 1)
    return ((coordinate + 1) * size - 1) / 2


def _reflect(coordinate: Tensor, size: int, align_corners: bool) -> Tensor:
    """Return the coordinate reflected at the borders until it lies between them."""
    low, span = (0.0, size - 1) if align_corners else (-0.5, size)
    if not span:
        return aten.zeros_like.default(coordinate)
    distance = (coordinate - low).abs()
    rest = distance.fmod(span)
    flips = (distance.detach() / span).floor()
    return aten.where.self(flips.fmod(2) == 0, rest + low, span - rest + low)


def _move_inside(coordinate: Tensor, size: int, padding_mode: int, align_corners: bool) -> Tensor:
    if padding_mode == _ZEROS:
        return coordinate
    if padding_mode == _REFLECTION:
        coordinate = _reflect(coordinate, size, align_corners)
    return coordinate.masked_fill(coordinate.isnan(), 0).clamp(0, size - 1)


def _values_at(input: Tensor, positions: list[Tensor]) -> Tensor:
    """Return the input (N, C, sizes...) at integer coordinates, each (N, points...), in the order of the sizes; 0 outside."""
    sizes = input.shape[2:]
    flat, inside = None, None
    for position, size in zip(positions, sizes, strict=True):
        within = (position >= 0) & (position < size)
        whole = position.masked_fill(~within, 0).to(int64)
        flat = whole if flat is None else flat * size + whole
        inside = within if inside is None else inside & within
    batch, channels = input.shape[:2]
    index = flat.flatten(1).unsqueeze(1).expand([batch, channels, -1])
    values = input.flatten(2).gather(2, index).reshape([batch, channels, *flat.shape[1:]])
    return values.masked_fill(~inside.unsqueeze(1), 0)


def _sample_linearly(input: Tensor, coordinates: list[Tensor]) -> Tensor:
    lows = [coordinate.detach().floor() for coordinate in coordinates]
    total = None
    for corner in itertools.product((0, 1), repeat=len(lows)):
        weight = None
        for coordinate, low, upper in zip(coordinates, lows, corner, strict=True):
            share = coordinate - low if upper else low + 1 - coordinate
            weight = share if weight is None else weight * share
        positions = [low + upper for low, upper in zip(lows, corner, strict=True)]
        part = _values_at(input, positions) * weight.unsqueeze(1)
        total = part if total is None else total + part
    return total


def _cubic_shares(t: Tensor) -> list[Tensor]:
    """Return the cubic weights of a point's four neighbours; `t` is the distance from the second of them."""

    def near(x: Tensor) -> Tensor:
        return ((CUBIC + 2) * x - (CUBIC + 3)) * x * x + 1

    def far(x: Tensor) -> Tensor:
        return ((CUBIC * x - 5 * CUBIC) * x + 8 * CUBIC) * x - 4 * CUBIC

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _sample_cubically(input: Tensor, coordinates: list[Tensor], padding_mode: int, align_corners: bool) -> Tensor:
    lows = [coordinate.detach().floor() for coordinate in coordinates]
    shares = [_cubic_shares(coordinate - low) for coordinate, low in zip(coordinates, lows, strict=True)]
    total = None
    for row, column in itertools.product(range(4), repeat=2):
        positions = [
            _move_inside(low + step - 1, size, padding_mode, align_corners)
            for low, step, size in zip(lows, (row, column), input.shape[2:], strict=True)
        ]
        part = _values_at(input, positions) * (shares[0][row] * shares[1][column]).unsqueeze(1)
        total = part if total is None else total + part
    return total


def _sample(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    sizes = input.shape[2:]
    # Points list x first: the last number is the coordinate of the first dimension.
    coordinates = [
        _to_pixels(grid.select(-1, len(sizes) - 1 - axis), size, align_corners) for axis, size in enumerate(sizes)
    ]
    if interpolation_mode == _BICUBIC:
        return _sample_cubically(input, coordinates, padding_mode, align_corners)
    coordinates = [
        _move_inside(coordinate, size, padding_mode, align_corners)
        for coordinate, size in zip(coordinates, sizes, strict=True)
    ]
    if interpolation_mode == _NEAREST:
        values = _values_at(input, [coordinate.detach().round() for coordinate in coordinates])
        return values + _zeros_of(coordinates[0]).unsqueeze(1) if grid.requires_grad else values
    return _sample_linearly(input, coordinates)


def _zeros_of(coordinate: Tensor) -> Tensor:
    """Return zeros whose gradient is 0."""
    return coordinate.masked_fill(aten.ones_like.default(coordinate, dtype=bool_), 0)


_ARGUMENTS = "(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor"


@composite("grid_sampler" + _ARGUMENTS)
def grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners):
    _check(input, grid, interpolation_mode)
    return _sample(input, grid, interpolation_mode, padding_mode, align_corners)


@composite("grid_sampler_2d" + _ARGUMENTS)
def grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners):
    _check(input, grid, interpolation_mode, 2)
    return _sample(input, grid, interpolation_mode, padding_mode, align_corners)


@composite("grid_sampler_3d" + _ARGUMENTS)
def grid_sampler_3d(input, grid, interpolation_mode, padding_mode, align_corners):
    _check(input, grid, interpolation_mode, 3)
    return _sample(input, grid, interpolation_mode, padding_mode, align_corners)


def _base_coordinates(theta: Tensor, size: int, align_corners: bool) -> Tensor:
    """Return the coordinates of the elements of one dimension."""
    steps = arange(theta, size).to(theta.dtype)
    if align_corners:
        return steps * (2 / (size - 1)) - 1 if size > 1 else aten.zeros_like.default(steps)
    return (steps * 2 + 1) / size - 1


@composite("affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor")
def affine_grid_generator(theta, size, align_corners):
    if len(size) not in (4, 5):
        raise RuntimeError(
            f"AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs, but got a size of {len(size)} dimensions"
        )
    sizes = list(size[2:])
    parts = []
    for axis in range(len(sizes) - 1, -1, -1):
        shape = [-1 if dim == axis else 1 for dim in range(len(sizes))]
        parts.append(_base_coordinates(theta, sizes[axis], align_corners).reshape(shape).expand(sizes))
    parts.append(aten.full.default(sizes, 1, dtype=theta.dtype, device=theta.device))
    points = aten.stack.default(parts, -1).reshape([1, -1, len(parts)])
    return points.matmul(theta.transpose(1, 2)).reshape([theta.shape[0], *sizes, len(sizes)])
