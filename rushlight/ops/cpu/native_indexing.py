"""Indexing on the native kernels. Each function returns whether it did the work; it doesn't for indices out of range."""

from __future__ import annotations

import numpy as np

from rushlight.ops.cpu import native

_GATHER, _SCATTER, _SCATTER_ADD = range(3)


def _places(index: np.ndarray) -> np.ndarray:
    """Return the indices as row-major int64."""
    return native.contiguous(index if index.dtype == np.int64 else index.astype(np.int64))


def take(out: np.ndarray, table: np.ndarray, index: np.ndarray, axis: int) -> bool:
    """Write the elements of `table` at `index` along `axis` to `out`, which is row-major, with the index's dimensions in place
    of the axis."""
    if native.kernels is None or not table.flags.c_contiguous:
        return False
    return native.kernels.take(out, table, _places(index), axis)


def gather(out: np.ndarray, table: np.ndarray, index: np.ndarray, axis: int) -> bool:
    """Compute torch.gather: read each element of `out` from its own position in `table`, except that `index` replaces
    `axis`."""
    return native.kernels is not None and native.kernels.along(_GATHER, table, _places(index), out, axis)


def scatter(target: np.ndarray, index: np.ndarray, source: np.ndarray, axis: int, accumulate: bool) -> bool:
    """Compute torch.scatter: write each element of `source` to its own position in `target`, except that `index` replaces
    `axis`.

    False for an index out of range; other elements may have been written then.
    """
    kind = _SCATTER_ADD if accumulate else _SCATTER
    if native.kernels is None or source.dtype != target.dtype:
        return False
    return native.kernels.along(kind, target, _places(index), native.contiguous(source), axis)


def add_rows(total: np.ndarray, index: np.ndarray, rows: np.ndarray) -> bool:
    """Compute `total[index[i]] += rows[i]`, for one i after the other."""
    if native.kernels is None:
        return False
    if rows.dtype != total.dtype:
        rows = rows.astype(total.dtype)
    return native.kernels.add_at(total, _places(index), native.contiguous(rows))
