"""LAPACK routines that NumPy lacks, as blocked algorithms on NumPy arrays.

Sources: G. Golub and C. Van Loan, "Matrix Computations" (2013), sections 3.2 (LU), 5.2 (QR); N. Higham, "The scaling and
squaring method for the matrix exponential revisited" (2005).
"""

from __future__ import annotations

import math

import numpy as np

_BLOCK = 64


def lu_factor(matrices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Overwrite (batch, m, n) with the packed factors, unit lower and upper. Returns 0-based row exchanges (batch, min(m, n)),
    and LAPACK's status of each."""
    batch, m, n = matrices.shape
    count = min(m, n)
    pivots, info = np.empty((batch, count), np.int32), np.zeros(batch, np.int32)
    for start in range(0, count, _BLOCK):
        stop = min(start + _BLOCK, count)
        for column in range(start, stop):
            _eliminate(matrices, pivots, info, column, stop)
        if stop < n:
            divide(matrices[:, start:stop, start:stop], matrices[:, start:stop, stop:], upper=False, unit=True)
            matrices[:, stop:, stop:] -= matrices[:, stop:, start:stop] @ matrices[:, start:stop, stop:]
    return pivots, info


def _eliminate(matrices: np.ndarray, pivots: np.ndarray, info: np.ndarray, column: int, stop: int) -> None:
    """Do one elimination step: exchange whole rows, and subtract multiples of the pivot's row from the columns up to `stop`."""
    below = matrices[:, column:, column]
    pivots[:, column] = positions = column + np.argmax(np.abs(below.real) + np.abs(below.imag), axis=1)
    each = np.flatnonzero(positions != column)
    if each.size:
        chosen = matrices[each, positions[each]]
        matrices[each, positions[each]] = matrices[each, column]
        matrices[each, column] = chosen
    diagonal = matrices[:, column, column]
    info[(diagonal == 0) & (info == 0)] = column + 1
    matrices[:, column + 1 :, column] /= np.where(diagonal == 0, 1, diagonal)[:, None]
    row = matrices[:, column, None, column + 1 : stop]
    matrices[:, column + 1 :, column + 1 : stop] -= matrices[:, column + 1 :, column, None] * row


def divide(a: np.ndarray, b: np.ndarray, *, upper: bool, unit: bool = False) -> None:
    """Overwrite b, (*, n, k), with solutions of triangular systems a x = b. A zero on a diagonal gives infinities."""
    n = a.shape[-1]
    starts = range(0, n, _BLOCK)
    for start in reversed(starts) if upper else starts:
        stop = min(start + _BLOCK, n)
        for row in range(stop - 1, start - 1, -1) if upper else range(start, stop):
            known = slice(row + 1, stop) if upper else slice(start, row)
            b[..., row, :] -= (a[..., row, None, known] @ b[..., known, :])[..., 0, :]
            if not unit:
                b[..., row, :] /= a[..., row, row, None]
        if upper and start:
            b[..., :start, :] -= a[..., :start, start:stop] @ b[..., start:stop, :]
        elif not upper and stop < n:
            b[..., stop:, :] -= a[..., stop:, start:stop] @ b[..., start:stop, :]


def cholesky_status(matrix: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the lower factor, and 0; or the factor up to the leading minor that is not positive, and the minor's 1-based
    order."""
    factor = np.zeros_like(matrix)
    for column in range(len(matrix)):
        left = factor[column:, :column] @ factor[column, :column].conj()
        rest = matrix[column:, column] - left
        pivot = rest[0].real
        if not pivot > 0:
            factor[column:, column:] = np.tril(matrix[column:, column:])
            return factor, column + 1
        factor[column:, column] = rest / math.sqrt(pivot)
        factor[column, column] = math.sqrt(pivot)  # an imaginary part on the diagonal is rounding error, so it is ignored
    return factor, 0


def householder(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute LAPACK's geqrf: R above the diagonal, Householder vectors below it, and their scales."""
    turned, scales = np.linalg.qr(matrix, mode="raw")
    return turned.T, scales


def orthogonal(vectors: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Return the first columns of the product of reflections: (m, n) from vectors (m, n) below the diagonal and their
    scales."""
    m, n = vectors.shape
    result = np.eye(m, n, dtype=vectors.dtype)
    for column in range(len(scales) - 1, -1, -1):
        vector = vectors[column:, column].copy()
        vector[0] = 1
        result[column:] -= scales[column] * np.outer(vector, vector.conj() @ result[column:])
    return result


def least_squares(a: np.ndarray, b: np.ndarray, limit: float) -> tuple[np.ndarray, int, np.ndarray]:
    """Return the minimum-norm solution, the rank and the singular values; values up to `limit` times the largest count as 0."""
    left, values, right = np.linalg.svd(a, full_matrices=False)
    limit = np.finfo(values.dtype).eps if limit < 0 else limit
    rank = int((values > limit * values.max(initial=0)).sum())
    inner = left[:, :rank].conj().T @ b / values[:rank, None]
    return right[:rank].conj().T @ inner, rank, values


def solve_full_rank(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the least-squares or minimum-norm solution by QR, and the 1-based position of a zero on R's diagonal, or 0."""
    m, n = a.shape
    q, r = np.linalg.qr(a if m >= n else a.conj().T)
    zeros = np.flatnonzero(np.diagonal(r) == 0)
    if zeros.size:
        return np.zeros((n, b.shape[1]), b.dtype), int(zeros[0]) + 1
    if m >= n:
        solution = q.conj().T @ b
        divide(r, solution, upper=True)
        return solution, 0
    inner = np.array(b)
    divide(r.conj().T, inner, upper=False)
    return q @ inner, 0


# the degree of the Pade approximation, and the norm up to which it is exact in float64
_DEGREE, _MAX_NORM = 13, 5.371920351148152
_COEFFICIENTS = [
    math.factorial(2 * _DEGREE - k) / (math.factorial(2 * _DEGREE) * math.factorial(k) * math.factorial(_DEGREE - k))
    * math.factorial(_DEGREE) for k in range(_DEGREE + 1)
]  # fmt: skip
"""Coefficients of the Pade numerator; those of the denominator have alternating signs."""


def exponential(a: np.ndarray) -> np.ndarray:
    """Compute exp of a batch of finite square matrices in float64 or complex128, by scaling and squaring."""
    norms = np.abs(a).sum(-2).max(-1, initial=0)
    halvings = np.maximum(np.ceil(np.log2(np.maximum(norms, 1e-300) / _MAX_NORM)), 0).astype(int)
    a = a / np.exp2(halvings)[..., None, None]
    even, odd = np.zeros_like(a), np.zeros_like(a)
    square, power = a @ a, np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape)
    for k in range(0, _DEGREE, 2):
        even = even + _COEFFICIENTS[k] * power
        odd = odd + _COEFFICIENTS[k + 1] * power
        power = power @ square
    odd = a @ odd
    result = np.linalg.solve(even - odd, even + odd)
    for done in range(int(halvings.max(initial=0))):
        result = np.where((halvings > done)[..., None, None], result @ result, result)
    return result
