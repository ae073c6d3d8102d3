"""Derivatives of eigenvalue and singular value decompositions.

Sources: M. Giles, "An extended collection of matrix derivative results" (2008); J. Townsend, "Differentiating the singular
value decomposition" (2016); Z.-Q. Wan and S.-X. Zhang, "Automatic differentiation for complex valued SVD" (2019).
"""

from __future__ import annotations

from rushlight.autograd.derivative_table import derivative
from rushlight.autograd.derivatives.complex import conjugate, real_part
from rushlight.autograd.derivatives.linalg_common import (
    adjoint,
    aten,
    check_phase,
    diagonal,
    diagonal_matrix,
    identity_like,
    without_diagonal,
)
from rushlight.core.tensor import Tensor


def _gaps(values: Tensor) -> Tensor:
    """Return the matrix of v_j - v_i, with 1 on the diagonal."""
    differences = values.unsqueeze(-2) - values.unsqueeze(-1)
    return differences + identity_like(differences)


def _differentiate_eigh(grads, A, result0, result1, UPLO, compute_v):
    values, vectors = result0, result1
    if not compute_v:
        vectors = aten._linalg_eigh(A, UPLO)[1]
    slope, slope_vectors = grads[0], grads[1] if compute_v else None
    if slope_vectors is None:
        return None if slope is None else (vectors * slope.unsqueeze(-2)) @ adjoint(vectors)
    inner = adjoint(vectors) @ slope_vectors
    if inner.is_complex():
        check_phase(aten.imag(diagonal(inner)), inner, "linalg_eigh_backward", "eigenvectors")
    inner = without_diagonal(inner) / _gaps(values)
    if slope is not None:
        inner = inner + diagonal_matrix(slope)
    result = vectors @ inner @ adjoint(vectors)
    # Hermitian, because the input is.
    return (result + adjoint(result)) / 2


derivative("_linalg_eigh", A=_differentiate_eigh)


def _differentiate_eig(grads, result0, result1):
    """Compute V^-H (diag(gW) + (V^H gV - V^H V Re(diag(V^H gV))) / conj(E)) V^H, where columns of V keep the length 1."""
    slope, slope_vectors = grads
    values, vectors = result0, result1
    transposed = adjoint(vectors)
    if slope_vectors is None:
        if slope is None:
            return None
        return aten.linalg_solve(transposed, slope.unsqueeze(-1) * transposed)
    inner = transposed @ slope_vectors
    along = diagonal(inner)
    check_phase(aten.imag(along), inner, "linalg_eig_backward", "eigenvectors")
    inner = inner - (transposed @ vectors) * aten.real(along).unsqueeze(-2)
    inner = without_diagonal(inner) / conjugate(_gaps(values))
    if slope is not None:
        inner = inner + diagonal_matrix(slope)
    return aten.linalg_solve(transposed, inner @ transposed)


def _differentiate_eigvals(grad, self):
    transposed = adjoint(aten.linalg_eig(self)[1])
    return aten.linalg_solve(transposed, grad.unsqueeze(-1) * transposed)


derivative("linalg_eig", self=_differentiate_eig)
derivative("_linalg_eigvals", self=_differentiate_eigvals)


def _differentiate_svd(grads, A, result0, result1, result2, full_matrices, compute_uv):
    k = min(A.shape[-2:])
    slope_u, slope, slope_vh = grads if compute_uv else (None, grads[1], None)
    u, values, vh = (result0, result1, result2) if compute_uv else aten._linalg_svd(A)
    if full_matrices and compute_uv:
        # Columns beyond the first k are an arbitrary orthonormal completion, so they carry no gradient.
        u, vh = u[..., :k], vh[..., :k, :]
        slope_u = None if slope_u is None else slope_u[..., :k]
        slope_vh = None if slope_vh is None else slope_vh[..., :k, :]
    if slope_u is None and slope_vh is None:
        return None if slope is None else (u * _like(slope, u).unsqueeze(-2)) @ vh
    return _svd_with_vectors(slope_u, slope, slope_vh, u, values, vh)


def _like(values: Tensor, matrix: Tensor) -> Tensor:
    return values.to(matrix.dtype) if matrix.is_complex() else values


def _skew(matrix: Tensor) -> Tensor:
    return matrix - adjoint(matrix)


def _svd_with_vectors(slope_u, slope, slope_vh, u, values, vh):
    """Compute U [(skew(U^H gU) / E) S + S (skew(V^H gV) / E) + diag(gS)] V^H, and the parts of gU and gV outside U's and V's
    spans."""
    m, n, k = u.size(-2), vh.size(-1), values.size(-1)
    row, column = values.unsqueeze(-2), values.unsqueeze(-1)
    # Factor the differences of squares into sum times difference, which keeps precision for close singular values.
    gaps = (row - column) * (row + column) + identity_like(u[..., :k, :])
    gaps = real_part(gaps)
    inner_u = None if slope_u is None else adjoint(u) @ slope_u
    inner_v = None if slope_vh is None else vh @ adjoint(slope_vh)
    inner = 0
    if inner_u is not None:
        inner = without_diagonal(_skew(inner_u)) / gaps * row
    if inner_v is not None:
        inner = inner + column * (without_diagonal(_skew(inner_v)) / gaps)
    if u.is_complex():
        inner = inner + _phase_gradient(inner_u, inner_v, values)
    if slope is not None:
        inner = inner + diagonal_matrix(_like(slope, u))
    result = u @ inner @ vh
    if slope_u is not None and m > k:
        outside = slope_u - u @ inner_u
        result = result + (outside / row) @ vh
    if slope_vh is not None and n > k:
        outside = slope_vh - adjoint(inner_v) @ vh
        result = result + u @ (outside / column)
    return result


def _phase_gradient(inner_u, inner_v, values):
    """Return the part of the gradient along U's phases. RuntimeError where the loss depends on phases that U and V share."""
    zero = aten.zeros_like(values)
    turn_u = zero if inner_u is None else aten.imag(diagonal(inner_u))
    turn_v = zero if inner_v is None else aten.imag(diagonal(inner_v))
    check_phase(turn_u + turn_v, inner_u if inner_u is not None else inner_v, "svd_backward", "singular vectors")
    return diagonal_matrix((turn_u / values) * 1j)


derivative("_linalg_svd", A=_differentiate_svd)
