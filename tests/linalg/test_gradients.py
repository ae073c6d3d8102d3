"""Gradients of linear algebra against differences: what the samples of primitives leave out, and composites."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as rl
from rushlight.autograd import gradcheck, gradgradcheck

RANDOM = np.random.default_rng(5)


def leaf(*shape: int) -> rl.Tensor:
    """A float64 leaf whose matrices are far from singular."""
    noise = RANDOM.uniform(-0.5, 0.5, shape)
    if len(shape) > 1:
        k = min(shape[-2:])
        noise[..., range(k), range(k)] += np.arange(k) + 2
    return rl.from_numpy(noise).requires_grad_()


def symmetric(x: rl.Tensor) -> rl.Tensor:
    return x @ x.mT


FUNCTIONS = {
    "cholesky": (lambda x: rl.linalg.cholesky(symmetric(x)), (2, 3, 3)),
    "cholesky upper": (lambda x: rl.linalg.cholesky(symmetric(x), upper=True), (3, 3)),
    "cholesky_inverse": (lambda x: rl.cholesky_inverse(rl.linalg.cholesky(symmetric(x))), (3, 3)),
    "cholesky_solve": (lambda x: rl.cholesky_solve(x, rl.linalg.cholesky(symmetric(x))), (3, 3)),
    "eigh": (lambda x: rl.linalg.eigh(symmetric(x)), (2, 3, 3)),
    "eigvalsh": (lambda x: rl.linalg.eigvalsh(symmetric(x)), (3, 3)),
    "eig": (lambda x: [abs(part) for part in rl.linalg.eig(x)], (3, 3)),
    "eigvals": (lambda x: rl.view_as_real(rl.linalg.eigvals(x)), (3, 3)),
    "svd": (lambda x: rl.linalg.svd(x, full_matrices=False), (2, 4, 3)),
    "svd wide": (lambda x: rl.linalg.svd(x, full_matrices=False), (3, 4)),
    "svd full": (lambda x: [part[..., :3] for part in rl.linalg.svd(x)][:2], (4, 3)),
    "svdvals": (lambda x: rl.linalg.svdvals(x), (3, 4)),
    "qr": (lambda x: rl.linalg.qr(x), (2, 4, 3)),
    "qr wide": (lambda x: rl.linalg.qr(x), (3, 4)),
    "lu": (lambda x: rl.linalg.lu(x)[1:], (2, 4, 3)),
    "lu wide": (lambda x: rl.linalg.lu(x)[1:], (3, 4)),
    "lu_solve": (lambda x: rl.linalg.lu_solve(*rl.linalg.lu_factor(x), x, adjoint=True), (3, 3)),
    "ormqr": (lambda x: rl.ormqr(*rl.linalg.qr(x)[:1], x[..., 0], x, transpose=True), (3, 3)),
    "det of singular": (lambda x: rl.linalg.det(x * rl.tensor([1.0, 1.0, 0.0])), (3, 3)),
    "logdet": (lambda x: rl.logdet(symmetric(x)), (3, 3)),
    "pinv of rank 2": (lambda x: rl.linalg.pinv(x[:, :2] @ x[:2]), (3, 3)),
    "lstsq": (lambda x: rl.linalg.lstsq(x, x.sin(), driver="gelsd")[:2], (4, 2)),
    "nuclear norm": (lambda x: rl.linalg.matrix_norm(x, "nuc"), (3, 4)),
    "spectral norm": (lambda x: rl.linalg.matrix_norm(x, 2), (3, 4)),
    "matrix_power": (lambda x: rl.linalg.matrix_power(x, -3), (2, 2)),
    "multi_dot": (lambda x: rl.linalg.multi_dot([x, x, x[:, 0]]), (3, 3)),
    "tensorsolve": (lambda x: rl.linalg.tensorsolve(x.reshape(2, 2, 4), x[:2, :2]), (4, 4)),
    "corrcoef": (lambda x: rl.corrcoef(x), (2, 4)),
    "renorm": (lambda x: rl.renorm(x, 2, 0, 1.0), (2, 3)),
    "norm 1.5": (lambda x: rl.linalg.vector_norm(x, 1.5, dim=-1), (2, 3)),
    "kron": (lambda x: rl.kron(x, x[:1]), (2, 2)),
    "vander": (lambda x: rl.linalg.vander(x[0]), (2, 3)),
}
# Their second derivatives pass through the difference of a decomposition's gauge, or through a rank.
FIRST_ONLY = ("eig", "pinv of rank 2", "det of singular", "svd full")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradient(name):
    function, shape = FUNCTIONS[name]
    assert gradcheck(function, (leaf(*shape),))


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in FIRST_ONLY])
def test_second_gradient(name):
    function, shape = FUNCTIONS[name]
    assert gradgradcheck(function, (leaf(*shape),), atol=1e-4)


@pytest.mark.parametrize("p", (1.0, 1.5, 2.0, 3.0, float("inf")))
def test_distances(p):
    assert gradcheck(lambda a, b: rl.cdist(a, b, p), (leaf(2, 4, 3), leaf(3, 3)))
    assert gradcheck(lambda a: rl.nn.functional.pdist(a, p), (leaf(4, 3),))


def test_coinciding_points_have_gradient_zero():
    x = rl.ones(2, 3, requires_grad=True)
    rl.cdist(x, x).sum().backward()
    assert not x.grad.any()
    with pytest.raises(RuntimeError, match="_cdist_backward"):
        y = leaf(2, 3)
        (slope,) = rl.autograd.grad(rl.cdist(y, leaf(3, 3)).sum(), y, create_graph=True)
        slope.sum().backward()


@pytest.mark.parametrize("order", (0, 0.5, 1, 1.5, 2, 3))
def test_norms_have_a_gradient_at_zero(order):
    x = rl.zeros(3, requires_grad=True)
    rl.linalg.vector_norm(x, order).backward()
    assert x.grad.tolist() == [0, 0, 0]


def test_losses_that_depend_on_phases_are_refused():
    x = rl.complex(leaf(3, 3).detach(), leaf(3, 3).detach()).requires_grad_()
    for vectors in (rl.linalg.eigh(x @ x.mH)[1], rl.linalg.svd(x)[0], rl.linalg.eig(x)[1]):
        with pytest.raises(RuntimeError, match="specified up to multiplication"):
            (rl.imag(vectors) * rl.arange(9.0).reshape(3, 3)).sum().backward(retain_graph=True)


def test_modes_of_qr_without_a_gradient():
    x = leaf(4, 3)
    with pytest.raises(RuntimeError, match="mode='complete' and nrows > ncols"):
        rl.linalg.qr(x, "complete")[0].sum().backward()
    with pytest.raises(RuntimeError, match="not computed when mode='r'"):
        rl.linalg.qr(x, "r")[1].sum().backward()
    with pytest.raises(RuntimeError, match="derivative for geqrf is not implemented"):
        rl.geqrf(x)[0].sum().backward()


def test_integer_results_carry_no_gradient():
    x = leaf(3, 3)
    assert not rl.linalg.matrix_rank(x).requires_grad
    assert not rl.linalg.lu_factor(x).pivots.requires_grad
    assert not rl.linalg.inv_ex(x).info.requires_grad


def test_the_gradient_of_singular_determinants_is_compiled():
    x = rl.tensor([[[1.0, 2.0], [2.0, 4.0]], [[1.0, 2.0], [3.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]]], requires_grad=True)
    (gradient,) = rl.autograd.grad(rl.compile(rl.linalg.det)(x).sum(), x)
    cofactors = [[[4, -2], [-2, 1]], [[4, -3], [-2, 1]], [[0, 0], [0, 0]]]
    np.testing.assert_allclose(gradient.numpy(), cofactors, rtol=1e-5, atol=1e-5)
