"""Helpers for the derivatives of linear algebra: adjoints, diagonals, triangles, solutions, checks of gauge invariance."""

from __future__ import annotations

from rushlight.core.tensor import Tensor
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


def adjoint(matrix: Tensor) -> Tensor:
    """Return each matrix transposed and conjugated."""
    return matrix.mH if matrix.is_complex() else matrix.transpose(-2, -1)


def diagonal(matrix: Tensor) -> Tensor:
    """Return the main diagonal of each matrix."""
    return matrix.diagonal(0, -2, -1)


def identity_like(matrix: Tensor) -> Tensor:
    """Return the identity matrix with the rows, dtype and device of a batch of square matrices."""
    return aten.eye(matrix.size(-1), dtype=matrix.dtype, device=matrix.device)


def diagonal_matrix(values: Tensor) -> Tensor:
    """Return matrices with `values` on their diagonals and 0 elsewhere."""
    return values.unsqueeze(-1) * aten.eye(values.size(-1), dtype=values.dtype, device=values.device)


def without_diagonal(matrix: Tensor) -> Tensor:
    """Return the matrices with 0 on their diagonals."""
    return aten.where(identity_like(matrix) != 0, aten.zeros_like(matrix), matrix)


def has_values(tensor: Tensor) -> bool:
    """Return whether a formula may read elements: not during capture, and not on the meta device."""
    return not (tensor._impl.fake or tensor.is_meta)


def right_divide(value: Tensor, triangle: Tensor, *, upper: bool, unitriangular: bool = False) -> Tensor:
    """Compute value @ triangle^-1."""
    return aten.linalg_solve_triangular(triangle, value, upper=upper, left=False, unitriangular=unitriangular)


def left_divide(triangle: Tensor, value: Tensor, *, upper: bool, unitriangular: bool = False) -> Tensor:
    """Compute triangle^-1 @ value."""
    return aten.linalg_solve_triangular(triangle, value, upper=upper, unitriangular=unitriangular)


def check_phase(phase: Tensor, scale: Tensor, name: str, what: str) -> None:
    """Raise RuntimeError if a loss depends on the complex phases of vectors, which no factorization determines.

    `phase` holds the loss's slopes along the phases; `scale` sets the tolerance for rounding errors.
    """
    if not has_values(phase):
        return
    slopes, size = phase.detach().abs(), scale.detach().abs()
    if slopes.numel() and float(slopes.max().item()) > 1e-2 * max(1.0, float(size.max().item())):
        raise RuntimeError(
            f"{name}: The {what} in the complex case are specified up to multiplication by e^{{i phi}}. The specified loss "
            "function depends on this quantity, so it is ill-defined."
        )
