"""Linear algebra gives PyTorch's values, first and second gradients, of real and of complex matrices."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as rl

pytestmark = pytest.mark.oracle

# Each takes the package and a matrix; results are free of signs and phases, which factorizations leave open.
CALLS = {
    "cholesky": (lambda m, x: m.linalg.cholesky(x @ x.mH), (2, 3, 3)),
    "cholesky_solve": (lambda m, x: m.cholesky_solve(x, m.linalg.cholesky(x @ x.mH)), (3, 3)),
    "eigh": (lambda m, x: [part.abs() for part in m.linalg.eigh(x @ x.mH)], (3, 3)),
    "eigvalsh": (lambda m, x: m.linalg.eigvalsh(x @ x.mH), (2, 3, 3)),
    "eig": (lambda m, x: [part.abs() for part in m.linalg.eig(x)], (3, 3)),
    "eigvals": (lambda m, x: m.linalg.eigvals(x).abs(), (3, 3)),
    "svd": (lambda m, x: [part.abs() for part in m.linalg.svd(x, full_matrices=False)], (4, 3)),
    "svd wide": (lambda m, x: [part.abs() for part in m.svd(x)], (2, 3, 4)),
    "svdvals": (lambda m, x: m.linalg.svdvals(x), (3, 4)),
    "qr": (lambda m, x: m.linalg.qr(x), (2, 4, 3)),
    "qr wide": (lambda m, x: m.linalg.qr(x), (3, 4)),
    "lu": (lambda m, x: m.linalg.lu(x)[1:], (4, 3)),
    "lu_factor": (lambda m, x: m.linalg.lu_factor(x)[0], (2, 3, 4)),
    "lu_solve": (lambda m, x: m.linalg.lu_solve(*m.linalg.lu_factor(x), x.mH, adjoint=True, left=False), (3, 3)),
    "inv": (lambda m, x: m.linalg.inv(x), (2, 3, 3)),
    "solve": (lambda m, x: m.linalg.solve(x, x[..., 0]), (2, 3, 3)),
    "solve right": (lambda m, x: m.linalg.solve(x, x.mH, left=False), (3, 3)),
    "solve_triangular": (lambda m, x: m.linalg.solve_triangular(x, x.mH, upper=True, left=False), (3, 3)),
    "det": (lambda m, x: m.linalg.det(x), (2, 3, 3)),
    "slogdet": (lambda m, x: m.linalg.slogdet(x), (2, 3, 3)),
    "pinv": (lambda m, x: m.linalg.pinv(x), (4, 3)),
    "lstsq": (lambda m, x: m.linalg.lstsq(x, x.cos(), driver="gelsd")[:2], (4, 2)),
    "matrix_exp": (lambda m, x: m.linalg.matrix_exp(x / 4), (2, 3, 3)),
    "matrix_power": (lambda m, x: m.linalg.matrix_power(x, -2), (3, 3)),
    "householder_product": (lambda m, x: m.linalg.householder_product(x, x[0] / 9), (4, 3)),
    "ormqr": (lambda m, x: m.ormqr(x, x[0] / 9, x, transpose=True), (3, 3)),
    "vector_norm": (lambda m, x: m.linalg.vector_norm(x, 3, dim=-1), (2, 3)),
    "nuclear": (lambda m, x: m.linalg.matrix_norm(x, "nuc"), (3, 4)),
    "spectral": (lambda m, x: m.linalg.norm(x, -2), (3, 4)),
    "cond": (lambda m, x: m.linalg.cond(x, 2), (3, 3)),
    "multi_dot": (lambda m, x: m.linalg.multi_dot([x, x, x[:, 0]]), (3, 3)),
    "cov": (lambda m, x: m.cov(x), (2, 4)),
    "corrcoef": (lambda m, x: m.corrcoef(x), (2, 4)),
    "cross": (lambda m, x: m.linalg.cross(x, x.cos()), (2, 3)),
    "vecdot": (lambda m, x: m.linalg.vecdot(x, x.cos()), (2, 3)),
    "vdot": (lambda m, x: m.vdot(x[0], x[1]), (2, 3)),
    "tensordot": (lambda m, x: m.tensordot(x, x, dims=([0, 1], [0, 1])), (2, 3, 4)),
    "addr": (lambda m, x: m.addr(x, x[0], x[1], beta=0.5, alpha=2), (2, 2)),
    "addbmm": (lambda m, x: m.addbmm(x[0], x, x, alpha=0.5), (2, 3, 3)),
    "kron": (lambda m, x: m.kron(x, x), (2, 2)),
    "vander": (lambda m, x: m.linalg.vander(x), (2, 3)),
}


def values(shape: tuple[int, ...], is_complex: bool) -> np.ndarray:
    random = np.random.default_rng(sum(shape))
    made = random.uniform(0.2, 1, shape) + (1j * random.uniform(-1, 1, shape) if is_complex else 0)
    k = min(shape[-2:])
    made[..., range(k), range(k)] += np.arange(k) * 1.5 + 2
    return made


def parts(results: object) -> list:
    """The results as real tensors, in a list."""
    found = results if isinstance(results, list | tuple) else [results]
    return [part for value in found for part in ((value.real, value.imag) if value.is_complex() else (value,))]


def weighted(tensors: list) -> object:
    """The sum of all elements, each with a weight of its own."""
    return sum(((value * (index + 1.5)).sin().sum() for index, value in enumerate(tensors)), 0.0)


def trace(package, array: np.ndarray, call) -> list[np.ndarray]:
    """The results, the first and the second gradient, as arrays."""
    x = package.from_numpy(array.copy()).requires_grad_()
    results = parts(call(package, x))
    (first,) = package.autograd.grad(weighted(results), x, create_graph=True)
    (second,) = package.autograd.grad(weighted(parts(first)), x, allow_unused=True)
    found = [*results, *parts(first), *(parts(second) if second is not None else [])]
    return [value.detach().resolve_neg().numpy() for value in found]


@pytest.mark.parametrize("is_complex", (False, True), ids=("real", "complex"))
@pytest.mark.parametrize("name", CALLS)
def test_values_and_gradients_agree(name, is_complex):
    torch = pytest.importorskip("torch")
    call, shape = CALLS[name]
    array = values(shape, is_complex)
    for got, want in zip(trace(rl, array, call), trace(torch, array, call), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)


ERRORS = {
    "inv": lambda m: m.linalg.inv(m.ones(2, 2, 2)),
    "inv of one": lambda m: m.linalg.inv(m.ones(2, 2)),
    "solve": lambda m: m.linalg.solve(m.ones(2, 2), m.ones(2)),
    "cholesky": lambda m: m.linalg.cholesky(-m.eye(2)),
    "svd": lambda m: m.linalg.svd(m.full((2, 2), float("nan"))),
    "shape": lambda m: m.linalg.det(m.ones(2, 3)),
    "dtype": lambda m: m.linalg.inv(m.ones(2, 2).half()),
    "kernel": lambda m: m.linalg.cholesky(m.eye(2).bfloat16()),
    "order": lambda m: m.linalg.norm(m.ones(2, 2), "x"),
    "lu": lambda m: m.linalg.lu_factor(m.zeros(2, 2)),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_agree(name):
    torch = pytest.importorskip("torch")
    with pytest.raises(RuntimeError) as want:
        ERRORS[name](torch)
    with pytest.raises(RuntimeError) as got:
        ERRORS[name](rl)
    assert got.type.__name__ == want.type.__name__.lstrip("_")
    assert str(got.value)[:60] == str(want.value)[:60]
