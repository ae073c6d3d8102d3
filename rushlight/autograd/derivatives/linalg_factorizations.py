"""Derivatives of Cholesky, LU and QR factorizations.

Sources: I. Murray, "Differentiation of the Cholesky decomposition" (2016); S. F. Walter and L. Lehmann, "Algorithmic
differentiation of linear algebra functions with application in optimum experimental design" (2010); M. Giles, "An extended
collection of matrix derivative results" (2008). For complex matrices, adjoints replace the transposes.
"""

from __future__ import annotations

from rushlight.autograd.derivative_table import derivative, non_differentiable
from rushlight.autograd.derivatives.complex import conjugate
from rushlight.autograd.derivatives.linalg_common import (
    adjoint,
    aten,
    diagonal,
    diagonal_matrix,
    identity_like,
    left_divide,
    right_divide,
)
from rushlight.core.tensor import Tensor

non_differentiable("linalg_ldl_factor_ex", "linalg_ldl_solve")


def _differentiate_cholesky(grad, result0, upper):
    lower, slope = (adjoint(result0), adjoint(grad)) if upper else (result0, grad)
    # The gradient is symmetrised, because the input is Hermitian and both triangles hold the same value.
    inner = (adjoint(lower) @ slope).tril()
    inner = (inner + adjoint(inner.tril(-1))) / 2
    return right_divide(left_divide(adjoint(lower), inner, upper=True), lower, upper=False)


derivative("linalg_cholesky_ex", self=_differentiate_cholesky, non_differentiable_outputs=(1,))


def _lu_square(slope_lower: Tensor, slope_upper: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    """Return the gradient of LU for square factors: L^-H (tril(L^H gL, -1) + triu(gU U^H)) U^-H."""
    inner = (adjoint(lower) @ slope_lower).tril(-1) + (slope_upper @ adjoint(upper)).triu()
    inner = left_divide(adjoint(lower), inner, upper=True, unitriangular=True)
    return right_divide(inner, adjoint(upper), upper=False)


def _differentiate_lu_factor(grad, result0, result1, pivot):
    m, n = result0.shape[-2:]
    k = min(m, n)
    permutation = aten.lu_unpack(result0, result1, False, True)[0]
    square = result0[..., :k, :k]
    lower, upper = square.tril(-1) + identity_like(square), square.triu()
    inner = grad[..., :k, :k]
    slope_lower, slope_upper = inner.tril(-1), inner.triu()
    if m < n:
        # The columns right of the square part are U2 = L^-1 A2.
        rest = left_divide(adjoint(lower), grad[..., k:], upper=True, unitriangular=True)
        slope_lower = slope_lower - (rest @ adjoint(result0[..., k:])).tril(-1)
        return permutation @ aten.cat([_lu_square(slope_lower, slope_upper, lower, upper), rest], -1)
    if m > n:
        # The rows below the square part are L2 = A2 U^-1.
        rest = right_divide(grad[..., k:, :], adjoint(upper), upper=False)
        slope_upper = slope_upper - (adjoint(result0[..., k:, :]) @ rest).triu()
        return permutation @ aten.cat([_lu_square(slope_lower, slope_upper, lower, upper), rest], -2)
    return permutation @ _lu_square(slope_lower, slope_upper, lower, upper)


derivative("linalg_lu_factor_ex", A=_differentiate_lu_factor, non_differentiable_outputs=(1, 2))


def _differentiate_lu_unpack(grads, LU_data_sizes):
    lower, upper = grads[1], grads[2]
    *batch, m, n = LU_data_sizes
    given = lower if lower is not None else upper
    if given is None or given.dim() < 2:  # this factor was not computed
        return None
    k = min(m, n)
    parts = given.new_zeros((*batch, m, n))
    if lower is not None:
        parts = parts + aten.constant_pad_nd(lower.tril(-1), [0, n - k])
    if upper is not None:
        parts = parts + aten.constant_pad_nd(upper.triu(), [0, 0, 0, m - k])
    return parts


derivative("lu_unpack", LU_data=_differentiate_lu_unpack, non_differentiable_outputs=(0,))


def _differentiate_qr(grads, A, result0, result1, mode):
    m, n = A.shape[-2:]
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use "
            "linalg.qr(A, mode='reduced') if you are going to require gradients through linalg.qr"
        )
    if mode == "complete" and m > n:
        raise RuntimeError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols. Please use "
            "mode='reduced' if you are going to require gradients through linalg.qr"
        )
    slope_q = grads[0] if grads[0] is not None else aten.zeros_like(result0)
    slope_r = grads[1] if grads[1] is not None else aten.zeros_like(result1)
    if m >= n:
        return _qr_tall(slope_q, slope_r, result0, result1)
    # The columns right of the square part are R2 = Q^H A2.
    rest = slope_r[..., m:]
    slope_q = slope_q + A[..., m:] @ adjoint(rest)
    return aten.cat([_qr_tall(slope_q, slope_r[..., :m], result0, result1[..., :m]), result0 @ rest], -1)


