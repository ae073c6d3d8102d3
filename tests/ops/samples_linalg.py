"""Sample calls of linear algebra: factorizations, spectra, solvers, distances. Matrices are far from singular."""

from __future__ import annotations

import numpy as np

import rushlight as rl
from rushlight.core.tensor import Tensor
from rushlight.ops.registry import aten
from tests.ops.samples import group, real

_random = np.random.default_rng(7)


def regular(*shape: int) -> Tensor:
    """Square matrices with a large diagonal, whose entries differ."""
    size = shape[-1]
    noise = _random.uniform(-0.5, 0.5, shape)
    return rl.from_numpy(noise + np.diag(np.arange(size) + 2.0))


def positive_definite(*shape: int) -> Tensor:
    """Symmetric positive-definite matrices."""
    half = regular(*shape).numpy()
    return rl.from_numpy(half @ np.swapaxes(half, -1, -2))


def triangular(*shape: int) -> Tensor:
    """Lower triangular matrices with a large diagonal."""
    return regular(*shape).tril()


@group
def _factorizations():
    for matrix in (positive_definite(3, 3), positive_definite(2, 2, 2), positive_definite(3, 3).T, regular(0, 0)):
        for upper in (False, True):
            yield "linalg_cholesky_ex", matrix, {"upper": upper}
    for matrix in (real(3, 3), real(2, 3, 4), real(4, 3), real(2, 4, 3).transpose(-2, -1)):
        yield "linalg_lu_factor_ex", matrix
        factors, pivots, _ = aten("linalg_lu_factor_ex")(matrix)
        yield "lu_unpack", factors, pivots
        yield "lu_unpack", factors, pivots, False
        yield "lu_unpack", factors, pivots, True, False
    for matrix in (positive_definite(3, 3), positive_definite(2, 3, 3)):
        yield "linalg_ldl_factor_ex", matrix
        factors, pivots, _ = aten("linalg_ldl_factor_ex")(matrix)
        yield "linalg_ldl_solve", factors, pivots, real(3, 2)
    for matrix in (real(3, 3), real(2, 4, 3), real(3, 4), real(4, 3).T):
        for mode in ("reduced", "complete", "r"):
            yield "linalg_qr", matrix, mode
        yield "geqrf", matrix
    for matrix in (real(4, 3), real(2, 3, 3)):
        factors, scales = aten("geqrf")(matrix)
        yield "linalg_householder_product", factors, scales
        yield "linalg_householder_product", factors, scales[..., :2]


@group
def _spectra():
    for matrix in (positive_definite(2, 2), positive_definite(3, 2, 2)):
        for upper in ("L", "U"):
            yield "_linalg_eigh", matrix, upper
            yield "_linalg_eigh", matrix, upper, False
    for matrix in (rl.tensor([[3.0, 1.0], [0.5, 1.0]], dtype=rl.float64), rl.tensor([[[2.0]], [[1.0]]], dtype=rl.float64)):
        yield "linalg_eig", matrix
        yield "_linalg_eigvals", matrix
    for matrix in (regular(2, 2), regular(3, 2, 2), real(4, 2)):
        yield "_linalg_svd", matrix
        yield "_linalg_svd", matrix, False, False


@group
def _solvers():
    for matrix, right in ((regular(3, 3), real(3)), (regular(3, 3), real(3, 2)), (regular(2, 3, 3), real(2, 3)),
                          (regular(2, 3, 3), real(3, 2)), (regular(3, 3).T, real(2, 3, 2))):  # fmt: skip
        yield "linalg_solve_ex", matrix, right
    yield "linalg_solve_ex", regular(3, 3), real(2, 3), {"left": False}
    for matrix in (regular(3, 3), regular(2, 3, 3), regular(3, 3).T):
        yield "linalg_inv_ex", matrix
        yield "linalg_det", matrix
        yield "linalg_slogdet", matrix
        yield "linalg_matrix_exp", matrix / 3
        yield "linalg_pinv.atol_rtol_tensor", matrix
        for upper in (False, True):
            yield "cholesky_solve", real(3, 2), triangular(3, 3).T if upper else triangular(3, 3), upper
            for left in (False, True):
                yield "linalg_solve_triangular", matrix, real(3, 3), {"upper": upper, "left": left}
        yield "linalg_solve_triangular", matrix, real(3, 2), {"upper": True, "unitriangular": True}
    yield "linalg_pinv.atol_rtol_tensor", real(4, 2)
    for driver in ("gels", "gelsy"):
        yield "linalg_lstsq", real(3, 3), real(3, 2), {"driver": driver}
        yield "linalg_lstsq", real(2, 2, 4), real(2, 2, 3), {"driver": driver}


@group
def _distances():
    for order in (0.0, 1.0, 1.5, 2.0, 3.0, float("inf")):
        first, second = real(4, 3), real(2, 3)
        yield "_cdist_forward", first, second, order, None
        found = aten("_cdist_forward")(first, second, order, None)
        yield "_cdist_backward", real(4, 2), first, second, order, found
        yield "_pdist_forward", first, order
        yield "_pdist_backward", real(6), first, order, aten("_pdist_forward")(first, order)
    yield "_cdist_forward", real(5, 1, 4, 3), real(2, 2, 3), 2.0, 2
