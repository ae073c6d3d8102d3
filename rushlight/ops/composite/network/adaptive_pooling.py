"""Adaptive pooling: the caller gives the output's size, and windows follow from it.

The window of output i covers the inputs from floor(i * in / out) up to ceil((i + 1) * in / out).
"""

from __future__ import annotations

import math

from rushlight.ops.composite.network.common import arange, aten
from rushlight.ops.registry import composite


def _output_sizes(x, output_size, dims: int, name: str) -> list[int]:
    if x.dim() not in (dims + 1, dims + 2):
        raise RuntimeError(f"{name}(): Expected {dims + 1}D or {dims + 2}D tensor, but got {list(x.shape)}")
    sizes = [output_size] * dims if isinstance(output_size, int) else list(output_size)
    if len(sizes) != dims:
        wanted = "'output_size' should contain one int" if dims == 1 else f"internal error: output_size must be {dims} ints"
        raise RuntimeError(f"{name}(): {wanted}, but got {sizes}")
    if any(size < 0 for size in sizes):
        raise RuntimeError(
            f"{name}(): elements of output_size must be greater than or equal to 0: "
            f"Trying to create tensor with negative dimension {min(sizes)}: {sizes}"
        )
    if 0 in x.shape[-dims:]:
        raise RuntimeError(
            f"{name}(): Expected input to have non-zero size for non-batch dimensions, "
            f"but input has sizes {list(x.shape)}"
        )
    return sizes


def _windows(x, dim: int, outputs: int):
    """Positions (outputs, longest window) along `dim`, which of them lie outside of their window, and the lengths."""
    size = x.shape[dim]
    index = arange(x, outputs)
    starts = (index * size).div(outputs, rounding_mode="floor") if outputs else index
    ends = ((index + 1) * size + outputs - 1).div(outputs, rounding_mode="floor") if outputs else index
    longest = max((-(-(i + 1) * size // outputs) - i * size // outputs for i in range(outputs)), default=1)
    positions = starts.unsqueeze(1) + arange(x, longest)
    return positions.clamp(max=size - 1), positions >= ends.unsqueeze(1), ends - starts


def _split_windows(x, dim: int, positions, outside, fill: float):
    """Dimension `dim` of `x` replaced by (outputs, longest window), with `fill` where a window is shorter."""
    trailing = x.shape[dim + 1 :]
    chosen = x.index_select(dim, positions.reshape([-1])).view([*x.shape[:dim], *positions.shape, *trailing])
    return chosen.masked_fill(outside.view([*outside.shape] + [1] * len(trailing)), fill)


def _average_one(x, dim: int, outputs: int):
    if x.shape[dim] == outputs:
        return x
    positions, outside, lengths = _windows(x, dim, outputs)
    windows = _split_windows(x, dim, positions, outside, 0.0)
    return windows.sum([dim + 1]) / lengths.to(x.dtype).view([outputs] + [1] * (x.dim() - dim - 1))


def _adaptive_average(x, sizes: list[int]):
    dims = len(sizes)
    if all(size == 1 for size in sizes):
        return x.mean(list(range(-dims, 0)), True)
    for index, size in enumerate(sizes):
        x = _average_one(x, x.dim() - dims + index, size)
    return x


@composite("adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor")
def adaptive_avg_pool1d(self, output_size):
    sizes = _output_sizes(self, output_size, 1, "adaptive_avg_pool1d")
    return adaptive_avg_pool2d(self.unsqueeze(-2), [1, *sizes]).squeeze(-2)


@composite("adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor")
def adaptive_avg_pool2d(self, output_size):
    sizes = _output_sizes(self, output_size, 2, "adaptive_avg_pool2d")
    divides = all(size and given % size == 0 for given, size in zip(self.shape[-2:], sizes, strict=True))
    if divides and sizes != [1, 1]:
        kernel = [given // size for given, size in zip(self.shape[-2:], sizes, strict=True)]
        return aten.avg_pool2d.default(self, kernel, kernel)
    return _adaptive_average(self, sizes)


@composite("adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor")
def adaptive_avg_pool3d(self, output_size):
    return _adaptive_average(self, _output_sizes(self, output_size, 3, "adaptive_avg_pool3d"))


def _adaptive_maximum(x, sizes: list[int]):
    """The maxima, and where each lies in the flattened last dimensions."""
    dims = len(sizes)
    lead = x.dim() - dims
    places = arange(x, math.prod(x.shape[lead:])).view(x.shape[lead:])
    for index, size in enumerate(sizes):
        positions, outside, _ = _windows(x, lead + 2 * index, size)
        x = _split_windows(x, lead + 2 * index, positions, outside, -math.inf)
        places = _split_windows(places, 2 * index, positions, outside, 0)
    values, chosen = _window_elements_last(x, lead, sizes).max(-1)
    places = _window_elements_last(places, 0, sizes).expand([*chosen.shape, -1])
    return values, places.gather(-1, chosen.unsqueeze(-1)).squeeze(-1)


def _window_elements_last(x, lead: int, sizes: list[int]):
    outer = range(lead, x.dim(), 2)
    inner = range(lead + 1, x.dim(), 2)
    return x.permute([*range(lead), *outer, *inner]).reshape([*x.shape[:lead], *sizes, -1])


@composite("adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)")
def adaptive_max_pool1d(self, output_size):
    return _adaptive_maximum(self, _output_sizes(self, output_size, 1, "adaptive_max_pool1d"))


@composite("adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)")
def adaptive_max_pool2d(self, output_size):
    return _adaptive_maximum(self, _output_sizes(self, output_size, 2, "adaptive_max_pool2d"))


@composite("adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)")
def adaptive_max_pool3d(self, output_size):
    return _adaptive_maximum(self, _output_sizes(self, output_size, 3, "adaptive_max_pool3d"))
