"""Upsampling, one dimension after the other: each output is a weighted sum of one, two or four neighbours."""

from __future__ import annotations

import math
from collections.abc import Callable

from rushlight.core.dtype import dtype, float32, float64, int64, uint8
from rushlight.core.size import short_fraction
from rushlight.core.tensor import Tensor
from rushlight.ops.composite.network.common import arange, in_order_of, quotient, spread
from rushlight.ops.meta.checks import is_channels_last, not_implemented
from rushlight.ops.packet import namespaces
from rushlight.ops.registry import composite

aten = namespaces.namespace("aten")
CUBIC = -0.75  # Keys 1981: the slope of the cubic convolution kernel at distance 1


def _ratio(x, size: int, output: int, scale: float | None, align_corners: bool):
    """Return input elements per output element: a number, or a tensor if a size is symbolic."""
    if align_corners:
        return quotient(x, size - 1, output - 1) if output > 1 else 0.0
    return 1.0 / scale if scale is not None and scale > 0 else quotient(x, size, output)


def scaled_size(size: int, scale: float) -> int:
    """Return `int(size * scale)`, also for symbolic sizes where the scale is a short fraction, so that the product is exact."""
    fraction = short_fraction(float(scale)) if scale >= 0 else None
    return int(size * scale) if fraction is None else size * fraction[0] // fraction[1]


def _output_sizes(x, output_size, dims: int) -> list[int]:
    output = spread(output_size, dims, "output_size")
    if x.dim() != dims + 2:
        raise RuntimeError(
            f"It is expected input_size equals to {dims + 2}, but got size {x.dim()} (input of shape {list(x.shape)})"
        )
    if any(size < 1 for size in (*x.shape[1:], *output)):
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input {list(x.shape)} and output {output}"
        )
    return output


def _nearest_positions(x, size: int, output: int, scale: float | None, exact: bool):
    # ATen's image kernel does the same: it checks the sizes first.
    if not exact and x.dim() == 4 and scale not in (None, 2.0) and output == 2 * size:
        return aten.div.Tensor_mode(arange(x, output), 2, rounding_mode="floor")
    index = arange(x, output).to(float32) + (0.5 if exact else 0.0)
    return (index * _ratio(x, size, output, scale, False)).to(int64).clamp(max=size - 1)


def _in_memory_order(given: Tensor) -> tuple[Tensor, int]:
    """Return the input permuted to its memory order (channels-last images get channels last), and its first spatial
    dimension."""
    return (given.movedim(1, -1), 1) if is_channels_last(given) else (given, 2)


def _restore_order(x: Tensor, given: Tensor) -> Tensor:
    """Return the result permuted back to the input's dimension order; a copy where nothing was resized."""
    if not is_channels_last(given):
        return x.clone() if x is given else x
    return x.movedim(-1, 1) if x.shape[1:-1] != given.shape[2:] else given.clone()


def _nearest(given, output_size, scales, exact: bool):
    x, first = _in_memory_order(given)
    for dim, output, scale in zip(range(first, 6), _output_sizes(given, output_size, len(scales)), scales, strict=False):
        size = x.shape[dim]
        if size != output:
            x = x.index_select(dim, _nearest_positions(x, size, output, scale, exact))
    return _restore_order(x, given)


def _source_coordinates(x, size: int, output: int, scale: float | None, align_corners: bool):
    """Return the input coordinate of each output's centre, as floats of at least 32 bits."""
    index = arange(x, output).to(exact_type(x))
    ratio = _ratio(x, size, output, scale, align_corners)
    return index * ratio if align_corners else (index + 0.5) * ratio - 0.5


def exact_type(x: Tensor) -> dtype:
    """Return the dtype for calculating coordinates and weights."""
    return float64 if x.dtype in (float64, uint8) else float32


def _linear_taps(coordinates, size: int):
    coordinates = coordinates.clamp(min=0)
    low = coordinates.to(int64).clamp(max=size - 1)
    weight = coordinates - low
    return [(low, 1 - weight), ((low + 1).clamp(max=size - 1), weight)]


def _cubic_taps(coordinates, size: int):
    low = coordinates.floor()
    after = coordinates - low
    before = 1 - after
    weights = [_cubic_outer(after + 1), _cubic_inner(after), _cubic_inner(before), _cubic_outer(before + 1)]
    positions = [(low.to(int64) + shift).clamp(0, size - 1) for shift in range(-1, 3)]
    return list(zip(positions, weights, strict=True))


def _cubic_inner(x):
    return ((CUBIC + 2) * x - (CUBIC + 3)) * x * x + 1


def _cubic_outer(x):
    return ((CUBIC * x - 5 * CUBIC) * x + 8 * CUBIC) * x - 4 * CUBIC


def check_weighted(x: Tensor, dims: int) -> None:
    """Raise NotImplementedError for dtypes without weighted sums: all integers but uint8 images."""
    if x.dtype.is_integral and not (x.dtype is uint8 and dims == 2):
        raise not_implemented("interpolate", x.dtype)


def in_fixed_point(weights: Tensor) -> tuple[Tensor, Tensor]:
    """Return one dimension's weights as 16-bit integers, and their unit. They are stored in float64, which sums products with
    bytes exactly. The unit is the largest power of two, at most 2 ** 22, with which all weights fit."""
    unit = aten.exp2.default(aten.log2.default(32767.5 / weights.max()).floor().clamp(max=22))
    scaled = weights * unit
    return (scaled.abs() + 0.5).floor() * scaled.sign(), unit


