"""Derivatives of linear solvers, inverses, determinants and the matrix exponential.

Sources: M. Giles, "An extended collection of matrix derivative results" (2008); G. H. Golub and V. Pereyra, "The
differentiation of pseudo-inverses and nonlinear least squares problems whose variables separate" (1973); A. H. Al-Mohy and
N. J. Higham, "Computing the Frechet derivative of the matrix exponential" (2009).
"""

from __future__ import annotations

from rushlight.autograd.derivative_table import derivative
from rushlight.autograd.derivatives.complex import conjugate
from rushlight.autograd.derivatives.linalg_common import adjoint, aten, has_values, identity_like
from rushlight.core.tensor import Tensor
from rushlight.ops.meta.linalg_checks import is_vector_rhs


def _differentiate_solve(grads, A, B_sizes, result0, left, needs):
    slope, solution = grads[0], result0
    if slope is None:
        return None, None
    vector = is_vector_rhs(A.shape, B_sizes)
    if vector:
        slope, solution = slope.unsqueeze(-1), solution.unsqueeze(-1)
    to_b = aten.linalg_solve_ex(adjoint(A), slope, left=left)[0]
    to_a = None
    if needs[0]:
        to_a = -to_b @ adjoint(solution) if left else -adjoint(solution) @ to_b
    return to_a, to_b.squeeze(-1) if vector else to_b


derivative("linalg_solve_ex", ("A", "B"), _differentiate_solve, non_differentiable_outputs=(1,))


def _differentiate_solve_triangular(grad, self, result, upper, left, unitriangular, needs):
    to_b = aten.linalg_solve_triangular(adjoint(self), grad, upper=not upper, left=left, unitriangular=unitriangular)
    to_a = None
    if needs[0]:
        to_a = -to_b @ adjoint(result) if left else -adjoint(result) @ to_b
        to_a = to_a.triu(int(unitriangular)) if upper else to_a.tril(-int(unitriangular))
    return to_a, to_b


def _differentiate_cholesky_solve(grad, input2, result, upper, needs):
    """With A = L L^H: gL = -(C + C^H) L for C = A^-1 g X^H, on both triangles although only one is read, as in torch."""
    to_b = aten.cholesky_solve(grad, input2, upper)
    to_factor = None
    if needs[1]:
        across = to_b @ adjoint(result)
        across = across + adjoint(across)
        to_factor = -(input2 @ across) if upper else -(across @ input2)
    return to_b, to_factor


derivative("cholesky_solve", ("self", "input2"), _differentiate_cholesky_solve)
derivative("linalg_solve_triangular", ("self", "B"), _differentiate_solve_triangular)


def _differentiate_inverse(grad, result0):
    transposed = adjoint(result0)
    return -transposed @ grad @ transposed


derivative("linalg_inv_ex", A=_differentiate_inverse, non_differentiable_outputs=(1,))


def _differentiate_pseudo_inverse(grad, self, result):
    """Compute -P^H g P^H + (I - A P) g^H P P^H + P^H P g^H (I - P A), assuming constant rank."""
    transposed, turned = adjoint(result), adjoint(grad)
    rows, columns = turned @ result @ transposed, transposed @ result @ turned
    inside = transposed @ grad @ transposed
    return rows - self @ (result @ rows) + columns - (columns @ result) @ self - inside


derivative("linalg_pinv.atol_rtol_tensor", self=_differentiate_pseudo_inverse)


def _differentiate_least_squares(grads, self, b, result0, needs):
    """Differentiate the solution pinv(A) B and the residual. The residual is |AX - B|^2, whose slope in X is 0."""
    slope, slope_residual = grads[0], grads[1]
    vector = b.dim() == 1 or (b.dim() == self.dim() - 1 and b.shape == self.shape[:-1])
    if vector:
        b, result0 = b.unsqueeze(-1), result0.unsqueeze(-1)
        slope = None if slope is None else slope.unsqueeze(-1)
    to_a = to_b = None
    if slope is not None:
        inverse = aten.linalg_pinv.atol_rtol_tensor(self)
        to_b = adjoint(inverse) @ slope
        to_a = _differentiate_pseudo_inverse(slope @ adjoint(b), self, inverse) if needs[0] else None
    if slope_residual is not None and slope_residual.numel():
        weighted = 2 * (self @ result0 - b) * slope_residual.unsqueeze(-2)
        across = weighted @ adjoint(result0)
        to_a, to_b = across if to_a is None else to_a + across, -weighted if to_b is None else to_b - weighted
    return to_a, to_b.squeeze(-1) if vector and to_b is not None else to_b


derivative("linalg_lstsq", ("self", "b"), _differentiate_least_squares, non_differentiable_outputs=(2, 3))


def _differentiate_determinant(grad, A):
    transposed = adjoint(A)
    # Take determinant and inverse from the same factors, so that their product is accurate for nearly singular matrices.
    value = aten.linalg_det(transposed)
    regular = value != 0
    if has_values(value) and not bool(regular.all().item()):
        return grad.unsqueeze(-1).unsqueeze(-1) * _cofactors(A)
    weights = (grad * value).unsqueeze(-1).unsqueeze(-1)
    solved = aten.linalg_solve_ex(transposed, weights * identity_like(A))[0]
    if has_values(value):
        return solved
    return aten.where(regular.unsqueeze(-1).unsqueeze(-1), solved, grad.unsqueeze(-1).unsqueeze(-1) * _cofactors(A))


def _cofactors(matrix: Tensor) -> Tensor:
    """Compute conj(det(A)) A^-H, computed so that it exists for singular matrices, too. With A = U S V^H, each entry is a
    product of the other singular values."""
    u, values, vh = aten._linalg_svd(matrix)
    others = aten.where(aten.eye(values.size(-1), dtype=values.dtype, device=values.device) != 0,
                        aten.ones_like(values).unsqueeze(-2), values.unsqueeze(-2)).prod(-1)  # fmt: skip
    turn = conjugate(aten.linalg_det(u) * aten.linalg_det(vh)).unsqueeze(-1).unsqueeze(-1)
    return turn * ((u * others.unsqueeze(-2)) @ vh)


derivative("linalg_det", A=_differentiate_determinant)


def _differentiate_log_determinant(grads, A, result0):
    slope_sign, slope = grads
    weight = slope
    if A.is_complex() and slope_sign is not None:
        turn = aten.imag(conjugate(result0) * slope_sign) * 1j
        weight = turn if slope is None else slope + turn
    if weight is None:
        return None
    weights = weight.to(A.dtype).unsqueeze(-1).unsqueeze(-1)
    return aten.linalg_solve_ex(adjoint(A), weights * identity_like(A))[0]


derivative("linalg_slogdet", A=_differentiate_log_determinant)


def _differentiate_matrix_exp(grad, self):
    """Return the upper right block of exp([[A^H, g], [0, A^H]])."""
    transposed, size = adjoint(self), self.size(-1)
    above, below = aten.cat([transposed, grad], -1), aten.cat([aten.zeros_like(grad), transposed], -1)
    return aten.linalg_matrix_exp(aten.cat([above, below], -2))[..., :size, size:]


derivative("linalg_matrix_exp", self=_differentiate_matrix_exp)
