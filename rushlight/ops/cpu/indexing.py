"""CPU kernels of cat, index_select, gather, scatter, nonzero, embedding and padding."""

from __future__ import annotations

import numpy as np

from rushlight.core.dtype import dtype, int64
from rushlight.core.tensor import Tensor
from rushlight.ops.cpu import native, native_indexing
from rushlight.ops.cpu.common import convert, empty, number
from rushlight.ops.cpu.results import contiguous
from rushlight.ops.meta.indexing import (
    cat_strides,
    check_cat,
    check_embedding,
    check_gather,
    check_index_select,
    check_pad,
    check_scatter,
    pad_strides,
    require_embedding_indices,
)
from rushlight.ops.promotion import check_number, result_type
from rushlight.ops.registry import cpu


@cpu("cat")
def cat(tensors, dim=0):
    axis, sizes, counted = check_cat(tensors, dim)
    kind = result_type(*tensors)
    out = empty(sizes, kind, cat_strides(sizes, counted))
    arrays = [tensor._impl.array for tensor in counted]
    same = all(array.dtype == kind.numpy for array in arrays)
    np.concatenate(arrays if same else [convert(a, kind.numpy) for a in arrays], axis=axis, out=out._impl.array)
    return out


def check_bounds(index: np.ndarray, size: int, dim: int, error: type[Exception], lowest: int = 0) -> None:
    """Raise `error` unless all indices are in [lowest, size)."""
    if not index.size:
        return
    low, high = index.min(), index.max()
    if low < lowest or high >= size:
        wrong = low if low < lowest else high
        raise error(f"index {wrong} is out of bounds for dimension {dim} with size {size}")


def _check_in_self(index: np.ndarray, size: int, name: str) -> None:
    if index.size and (index.min() < 0 or index.max() >= size):
        wrong = index.min() if index.min() < 0 else index.max()
        raise IndexError(f"index out of range in self ({name}: got index {wrong} for {size} rows)")


@cpu("index_select")
def index_select(self, dim, index):
    axis, sizes = check_index_select(self, dim, index)
    array, positions = self._impl.array, index._impl.array.reshape(-1)
    if not array.ndim:
        array = array.reshape(1)
    out = empty(sizes, self.dtype)
    if native_indexing.take(out._impl.array, array, positions, axis):
        return out
    _check_in_self(positions, array.shape[axis], "index_select")
    np.take(array, positions, axis=axis, out=out._impl.array.reshape(array.shape) if not sizes else out._impl.array)
    return out


