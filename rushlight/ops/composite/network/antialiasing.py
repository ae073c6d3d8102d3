"""Antialiased resizing: every output is a normalised sum over all inputs under a filter as wide as an output element.

Columns are resized first, then rows. Each pass is a product with a banded matrix of weights (outputs by inputs), which depends
on the sizes alone. The product is done in blocks of outputs, which skips the zeros outside the band. For symbolic sizes the
band's width is unknown, and the whole matrix is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from rushlight.core.dtype import float64, int64, uint8
from rushlight.core.symbolic import SymInt
from rushlight.core.tensor import Tensor
from rushlight.ops.composite.network.common import arange, aten, in_order_of
from rushlight.ops.composite.network.upsampling import (
    _output_sizes,
    _ratio,
    check_weighted,
    exact_type,
    from_factors,
    in_fixed_point,
    to_bytes,
)
from rushlight.ops.registry import composite

Ratio = float | Tensor
_BLOCK = 64
_SLOPE = -0.5  # Keys 1981, without the adjustment in plain bicubic upsampling


def _triangle(distance: Tensor) -> Tensor:
    return (1 - distance).clamp(min=0)


def _cubic(distance: Tensor) -> Tensor:
    near = ((_SLOPE + 2) * distance - (_SLOPE + 3)) * distance * distance + 1
    far = (((distance - 5) * distance + 8) * distance - 4) * _SLOPE
    return aten.where.self(distance < 1, near, aten.where.self(distance < 2, far, aten.zeros_like.default(distance)))


def _filter_spans(x: Tensor, size: int, output: int, ratio: Ratio, stretch: Ratio, radius: int) -> tuple[Tensor, ...]:
    """Return for each output of one dimension its centre, and its filter's first input and end: all (output, 1)."""
    centre = ((arange(x, output).to(exact_type(x)) + 0.5) * ratio).unsqueeze(1)
    first = (centre - radius * stretch + 0.5).trunc().clamp(min=0)
    return centre, first, (centre + radius * stretch + 0.5).trunc().clamp(max=size)


def _matrix(x: Tensor, size: int, output: int, ratio: Ratio, kernel: Callable, radius: int) -> Tensor:
    """Return the dense matrix of weights: (output, size)."""
    stretch = ratio.clamp(min=1.0) if isinstance(ratio, Tensor) else max(ratio, 1.0)
    centre, first, behind = _filter_spans(x, size, output, ratio, stretch, radius)
    source = arange(x, size).to(centre.dtype)
    weights = kernel(((source - centre + 0.5) * (1.0 / stretch)).abs()).masked_fill((source < first) | (source >= behind), 0)
    return weights / weights.sum(1, True)


def _taps(x: Tensor, size: int, output: int, ratio: float, kernel: Callable, radius: int) -> tuple[Tensor, Tensor]:
    """Return for each output of one dimension the inputs that it reads, ascending, and their weights: both (output, taps).

    There are as many taps as in the widest filter; surplus taps have weight 0.
    """
    stretch = max(ratio, 1.0)
    centre, first, behind = _filter_spans(x, size, output, ratio, stretch, radius)
    source = first + arange(x, min(2 * math.ceil(radius * stretch) + 1, size)).to(centre.dtype)
    weights = kernel(((source - centre + 0.5) * (1.0 / stretch)).abs()).masked_fill(source >= behind, 0)
    return source.clamp(max=size - 1).to(int64), weights / weights.sum(1, True)


def _resize_dim(x: Tensor, dim: int, output: int, ratio: Ratio, kernel: Callable, radius: int) -> Tensor:
    """Resize one of the last two dimensions."""
    size, is_bytes, is_open = x.shape[dim], x.dtype is uint8, SymInt in (type(x.shape[dim]), type(output))
    if is_open:
        weights = _matrix(x, size, output, ratio, kernel, radius)
    else:
        positions, weights = _taps(x, size, output, ratio, kernel, radius)
    if is_bytes:
        x = x.to(float64)
        weights, unit = in_fixed_point(weights)
    weights = weights.to(x.dtype)
    if is_open:
        whole = weights.matmul(x) if dim == 2 else x.matmul(weights.t())
    else:
        nothing = aten.zeros.default([output, size], dtype=x.dtype, device=x.device)
        whole = _banded_product(x, dim, aten.scatter_add.default(nothing, 1, positions, weights), ratio, radius)
    return to_bytes(whole, unit).to(uint8) if is_bytes else whole


def _banded_product(x: Tensor, dim: int, matrix: Tensor, ratio: float, radius: int) -> Tensor:
    """Return the product with a banded matrix of weights, in blocks."""
    output, size = matrix.shape
    parts = []
    for first in range(0, output, _BLOCK):
        last = min(first + _BLOCK, output)
        reach = radius * max(ratio, 1.0) + 1
        low, high = max(int((first + 0.5) * ratio - reach), 0), min(int((last - 0.5) * ratio + reach) + 1, size)
        block, met = matrix[first:last, low:high], aten.slice.Tensor(x, dim, low, high)
        parts.append(block.matmul(met) if dim == 2 else met.matmul(block.t()))
    return parts[0] if len(parts) == 1 else aten.cat.default(parts, dim)


def _resize(x: Tensor, output_size, align_corners: bool, scales: tuple, kernel: Callable, radius: int) -> Tensor:
    check_weighted(x, 2)
    given = x
    for dim, output, scale in zip((3, 2), reversed(_output_sizes(x, output_size, 2)), reversed(scales), strict=True):
        if x.dtype is uint8 and x.shape[dim] == output:
            continue
        x = _resize_dim(x, dim, output, _ratio(x, x.shape[dim], output, scale, align_corners), kernel, radius)
    return in_order_of(given, x)


def _define(name: str, kernel: Callable, radius: int) -> None:
    @composite(
        f"{name}(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor"
    )
    def resize(self, output_size, align_corners, scales_h=None, scales_w=None):
        return _resize(self, output_size, align_corners, (scales_h, scales_w), kernel, radius)

    @composite(f"{name}.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor")
    def resize_by(input, output_size, align_corners, scale_factors):
        sizes, scales = from_factors(input, output_size, scale_factors, 2)
        return _resize(input, sizes, align_corners, scales, kernel, radius)


_define("_upsample_bilinear2d_aa", _triangle, 1)
_define("_upsample_bicubic2d_aa", _cubic, 2)
