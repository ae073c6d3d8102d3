"""CPU kernel of scatter_reduce, on NumPy."""

from __future__ import annotations

import numpy as np

from rushlight.ops.cpu.common import operand
from rushlight.ops.cpu.indexing import check_bounds
from rushlight.ops.cpu.quiet import quietly
from rushlight.ops.cpu.results import contiguous
from rushlight.ops.meta.scatter_reduce import check_scatter_reduce
from rushlight.ops.registry import cpu

_COMBINE = {"sum": np.add, "prod": np.multiply, "mean": np.add, "amax": np.maximum, "amin": np.minimum}


@cpu("scatter_reduce.two")
def scatter_reduce(self, dim, index, src, reduce, *, include_self=True):
    axis = check_scatter_reduce(self, dim, index, src, reduce)
    out = np.array(operand(self, self.dtype), order="C")
    if not index.numel():
        return contiguous(out, self.dtype)
    target, positions = out.reshape(out.shape or (1,)), np.atleast_1d(index._impl.array)
    check_bounds(positions, target.shape[axis], axis, RuntimeError)
    values = np.atleast_1d(operand(src, src.dtype))[tuple(slice(size) for size in positions.shape)]
    indices = _flat_places(target.shape, axis, positions)
    quietly(_reduce_into, target.reshape(-1), indices, values.reshape(-1), reduce, include_self)
    return contiguous(out, self.dtype)


def _flat_places(shape: tuple[int, ...], axis: int, positions: np.ndarray) -> np.ndarray:
    grid = np.ogrid[tuple(slice(size) for size in positions.shape)]
    along = [positions if dim == axis else grid[dim] for dim in range(len(shape))]
    return np.ravel_multi_index(np.broadcast_arrays(*along), shape).reshape(-1)


def _reduce_into(flat: np.ndarray, indices: np.ndarray, values: np.ndarray, reduce: str, include_self: bool) -> None:
    if not include_self:
        flat[indices] = _neutral(reduce, flat.dtype)
    _COMBINE[reduce].at(flat, indices, values)
    if reduce == "mean":
        touched, counts = np.unique(indices, return_counts=True)
        counts = (counts + include_self).astype(flat.dtype)
        flat[touched] = flat[touched] // counts if flat.dtype.kind in "iu" else flat[touched] / counts


def _neutral(reduce: str, kind: np.dtype) -> float | int:
    """Return the neutral element of a reduction."""
    if reduce not in ("amax", "amin"):
        return int(reduce == "prod")
    if kind.kind == "b":
        return reduce == "amin"
    if kind.kind == "f":
        return np.inf if reduce == "amin" else -np.inf
    return np.iinfo(kind).max if reduce == "amin" else np.iinfo(kind).min