def _along(array: np.ndarray, axis: int, index: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return index arrays that select `index` along `axis` and the element's own position in the other dimensions."""
    grid = np.ogrid[tuple(slice(size) for size in index.shape)]
    return tuple(index if dim == axis else grid[dim] for dim in range(array.ndim))


@cpu("gather")
def gather(self, dim, index, *, sparse_grad=False):
    axis = check_gather(self, dim, index)
    out = empty(index._impl.sizes, self.dtype)
    if index.numel():
        array, positions = np.atleast_1d(self._impl.array), np.atleast_1d(index._impl.array)
        if native_indexing.gather(np.atleast_1d(out._impl.array), array, positions, axis):
            return out
        check_bounds(positions, array.shape[axis], axis, RuntimeError)
        out._impl.array[...] = array[_along(array, axis, positions)].reshape(index._impl.sizes)
    return out


@cpu("scatter.src")
def scatter(self, dim, index, src):
    return _scatter(self, dim, index, src, "scatter")


@cpu("scatter_add")
def scatter_add(self, dim, index, src):
    return _scatter(self, dim, index, src, "scatter_add")


def _scatter(self: Tensor, dim: int, index: Tensor, src: Tensor, name: str) -> Tensor:
    axis = check_scatter(self, dim, index, src, name)
    out = empty(self._impl.sizes, self.dtype)
    native.assign(out._impl.array, self._impl.array)
    if not index.numel():
        return out
    target, positions = np.atleast_1d(out._impl.array), np.atleast_1d(index._impl.array)
    part = np.atleast_1d(src._impl.array)
    if part.shape != positions.shape:
        part = part[tuple(slice(size) for size in positions.shape)]
    # An index out of range stops the native kernel midway, but then `out` is discarded.
    if native_indexing.scatter(target, positions, part, axis, accumulate=name == "scatter_add"):
        return out
    check_bounds(positions, target.shape[axis], axis, RuntimeError)
    if name == "scatter":
        target[_along(target, axis, positions)] = part
    else:
        flat = np.ravel_multi_index(np.broadcast_arrays(*_along(target, axis, positions)), target.shape)
        add_at(target.reshape(-1), flat.reshape(-1), part.reshape(-1), self.dtype)
    return out


def add_at(target: np.ndarray, positions: np.ndarray, values: np.ndarray, kind: dtype) -> None:
    """Compute `target[positions] += values`, adding up repeated positions; 1-D arrays, 16-bit floats summed in float32."""
    with np.errstate(all="ignore"):
        if kind.compute == kind.numpy:
            np.add.at(target, positions, values)
            return
        total = target.astype(kind.compute)
        np.add.at(total, positions, values.astype(kind.compute))
        target[...] = total


@cpu("nonzero")
def nonzero(self):
    array = self._impl.array
    if not array.ndim:
        return empty((int(bool(array)), 0), int64)
    found = np.nonzero(array)
    # The result is column-major, as in torch.
    out = empty((len(found[0]), array.ndim), int64, (1, max(len(found[0]), 1)))
    for column, places in enumerate(found):
        out._impl.array[:, column] = places
    return out


@cpu("embedding")
def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    sizes = check_embedding(weight, indices)
    positions = indices._impl.array
    out = empty(sizes, weight.dtype)
    if native_indexing.take(out._impl.array, weight._impl.array, positions, 0):
        return out
    _check_in_self(positions, weight._impl.sizes[0], "embedding")
    np.take(weight._impl.array, positions, axis=0, out=out._impl.array)
    return out


@cpu("embedding_dense_backward")
def embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq):
    require_embedding_indices(indices, "embedding_backward")
    kind, width = grad_output.dtype, grad_output.size(-1)
    positions = indices._impl.array.reshape(-1)
    if grad_output.numel() != positions.size * width:
        raise RuntimeError(
            f"embedding_dense_backward: expected a row of grad_output for each of {positions.size} indices, "
            f"but got grad_output of shape {list(grad_output.shape)}"
        )
    rows = grad_output._impl.array.reshape(positions.size, width)
    if padding_idx >= 0:
        kept = positions != padding_idx
        rows, positions = rows[kept], positions[kept]
    _check_in_self(positions, num_weights, "embedding_dense_backward")
    total = np.zeros((num_weights, width), kind.compute)
    if not scale_grad_by_freq and native_indexing.add_rows(total, positions, rows):
        return contiguous(total, kind)
    if positions.size:
        unique, sums, counts = _sum_by_row(positions, rows.astype(kind.compute, copy=False))
        total[unique] = sums / counts[:, None].astype(kind.compute) if scale_grad_by_freq else sums
    return contiguous(total, kind)


def _sum_by_row(positions: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the distinct positions, and for each the sum of its rows and their number; much faster than `np.add.at`."""
    order = np.argsort(positions, kind="stable")
    unique, starts, counts = np.unique(positions[order], return_index=True, return_counts=True)
    return unique, np.add.reduceat(rows[order], starts, axis=0), counts


@cpu("constant_pad_nd")
def constant_pad_nd(self, pad, value=0):
    check_number(value, self.dtype)
    pairs, sizes = check_pad(self, pad)
    out = empty(sizes, self.dtype, pad_strides(self, pad, sizes))
    target, array = out._impl.array, self._impl.array
    target[...] = number(value, self.dtype.numpy)
    inner = tuple(
        slice(max(before, 0), size - max(after, 0)) for (before, after), size in zip(pairs, sizes, strict=True)
    )
    kept = tuple(
        slice(max(-before, 0), size - max(-after, 0)) for (before, after), size in zip(pairs, array.shape, strict=True)
    )
    target[inner] = array[kept]
    return out