def to_bytes(sums: Tensor, unit: Tensor) -> Tensor:
    """Round fixed-point sums of bytes back to bytes."""
    return (sums / unit + 0.5).floor().clamp(0, 255)


def _interpolate_bytes(given: Tensor, output_size, scales, align_corners: bool, taps: Callable) -> Tensor:
    """Do the same as `_interpolate` for uint8 images: columns first, and rounded to bytes between the two passes."""
    x, sizes = given.to(float64), _output_sizes(given, output_size, 2)
    for dim, output, scale in zip((3, 2), reversed(sizes), reversed(scales), strict=True):
        size = x.shape[dim]
        if size == output:
            continue
        positions, weights = zip(*taps(_source_coordinates(given, size, output, scale, align_corners), size), strict=True)
        weights, unit = in_fixed_point(aten.stack.default(weights))
        shape = [-1, 1] if dim == 2 else [-1]
        pairs = zip(positions, weights.unbind(), strict=True)
        parts = [x.index_select(dim, position) * by.view(shape) for position, by in pairs]
        x = to_bytes(sum(parts[1:], parts[0]), unit)
    return in_order_of(given, x.to(uint8))


def _interpolate(given, output_size, scales, align_corners: bool, taps: Callable):
    check_weighted(given, len(scales))
    if given.dtype is uint8:
        return _interpolate_bytes(given, output_size, scales, align_corners, taps)
    x, first = _in_memory_order(given)
    for dim, output, scale in zip(range(first, 6), _output_sizes(given, output_size, len(scales)), scales, strict=False):
        size = x.shape[dim]
        # Linear interpolation to the same size is the identity whatever the scale is, in ATen too.
        if size == output and (align_corners or taps is _linear_taps or scale in (None, 1.0)):
            continue
        shape = [output] + [1] * (x.dim() - dim - 1)
        parts = [
            x.index_select(dim, positions) * weights.to(x.dtype).view(shape)
            for positions, weights in taps(_source_coordinates(x, size, output, scale, align_corners), size)
        ]
        x = sum(parts[1:], parts[0])
    return _restore_order(x, given)


_SCALES = {1: "float? scales=None", 2: "float? scales_h=None, float? scales_w=None",
           3: "float? scales_d=None, float? scales_h=None, float? scales_w=None"}  # fmt: skip


def _define_nearest(name: str, dims: int, exact: bool) -> None:
    @composite(f"{name}(Tensor self, SymInt[{dims}] output_size, {_SCALES[dims]}) -> Tensor")
    def upsample(self, output_size, *scales, **named):
        return _nearest(self, output_size, _scale_list(dims, scales, named), exact)

    @composite(f"{name}.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor")
    def upsample_vec(input, output_size, scale_factors):
        sizes, scales = from_factors(input, output_size, scale_factors, dims)
        return _nearest(input, sizes, scales, exact)


def _define_weighted(name: str, dims: int, taps: Callable) -> None:
    @composite(f"{name}(Tensor self, SymInt[{dims}] output_size, bool align_corners, {_SCALES[dims]}) -> Tensor")
    def upsample(self, output_size, align_corners, *scales, **named):
        return _interpolate(self, output_size, _scale_list(dims, scales, named), align_corners, taps)

    @composite(f"{name}.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor")
    def upsample_vec(input, output_size, align_corners, scale_factors):
        sizes, scales = from_factors(input, output_size, scale_factors, dims)
        return _interpolate(input, sizes, scales, align_corners, taps)


def _scale_list(dims: int, positional: tuple, named: dict) -> list[float | None]:
    names = ["scales"] if dims == 1 else ["scales_d", "scales_h", "scales_w"][-dims:]
    return [*positional, *(named.get(name) for name in names[len(positional) :])]


def from_factors(x, output_size, scale_factors, dims: int) -> tuple[list[int], list[float | None]]:
    """Return output sizes and scales, computed from whichever of them is given. RuntimeError if both or neither are given, or
    for a wrong number of them."""
    if (output_size is None) == (scale_factors is None):
        raise RuntimeError("Must specify exactly one of output_size and scale_factors")
    if output_size is not None:
        return list(output_size), [None] * dims
    if len(scale_factors) != dims or x.dim() != dims + 2:
        raise RuntimeError(
            f"Expected a scale factor for each of {dims} spatial dimensions, "
            f"but got scale_factors={list(scale_factors)} for an input of shape {list(x.shape)}"
        )
    if not all(math.isfinite(scale) for scale in scale_factors):
        raise RuntimeError(f"Expected finite scale factors, but got {list(scale_factors)}")
    return [scaled_size(size, scale) for size, scale in zip(x.shape[2:], scale_factors, strict=True)], list(scale_factors)


for _dims in (1, 2, 3):
    _define_nearest(f"upsample_nearest{_dims}d", _dims, exact=False)
    _define_nearest(f"_upsample_nearest_exact{_dims}d", _dims, exact=True)
    _define_weighted(f"upsample_{('linear1d', 'bilinear2d', 'trilinear3d')[_dims - 1]}", _dims, _linear_taps)
_define_weighted("upsample_bicubic2d", 2, _cubic_taps)
