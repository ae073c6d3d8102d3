"""Antialiased resizing: every output is a normalised sum over all inputs under a filter as wide as an output element.

Each dimension is a product with a matrix of weights (outputs by inputs), which depends on the sizes alone.
"""

from __future__ import annotations

from collections.abc import Callable

from rushlight.core.dtype import float32, float64
from rushlight.core.tensor import Tensor
from rushlight.ops.composite.network.common import arange, aten
from rushlight.ops.composite.network.upsampling import _output_sizes, _ratio, from_factors
from rushlight.ops.registry import composite

_SLOPE = -0.5  # Keys 1981, here without the adjustment that plain bicubic upsampling has


def _triangle(distance: Tensor) -> Tensor:
    return (1 - distance).clamp(min=0)


def _cubic(distance: Tensor) -> Tensor:
    near = ((_SLOPE + 2) * distance - (_SLOPE + 3)) * distance * distance + 1
    far = (((distance - 5) * distance + 8) * distance - 4) * _SLOPE
    return aten.where.self(distance < 1, near, aten.where.self(distance < 2, far, aten.zeros_like.default(distance)))


def _weights(x: Tensor, size: int, output: int, ratio: float, kernel: Callable, radius: int) -> Tensor:
    """The matrix (output, size) of one dimension."""
    stretch = max(ratio, 1.0)
    exact = float64 if x.dtype is float64 else float32
    centre = ((arange(x, output).to(exact) + 0.5) * ratio).unsqueeze(1)
    source = arange(x, size).to(exact)
    first = (centre - radius * stretch + 0.5).trunc().clamp(min=0)
    behind = (centre + radius * stretch + 0.5).trunc().clamp(max=size)
    weights = kernel(((source - centre + 0.5) / stretch).abs())
    weights = weights.masked_fill((source < first) | (source >= behind), 0)
    return (weights / weights.sum(1, True)).to(x.dtype)


def _resize(x: Tensor, output_size, align_corners: bool, scales: tuple, kernel: Callable, radius: int) -> Tensor:
    height, width = _output_sizes(x, output_size, 2)
    rows = _weights(x, x.shape[2], height, _ratio(x, x.shape[2], height, scales[0], align_corners), kernel, radius)
    columns = _weights(x, x.shape[3], width, _ratio(x, x.shape[3], width, scales[1], align_corners), kernel, radius)
    return rows.matmul(x).matmul(columns.t())


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
