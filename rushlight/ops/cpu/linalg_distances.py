"""CPU kernels of p-norm distances between all pairs of points, and of their gradients."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rushlight.core.tensor import Tensor
from rushlight.ops.cpu.common import operand
from rushlight.ops.cpu.linalg_lapack import stacked
from rushlight.ops.cpu.quiet import quietly
from rushlight.ops.cpu.results import contiguous
from rushlight.ops.meta.linalg_distances import cdist_sizes, check_pdist, check_shapes
from rushlight.ops.registry import cpu

# The maximal number of differences held in memory at a time.
_BLOCK = 1 << 20


def _norm(difference: np.ndarray, p: float) -> np.ndarray:
    """Return the p-norm of the last axis."""
    if p == 0:
        return np.count_nonzero(difference, axis=-1).astype(difference.dtype)
    size = np.abs(difference, out=difference)
    if p == 1:
        return size.sum(-1)
    if p == 2:
        return np.sqrt(np.einsum("...i,...i->...", size, size))
    if p == np.inf:
        return size.max(-1, initial=0)
    return (size**p).sum(-1) ** (1 / p)


def _slope(difference: np.ndarray, distance: np.ndarray, p: float) -> np.ndarray:
    """Return the derivative of the p-norm by each element of the difference; 0 where points coincide."""
    distance = distance[..., None]
    if p == 0:
        return np.zeros_like(difference)
    size, sign = np.abs(difference), np.sign(difference)
    if p == 1:
        return sign
    if p == np.inf:
        return np.where(size == distance, sign, 0)
    slope = sign * size ** (p - 1) / distance ** (p - 1)
    return np.where((distance == 0) | (size == 0), 0, slope).astype(difference.dtype)


def _blocks(points: np.ndarray, others: np.ndarray, work: Callable) -> None:
    """Call `work(rows, differences)` for blocks of rows of `points` against all `others`, small enough to fit in memory."""
    step = max(1, _BLOCK // max(1, others.size))
    for start in range(0, len(points), step):
        rows = slice(start, start + step)
        work(rows, points[rows, None, :] - others[None, :, :])


def _uses_products(p: float, compute_mode: int | None, rows: int, columns: int) -> bool:
    # ATen's modes: 0 or none means "if necessary" (above 25 points), 1 always, 2 never.
    return p == 2 and compute_mode != 2 and (compute_mode == 1 or rows > 25 or columns > 25)


def _euclidean(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Compute distances of the rows from |a|^2 - 2ab + |b|^2, in float64 because the difference cancels digits."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    centre = a.mean(0, keepdims=True)
    centre[~np.isfinite(centre)] = 0  # a non-finite point must not spoil the other distances
    a, b = a - centre, b - centre
    squares = (-2 * a) @ b.T
    squares += (a * a).sum(1)[:, None]
    squares += (b * b).sum(1)
    return np.sqrt(np.maximum(squares, 0, out=squares), out=squares)


@cpu("_cdist_forward")
def cdist_forward(x1, x2, p, compute_mode):
    a_sizes, b_sizes, sizes = cdist_sizes(x1, x2, p)
    a = stacked(np.broadcast_to(operand(x1, x1.dtype), a_sizes))
    b = stacked(np.broadcast_to(operand(x2, x2.dtype), b_sizes))
    result = np.zeros(sizes, a.dtype)
    for left, right, target in zip(a, b, stacked(result), strict=True):
        if _uses_products(p, compute_mode, *target.shape) and target.size and left.size:
            target[...] = quietly(_euclidean, left, right)
        else:
            quietly(_blocks, left, right, lambda rows, difference, out=target: out.__setitem__(rows, _norm(difference, p)))
    return contiguous(result, x1.dtype)


@cpu("_cdist_backward")
def cdist_backward(grad, x1, x2, p, cdist):
    a_sizes, b_sizes, sizes = cdist_sizes(x1, x2, p)
    kind = x1.dtype
    check_shapes("_cdist_backward", sizes, grad=grad, cdist=cdist)
    a = stacked(np.broadcast_to(operand(x1, kind), a_sizes))
    b = stacked(np.broadcast_to(operand(x2, kind), b_sizes))
    given, distances = (stacked(np.broadcast_to(operand(value, kind), sizes)) for value in (grad, cdist))
    result = np.zeros(a_sizes, a.dtype)
    for left, right, weight, distance, target in zip(a, b, given, distances, stacked(result), strict=True):

        def add(rows, difference, weight=weight, distance=distance, target=target):
            target[rows] = np.einsum("ij,ijk->ik", weight[rows], _slope(difference, distance[rows], p))

        quietly(_blocks, left, right, add)
    return contiguous(result, kind)


def _pairs(self: Tensor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rows, and the indices of the first and second point of each pair."""
    points = operand(self, self.dtype)
    return points, *np.triu_indices(len(points), 1)


@cpu("_pdist_forward")
def pdist_forward(self, p=2):
    check_pdist(self, p)
    points, first, second = _pairs(self)
    return contiguous(quietly(_norm, points[first] - points[second], p), self.dtype)


@cpu("_pdist_backward")
def pdist_backward(grad, self, p, pdist):
    check_shapes("_pdist_backward", (check_pdist(self, p),), grad=grad, pdist=pdist)
    points, first, second = _pairs(self)
    slope = quietly(_slope, points[first] - points[second], operand(pdist, self.dtype), p)
    slope *= operand(grad, self.dtype)[:, None]
    result = np.zeros_like(points)
    np.add.at(result, first, slope)
    np.subtract.at(result, second, slope)
    return contiguous(result, self.dtype)
