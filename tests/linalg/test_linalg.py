"""Values, shapes and errors of linear algebra, against NumPy and by reconstruction."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rushlight as rl
from rushlight.linalg import LinAlgError

RANDOM = np.random.default_rng(3)


def matrices(*shape: int, complex_values: bool = False) -> np.ndarray:
    """Well-conditioned matrices where square."""
    values = RANDOM.uniform(-1, 1, shape)
    if complex_values:
        values = values + 1j * RANDOM.uniform(-1, 1, shape)
    return values + 3 * np.eye(*shape[-2:])


def hermitian(*shape: int, complex_values: bool = False) -> np.ndarray:
    """Hermitian positive-definite matrices."""
    half = matrices(*shape, complex_values=complex_values)
    return half @ np.swapaxes(half, -1, -2).conj()


def close(got: rl.Tensor, want: np.ndarray) -> None:
    assert tuple(got.shape) == want.shape
    np.testing.assert_allclose(got.resolve_conj().numpy(), want, rtol=1e-9, atol=1e-9)


def t(array: np.ndarray) -> rl.Tensor:
    return rl.from_numpy(np.array(array))


both = pytest.mark.parametrize("complex_values", (False, True))


@both
@pytest.mark.parametrize("shape", ((3, 3), (2, 3, 3), (2, 1, 2, 2), (0, 3, 3), (0, 0)))
def test_square_matrices_agree_with_numpy(shape, complex_values):
    a = matrices(*shape, complex_values=complex_values)
    close(rl.linalg.inv(t(a)), np.linalg.inv(a))
    close(rl.linalg.det(t(a)), np.linalg.det(a))
    close(rl.linalg.matrix_power(t(a), 3), np.linalg.matrix_power(a, 3))
    close(rl.linalg.matrix_power(t(a), -2), np.linalg.matrix_power(np.linalg.inv(a), 2))
    for got, want in zip(rl.linalg.slogdet(t(a)), np.linalg.slogdet(a), strict=True):
        close(got, np.asarray(want))


@both
@pytest.mark.parametrize("shape", ((3, 3), (2, 4, 3), (2, 3, 4), (3, 0), (0, 3)))
def test_factors_multiply_to_the_matrix(shape, complex_values):
    a = matrices(*shape, complex_values=complex_values)
    u, s, vh = rl.linalg.svd(t(a), full_matrices=False)
    close((u * s.unsqueeze(-2).to(u.dtype)) @ vh, a)
    for mode in ("reduced", "complete"):
        q, r = rl.linalg.qr(t(a), mode)
        close(q @ r, a)
    p, low, up = rl.linalg.lu(t(a))
    close(p @ low @ up, a)
    close(rl.linalg.svdvals(t(a)), np.linalg.svd(a, compute_uv=False))


@both
def test_spectra(complex_values):
    a, h = matrices(2, 3, 3, complex_values=complex_values), hermitian(2, 3, 3, complex_values=complex_values)
    values, vectors = rl.linalg.eig(t(a))
    close(t(a).to(vectors.dtype) @ vectors, (vectors * values.unsqueeze(-2)).numpy())
    for triangle in "LU":
        values, vectors = rl.linalg.eigh(t(h), UPLO=triangle)
        close(vectors @ rl.diag_embed(values).to(vectors.dtype) @ vectors.mH, h)
        close(rl.linalg.eigvalsh(t(h), triangle), np.linalg.eigvalsh(h))


@both
def test_cholesky_and_ldl(complex_values):
    h, b = hermitian(2, 3, 3, complex_values=complex_values), matrices(2, 3, 2, complex_values=complex_values)
    low = rl.linalg.cholesky(t(h))
    close(low @ low.mH, h)
    up = rl.linalg.cholesky(t(h), upper=True)
    close(up.mH @ up, h)
    close(rl.cholesky_solve(t(b), low), np.linalg.solve(h, b))
    close(rl.cholesky_inverse(up, upper=True), np.linalg.inv(h))
    factors = rl.linalg.ldl_factor(t(h), hermitian=True)
    close(rl.linalg.ldl_solve(*factors, t(b), hermitian=True), np.linalg.solve(h, b))


@both
@pytest.mark.parametrize("left", (True, False))
@pytest.mark.parametrize("adjoint", (True, False))
def test_lu_solve(complex_values, left, adjoint):
    a, b = matrices(2, 3, 3, complex_values=complex_values), matrices(3, 3, complex_values=complex_values)
    factors = rl.linalg.lu_factor(t(a))
    x = rl.linalg.lu_solve(*factors, t(b), left=left, adjoint=adjoint).numpy(force=True)
    matrix = np.swapaxes(a, -1, -2).conj() if adjoint else a
    close(t(matrix @ x if left else x @ matrix), np.broadcast_to(b, x.shape))


@pytest.mark.parametrize("shape", ((3,), (3, 2), (2, 3), (2, 3, 1)))
def test_right_hand_sides_of_solve(shape):
    a, b = matrices(2, 3, 3), RANDOM.uniform(-1, 1, shape)
    right = b[..., None] if shape in ((3,), (2, 3)) else b
    want = np.linalg.solve(a, right)
    close(rl.linalg.solve(t(a), t(b)), want[..., 0] if shape in ((3,), (2, 3)) else want)


def test_triangular_systems():
    a, b = matrices(2, 3, 3), matrices(3, 3)
    for upper in (True, False):
        triangle = np.triu(a) if upper else np.tril(a)
        close(rl.linalg.solve_triangular(t(a), t(b), upper=upper), np.linalg.solve(triangle, b))
        close(rl.linalg.solve_triangular(t(a), t(b), upper=upper, left=False), b @ np.linalg.inv(triangle))
    unit = np.triu(a[0], 1) + np.eye(3)
    close(rl.triangular_solve(t(b), t(a[0]), transpose=True, unitriangular=True).solution, np.linalg.solve(unit.T, b))


@pytest.mark.parametrize("driver", (None, "gels", "gelsy", "gelsd", "gelss"))
def test_least_squares(driver):
    a, b = matrices(2, 5, 3), matrices(2, 5, 2)
    solution, residuals, rank, values = rl.linalg.lstsq(t(a), t(b), driver=driver)
    want = np.linalg.pinv(a) @ b
    close(solution, want)
    if driver not in (None, "gelsy"):
        close(residuals, (np.abs(a @ want - b) ** 2).sum(-2))
    assert rank.tolist() == ([] if driver == "gels" else [3, 3])
    assert values.shape == ((2, 3) if driver in ("gelsd", "gelss") else (0,))


@both
def test_pseudo_inverse_and_rank(complex_values):
    a = matrices(4, 3, complex_values=complex_values)
    a[:, 2] = a[:, 0] + a[:, 1]
    close(rl.linalg.pinv(t(a)), np.linalg.pinv(a, rcond=1e-14))
    assert rl.linalg.matrix_rank(t(a)).item() == 2
    assert rl.linalg.matrix_rank(t(a), tol=100.0).item() == 0
    h = hermitian(3, 3, complex_values=complex_values)
    close(rl.linalg.pinv(t(h), hermitian=True), np.linalg.inv(h))
    assert rl.linalg.matrix_rank(t(h), hermitian=True).item() == 3


@both
@pytest.mark.parametrize("order", (None, "fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf))
def test_norms_of_matrices(order, complex_values):
    a = matrices(3, 4, complex_values=complex_values)
    want = np.linalg.norm(a, order)
    close(rl.linalg.norm(t(a), order), np.asarray(want))
    close(rl.linalg.norm(t(a), order, dim=(0, 1), keepdim=True), want.reshape(1, 1))
    close(rl.linalg.cond(t(a[:, :3]), order), np.asarray(np.linalg.cond(a[:, :3], order)))


@both
@pytest.mark.parametrize("order", (0, 0.5, 1, 2, 3, math.inf, -math.inf))
def test_norms_of_vectors(order, complex_values):
    a = matrices(3, 4, complex_values=complex_values)
    close(rl.linalg.vector_norm(t(a), order, dim=1), np.linalg.norm(a, order, axis=1))
    close(rl.linalg.norm(t(a), order, dim=0, keepdim=True), np.linalg.norm(a, order, axis=0, keepdims=True))


def test_products():
    a, b = matrices(2, 3), matrices(3, 4)
    close(rl.linalg.multi_dot([t(a), t(b), t(b.T)]), a @ b @ b.T)
    close(rl.linalg.multi_dot([t(a[0]), t(b), t(b[0])]), np.asarray(a[0] @ b @ b[0]))
    close(rl.chain_matmul(t(a), t(b)), a @ b)
    close(rl.kron(t(a), t(b)), np.kron(a, b))
    close(rl.tensordot(t(a), t(b), 1), np.tensordot(a, b, 1))
    close(rl.tensordot(t(a), t(b), dims=([1], [0])), a @ b)
    close(rl.inner(t(a), t(b.T)), a @ b)
    close(rl.cross(t(a), t(a[::-1].copy())), np.cross(a, a[::-1]))
    close(rl.addr(rl.zeros(2, 3).double(), t(a[:, 0]), t(b[:, 0]), alpha=2), 2 * np.outer(a[:, 0], b[:, 0]))
    close(rl.addbmm(rl.ones(2, 4).double(), t(a[None]), t(b[None]), beta=3), 3 + a @ b)
    close(rl.trace(t(a)), np.asarray(np.trace(a)))
    close(rl.linalg.vander(t(a[0]), N=4), np.vander(a[0], 4, increasing=True))
    c = matrices(4, 4)
    close(rl.linalg.tensorinv(t(c.reshape(2, 2, 4))), np.linalg.inv(c).reshape(4, 2, 2))
    close(rl.linalg.tensorsolve(t(c.reshape(2, 2, 4)), t(a[:, :2])), np.linalg.solve(c, a[:, :2].ravel()))


def test_beta_zero_ignores_the_addend():
    nothing = rl.full((2, 2), math.nan)
    ones = rl.ones(2, 2)
    for result in (
        rl.addr(nothing, ones[0], ones[0], beta=0),
        rl.addbmm(nothing, ones[None], ones[None], beta=0),
        rl.baddbmm(nothing, ones[None], ones[None], beta=0),
        rl.addmv(nothing[0], ones, ones[0], beta=0),
    ):
        assert not result.isnan().any()


def test_functions_that_torch_has_removed_name_their_successors():
    for name in ("eig", "lstsq", "matrix_rank", "solve", "symeig"):
        with pytest.raises(RuntimeError, match=f"now removed. Please use .*torch.linalg.{name[:2].replace('sy', 'ei')}"):
            getattr(rl, name)(rl.eye(2))


def test_builders():
    assert rl.vander(rl.tensor([1, 2, 3])).tolist() == [[1, 1, 1], [4, 2, 1], [9, 3, 1]]
    assert rl.vander(rl.tensor([2.0]), N=0).shape == (1, 0)
    assert rl.block_diag(rl.ones(1, 2), rl.tensor(3)).tolist() == [[1, 1, 0], [0, 0, 3]]
    assert rl.cartesian_prod(rl.tensor([1, 2]), rl.tensor([3, 4])).tolist() == [[1, 3], [1, 4], [2, 3], [2, 4]]
    assert rl.combinations(rl.tensor([1, 2, 3])).tolist() == [[1, 2], [1, 3], [2, 3]]
    assert rl.combinations(rl.tensor([1, 2]), with_replacement=True).tolist() == [[1, 1], [1, 2], [2, 2]]


def test_covariance_and_correlation():
    x = matrices(3, 5)
    close(rl.cov(t(x)), np.cov(x))
    close(rl.corrcoef(t(x)), np.corrcoef(x))
    counts, weights = np.arange(1, 6), np.linspace(0.1, 0.9, 5)
    close(rl.cov(t(x), fweights=t(counts), aweights=t(weights)), np.cov(x, fweights=counts, aweights=weights))


@pytest.mark.parametrize("p", (0.0, 0.5, 1.0, 2.0, 3.0, math.inf))
@pytest.mark.parametrize("mode", ("use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"))
def test_distances(p, mode):
    a, b = matrices(2, 4, 3), matrices(5, 3)
    want = np.stack([[np.linalg.norm(row - b, p, axis=1) for row in batch] for batch in a])
    close(rl.cdist(t(a), t(b), p, mode), want)
    pairs = np.array([np.linalg.norm(b[i] - b[j], p) for i in range(5) for j in range(i + 1, 5)])
    close(rl.nn.functional.pdist(t(b), p), pairs)


def test_householder_products():
    a = matrices(2, 4, 3)
    q, r = rl.linalg.qr(t(a), "complete")
    close(rl.linalg.householder_product(*rl.geqrf(t(a))), q[..., :3].numpy())
    other = matrices(2, 4, 2)
    close(rl.ormqr(*rl.geqrf(t(a)), t(other)), q.numpy() @ other)
    close(rl.ormqr(*rl.geqrf(t(a)), t(other).mT, left=False, transpose=True), (q.numpy() @ other).swapaxes(-1, -2))


def test_low_rank_approximations():
    a = matrices(8, 2) @ matrices(2, 6)
    u, s, v = rl.svd_lowrank(t(a), q=3)
    close(u @ rl.diag(s) @ v.mT, a)
    u, s, v = rl.pca_lowrank(t(a), q=3)
    close(u @ rl.diag(s) @ v.mT, a - a.mean(0))
    with pytest.raises(ValueError, match="must be non-negative integer"):
        rl.pca_lowrank(t(a), q=9)


def test_matrix_exponential():
    a = matrices(2, 3, 3) / 10
    series = sum(np.linalg.matrix_power(a, k) / math.factorial(k) for k in range(25))
    close(rl.linalg.matrix_exp(t(a)), series)
    assert rl.linalg.matrix_exp(rl.full((2, 2), math.nan)).isnan().all()


def test_singular_matrices_raise_their_own_error():
    singular, good = rl.ones(2, 2), rl.eye(2)
    assert issubclass(LinAlgError, RuntimeError)
    with pytest.raises(LinAlgError, match="linalg.inv: The diagonal element 2 is zero"):
        rl.linalg.inv(singular)
    with pytest.raises(LinAlgError, match=r"linalg.inv: \(Batch element 1\)"):
        rl.inverse(rl.stack([good, singular]))
    with pytest.raises(LinAlgError, match="solver failed because the input matrix is singular"):
        rl.linalg.solve(singular, good)
    with pytest.raises(LinAlgError, match="leading minor of order 1 is not positive-definite"):
        rl.linalg.cholesky(-good)
    with pytest.raises(LinAlgError, match="contained non-finite values"):
        rl.linalg.svd(good * math.nan)


def test_status_instead_of_errors():
    inverse, info = rl.linalg.inv_ex(rl.stack([rl.eye(2) * 2, rl.ones(2, 2)]))
    assert info.tolist() == [0, 2] and inverse[0].tolist() == [[0.5, 0], [0, 0.5]]
    assert rl.linalg.cholesky_ex(-rl.eye(2)).info.item() == 1
    assert rl.linalg.lu_factor_ex(rl.zeros(2, 2)).info.item() == 1
    assert rl.linalg.cond(rl.ones(2, 2), 1).item() == math.inf


@pytest.mark.parametrize(
    ("call", "error", "message"),
    (
        (lambda: rl.linalg.inv(rl.ones(2, 3)), RuntimeError, "must be batches of square matrices, but they are 2 by 3"),
        (lambda: rl.linalg.inv(rl.ones(2)), RuntimeError, "must have at least 2 dimensions"),
        (lambda: rl.linalg.inv(rl.eye(2).half()), RuntimeError, "Low precision dtypes not supported. Got Half"),
        (lambda: rl.linalg.inv(rl.eye(2).long()), RuntimeError, "Expected a floating point or complex tensor"),
        (lambda: rl.linalg.det(rl.eye(2).half()), NotImplementedError, "\"lu_cpu\" not implemented for 'Half'"),
        (lambda: rl.linalg.solve(rl.eye(2), rl.ones(3)), RuntimeError, "Incompatible shapes of A and B"),
        (lambda: rl.linalg.solve(rl.eye(2), rl.ones(2).double()), RuntimeError, "A of type Float and B of type Double"),
        (lambda: rl.linalg.eigh(rl.eye(2), "X"), RuntimeError, "Expected UPLO argument to be 'L' or 'U'"),
        (lambda: rl.linalg.qr(rl.eye(2), "full"), RuntimeError, "unrecognized mode 'full'"),
        (lambda: rl.linalg.lu_factor(rl.eye(2), pivot=False), RuntimeError, "LU without pivoting is not implemented"),
        (lambda: rl.linalg.svd(rl.eye(2), driver="gesvd"), RuntimeError, "driver"),
        (lambda: rl.linalg.lstsq(rl.eye(2), rl.eye(2), driver="x"), RuntimeError, "should be one of"),
        (lambda: rl.linalg.eig(rl.eye(2) * math.nan), RuntimeError, "should not contain infs or NaNs"),
        (lambda: rl.linalg.matrix_norm(rl.eye(2), 3), RuntimeError, "Order 3 not supported"),
        (lambda: rl.linalg.norm(rl.ones(2, 2, 2), 2), RuntimeError, "the input must be 1D or 2D"),
        (lambda: rl.linalg.vector_norm(rl.ones(0), math.inf), RuntimeError, "does not have an identity"),
        (lambda: rl.linalg.multi_dot([rl.eye(2)]), RuntimeError, "expected at least 2 tensors"),
        (lambda: rl.cdist(rl.ones(2, 3), rl.ones(2, 4)), RuntimeError, "same number of columns"),
        (lambda: rl.cdist(rl.ones(2, 3), rl.ones(2, 3), compute_mode="x"), ValueError, "not a valid value"),
        (lambda: rl.lu_unpack(rl.eye(2), rl.tensor([1, 9], dtype=rl.int32)), RuntimeError, "must all be greater or equal to 1"),
        (lambda: rl.renorm(rl.ones(2), 2, 0, 1), RuntimeError, "needs at least 2 dimensions"),
    ),
)
def test_errors_say_what_was_given(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_results_are_named_and_out_is_taken():
    values = rl.linalg.eigh(rl.eye(2))
    assert values._fields == ("eigenvalues", "eigenvectors")
    assert rl.svd(rl.eye(2))._fields == ("U", "S", "V")
    target = rl.empty(0)
    assert rl.linalg.inv(rl.eye(2), out=target) is target and target.shape == (2, 2)

@pytest.mark.parametrize("value", [float("inf"), float("nan")])
@pytest.mark.parametrize("name", ["svd", "svdvals", "pinv", "matrix_rank", "cond"])
def test_what_needs_singular_values_refuses_matrices_that_are_not_finite(name, value):
    matrix = rl.tensor([[0.0, -1.9575, 0.0], [value, 1.0466, 1.6062], [1.2634, 0.4136, -1.1589]], dtype=rl.float64)
    with pytest.raises(LinAlgError, match="non-finite values"):
        getattr(rl.linalg, name)(matrix)
    with pytest.raises(LinAlgError, match="non-finite values"):
        rl.linalg.lstsq(matrix, rl.ones(3, 1, dtype=rl.float64))
