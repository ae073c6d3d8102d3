"""Composite counts: bincount, histc, histogram and histogramdd. They have no gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rushlight.core.dtype import bool_, float32, float64, int64
from rushlight.core.tensor import Tensor
from rushlight.ops.meta.checks import not_implemented
from rushlight.ops.packet import namespaces
from rushlight.ops.registry import composite

aten = namespaces.namespace("aten")


def _bin_counts(positions: Tensor, count: int, weight: Tensor | None, kind: object) -> Tensor:
    """Return the number of occurrences of each bin 0 to `count` - 1, or the sums of their weights."""
    ones = aten.ones_like.default(positions, dtype=kind) if weight is None else weight.detach().to(kind)
    return aten.scatter_add.default(aten.zeros.default((count,), dtype=kind, device=positions.device), 0, positions, ones)


@composite("bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor")
def bincount(self, weights=None, minlength=0):
    if minlength < 0:
        raise RuntimeError(f"minlength should be >= 0, but got {minlength}")
    if not self.dtype.is_integral or self.dtype is bool_:
        raise not_implemented("bincount_cpu", self.dtype)
    if self.dim() != 1:
        raise RuntimeError(
            f"bincount only supports 1-d non-negative integral inputs, but got shape {list(self.shape)} and {self.dtype}"
        )
    if weights is not None and weights.shape != self.shape:
        raise RuntimeError(
            f"weights should be 1-d and have the same length as input, but got {list(weights.shape)} and {list(self.shape)}"
        )
    kind = int64 if weights is None else float32 if weights.dtype is float32 else float64
    if not self.numel():
        return aten.zeros.default((minlength,), dtype=int64 if weights is None else kind, device=self.device)
    if self.min().item() < 0:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs: got a negative value")
    return _bin_counts(self.to(int64), max(self.max().item() + 1, minlength), weights, kind)


@composite("histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor")
def histc(self, bins=100, min=0, max=0):
    if not self.dtype.is_floating_point:
        raise not_implemented("histogram_cpu", self.dtype)
    if bins <= 0:
        raise RuntimeError(f"torch.histc(): bins must be > 0, but got {bins}")
    values = aten.reshape.default(self.detach(), (-1,))
    low, high = float(min), float(max)
    if low == high and values.numel():
        low, high = values.min().item(), values.max().item()
    if low == high:
        low, high = low - 1, high + 1
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"torch.histc: range of [{low:g}, {high:g}] is not finite")
    if low > high:
        raise RuntimeError(f"torch.histc: max must be larger than min, but got min={low:g} and max={high:g}")
    inside = (values >= low) & (values <= high)
    kept = values.masked_fill(~inside, low)  # values out of range are moved into the first bin, with weight 0
    positions = aten.clamp.default(((kept - low) * bins / (high - low)).to(int64), None, bins - 1)
    return _bin_counts(positions, bins, inside, self.dtype)


def _outer_edges(points: Tensor, bounds: Sequence[float] | None, name: str) -> list[tuple[float, float]]:
    """Return the range of each column of `points`: the given one, or the minimum and maximum of the data."""
    columns = points.size(1)
    if bounds is not None:
        if len(bounds) != 2 * columns:
            raise RuntimeError(
                f"torch.{name}: for a {columns}-dimensional histogram range should have {2 * columns} elements, but got "
                f"{len(bounds)}"
            )
        pairs = [(bounds[2 * column], bounds[2 * column + 1]) for column in range(columns)]
    elif points.numel():
        pairs = list(zip(points.amin(0).tolist(), points.amax(0).tolist(), strict=True))
    else:
        pairs = [(0.0, 1.0)] * columns
    for column, (low, high) in enumerate(pairs):
        if not (math.isfinite(low) and math.isfinite(high)):
            raise RuntimeError(f"torch.{name}: dimension {column}'s range [{low:g}, {high:g}] is not finite")
        if low > high:
            raise RuntimeError(f"torch.{name}: min should not exceed max, but got min {low:g} max {high:g}")
    return [(low - 0.5, high + 0.5) if low == high else (low, high) for low, high in pairs]


def _even_edges(points: Tensor, bins: Sequence[int], bounds: Sequence[float] | None, name: str) -> list[Tensor]:
    if any(count <= 0 for count in bins):
        raise RuntimeError(f"torch.{name}(): bins must be > 0, but got {list(bins)}")
    pairs = _outer_edges(points, bounds, name)
    return [
        aten.linspace(low, high, count + 1, dtype=points.dtype, device=points.device)
        for (low, high), count in zip(pairs, bins, strict=True)
    ]


def _bin_of(values: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
    """Return the bin of each value, and whether it is in a bin; the last bin includes its upper edge."""
    last = edges.numel() - 1
    position = aten.searchsorted.Tensor(edges, values.contiguous(), right=True) - 1
    inside = (values >= edges[0]) & (values <= edges[last])
    return aten.clamp.default(position, 0, last - 1), inside


def _histogram(points: Tensor, edges: Sequence[Tensor], weight: Tensor | None, density: bool) -> Tensor:
    """Return the counts (sums of weights) of points, one a row, in the product of the bins between `edges` of each column."""
    counts = [edge.numel() - 1 for edge in edges]
    position = aten.zeros.default((points.size(0),), dtype=int64, device=points.device)
    inside = aten.ones.default((points.size(0),), device=points.device).bool()
    for column, (edge, count) in enumerate(zip(edges, counts, strict=True)):
        own, within = _bin_of(points.select(1, column), edge)
        position, inside = position * count + own, inside & within
    weight = None if weight is None else weight.reshape((-1,))[inside]
    hist = _bin_counts(position[inside], math.prod(counts), weight, points.dtype).reshape(counts)
    if not density:
        return hist
    hist = hist / hist.sum()
    for column, edge in enumerate(edges):
        shape = [-1 if axis == column else 1 for axis in range(len(counts))]
        hist = hist / aten.diff(edge).reshape(shape)
    return hist


def _check_input(self: Tensor, edges: Sequence[Tensor], weight: Tensor | None, points: tuple, name: str) -> None:
    if not self.dtype.is_floating_point:
        raise not_implemented("histogram_cpu", self.dtype)
    for column, edge in enumerate(edges):
        if edge.dtype is not self.dtype:
            raise RuntimeError(
                f"torch.{name}: input tensor and bins tensors should have the same dtype, but got input with dtype "
                f"{self.dtype} and bins for dimension {column} with dtype {edge.dtype}"
            )
        if edge.dim() != 1:
            raise RuntimeError(
                f"torch.{name}: bins tensor should have one dimension, but got {edge.dim()} dimensions in the bins tensor for "
                f"dimension {column}"
            )
        if not edge.numel():
            raise RuntimeError(
                f"torch.{name}: bins tensor should have at least 1 element, but got {edge.numel()} elements in the bins tensor "
                f"for dimension {column}"
            )
    if weight is not None and weight.dtype is not self.dtype:
        raise RuntimeError(
            f"torch.{name}: if weight tensor is provided, input tensor and weight tensor should have the same dtype, but got "
            f"input({self.dtype}), and weight({weight.dtype})"
        )
    if weight is not None and tuple(weight.shape) != points:
        raise RuntimeError(
            f"torch.{name}: if weight tensor is provided it should have the same shape as the input tensor excluding its "
            f"innermost dimension, but got input with shape {list(self.shape)} and weight with shape {list(weight.shape)}"
        )


def _as_column(self: Tensor) -> Tensor:
    return aten.reshape.default(self.detach(), (-1, 1))


@composite(
    "histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool density=False) -> "
    "(Tensor hist, Tensor bin_edges)"
)
def histogram(self, bins=100, *, range=None, weight=None, density=False):
    _check_input(self, (), weight, tuple(self.shape), "histogramdd")
    points = _as_column(self)
    edges = _even_edges(points, [bins], range, "histogram")
    return _histogram(points, edges, weight, density), edges[0]


@composite(
    "histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> "
    "(Tensor hist, Tensor bin_edges)"
)
def histogram_between(self, bins, *, weight=None, density=False):
    _check_input(self, (bins,), weight, tuple(self.shape), "histogramdd")
    if bins.numel() < 2:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins.numel() - 1} for dimension 0")
    return _histogram(_as_column(self), [bins.detach()], weight, density), aten.clone.default(bins)


def _as_points(self: Tensor, bins: Sequence | None) -> Tensor:
    """Return the points, one per row; RuntimeError unless there is a bin specification for each coordinate."""
    if self.dim() < 2:
        raise RuntimeError(f"torch.histogramdd: input tensor should have at least 2 dimensions, but got {self.dim()}")
    if bins is not None and len(bins) != self.size(-1):
        raise RuntimeError(
            "histogramdd: The size of bins must be equal to the innermost dimension of the input. Got "
            f"{len(bins)} for an innermost dimension of {self.size(-1)}"
        )
    return aten.reshape.default(self.detach(), (-1, self.size(-1)))


@composite(
    "histogramdd(Tensor self, int[] bins, float[]? range=None, Tensor? weight=None, bool density=False) -> "
    "(Tensor hist, Tensor[] bin_edges)"
)
def histogramdd(self, bins, range=None, weight=None, density=False):
    points = _as_points(self, bins)
    _check_input(self, (), weight, tuple(self.shape[:-1]), "histogramdd")
    edges = _even_edges(points, bins, range, "histogramdd")
    return _histogram(points, edges, weight, density), tuple(edges)


@composite(
    "histogramdd.int_bins(Tensor self, int bins, float[]? range=None, Tensor? weight=None, bool density=False) -> "
    "(Tensor hist, Tensor[] bin_edges)"
)
def histogramdd_same(self, bins, range=None, weight=None, density=False):
    return histogramdd(self, [bins] * _as_points(self, None).size(1), range, weight, density)


@composite(
    "histogramdd.TensorList_bins(Tensor self, Tensor[] bins, float[]? range=None, Tensor? weight=None, "
    "bool density=False) -> (Tensor hist, Tensor[] bin_edges)"
)
def histogramdd_between(self, bins, range=None, weight=None, density=False):
    points = _as_points(self, bins)
    _check_input(self, bins, weight, tuple(self.shape[:-1]), "histogramdd")
    edges = [edge.detach() for edge in bins]
    return _histogram(points, edges, weight, density), tuple(map(aten.clone.default, edges))