def _qr_tall(slope_q: Tensor, slope_r: Tensor, q: Tensor, r: Tensor) -> Tensor:
    """Compute (gQ + Q (gR R^H + S(Q^H gQ - gR R^H) - Q^H gQ)) R^-H, where S is the skew part, which rotates Q; R's diagonal is
    real."""
    inner_q, inner_r = adjoint(q) @ slope_q, slope_r.triu() @ adjoint(r)
    difference = inner_q - inner_r
    turned = (difference - adjoint(difference)).tril(-1)
    if turned.is_complex():
        values = diagonal(difference)
        turned = turned + diagonal_matrix((values - conjugate(values)) / 2)
    return right_divide(slope_q + q @ (inner_r + turned - inner_q), adjoint(r), upper=False)


derivative("linalg_qr", A=_differentiate_qr)


def _differentiate_no_geqrf(grads):
    raise RuntimeError("derivative for geqrf is not implemented; use torch.linalg.qr, which is differentiable")


derivative("geqrf", self=_differentiate_no_geqrf)


def _reflector(input: Tensor, index: int) -> Tensor:
    """Return the vector of reflector `index` as a column: zeros, a one, and the elements below the diagonal."""
    below = input[..., index + 1 :, index : index + 1]
    one = aten.ones((*input.shape[:-2], 1, 1), dtype=input.dtype, device=input.device)
    return aten.constant_pad_nd(aten.cat([one, below], -2), [0, 0, index, 0])


def _differentiate_householder(grad, input, tau):
    """Differentiate Q = H_1 ... H_k E with H = I - t v v^H. With L the gradient pulled back through H_1 ... H_(i-1), and R =
    H_(i+1) ... E, a = L^H v and b = R^H v: the gradient of t is -a^H b, and that of v is -(conj(t) L b + t R a)."""
    m, n = input.shape[-2:]
    count = tau.size(-1)
    vectors = [_reflector(input, index) for index in range(count)]
    scales = [tau[..., index].unsqueeze(-1).unsqueeze(-1) for index in range(count)]
    rights = [aten.eye(m, n, dtype=input.dtype, device=input.device).expand(input.shape)]
    for vector, scale in zip(reversed(vectors[1:]), reversed(scales[1:]), strict=True):
        rights.append(rights[-1] - scale * (vector @ (adjoint(vector) @ rights[-1])))
    left, columns, slopes = grad, [], []
    for index, (vector, scale, right) in enumerate(zip(vectors, scales, reversed(rights), strict=False)):
        a, b = adjoint(left) @ vector, adjoint(right) @ vector
        slopes.append(-(adjoint(a) @ b)[..., 0])
        column = -(conjugate(scale) * (left @ b) + scale * (right @ a))
        columns.append(aten.constant_pad_nd(column[..., index + 1 :, :], [0, 0, index + 1, 0]))
        left = left - conjugate(scale) * (vector @ (adjoint(vector) @ left))
    if not count:
        return aten.zeros_like(input), aten.zeros_like(tau)
    return aten.constant_pad_nd(aten.cat(columns, -1), [0, n - count]), aten.cat(slopes, -1)


derivative("linalg_householder_product", ("input", "tau"), _differentiate_householder)
