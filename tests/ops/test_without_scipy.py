"""Special functions and linear algebra of our own, beside SciPy's; and that programs run where SciPy is not installed."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pytest
import scipy.linalg
import scipy.special

import rushlight as rl
from rushlight.ops.cpu import linalg_plain

RANDOM = np.random.default_rng(0)
WIDE = np.concatenate([RANDOM.normal(size=400) * scale for scale in (1e-3, 0.3, 1, 5, 30, 300)])
SHORT = WIDE[np.abs(WIDE) < 700]  # SciPy's overflow early
POSITIVE = np.abs(WIDE) + 1e-12
UNIT = np.concatenate([RANDOM.uniform(-1, 1, 1000), 1 - 10 ** RANDOM.uniform(-15, 0, 500), [1, -1, 2, 0]])
SHARES = np.concatenate([RANDOM.uniform(0, 1, 1000), 10 ** RANDOM.uniform(-300, 0, 500), [0, 1, 1e-310, -1, 2]])
ROWS = {
    "erfc": (WIDE[np.abs(WIDE) < 26], scipy.special.erfc), "erfinv": (UNIT, scipy.special.erfinv),
    "lgamma": (WIDE, scipy.special.gammaln), "digamma": (POSITIVE, scipy.special.psi),
    "special.i0": (SHORT, scipy.special.i0), "special.i0e": (WIDE, scipy.special.i0e), "special.i1": (SHORT, scipy.special.i1),
    "special.i1e": (WIDE, scipy.special.i1e), "special.ndtri": (SHARES, scipy.special.ndtri),
    "special.log_ndtr": (WIDE[WIDE < 37], scipy.special.log_ndtr), "special.erfcx": (WIDE, scipy.special.erfcx),
    "special.entr": (WIDE, scipy.special.entr),
}  # fmt: skip


def function(name):
    found = rl
    for part in name.split("."):
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("name", ROWS)
def test_functions_of_one_number(name):
    x, expected = ROWS[name]
    found = function(name)(rl.from_numpy(x)).numpy()
    np.testing.assert_allclose(found, expected(x), rtol=1e-11, atol=1e-300)
    single = function(name)(rl.from_numpy(x.astype(np.float32)))
    assert single.dtype is rl.float32
    with np.errstate(all="ignore"):
        rounded = expected(x.astype(np.float32).astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(single.numpy(), rounded, rtol=1e-6, atol=1e-38)


def test_next_to_the_zero_of_digamma():
    """The reference values are of a program for many digits."""
    x = [1.4616321449683622, 1.4616321449683624, 1.4616, 1.47]
    expected = [-9.241265521729427e-17, 1.2245374622004068e-16, -3.110625123034165e-05, 0.008066489011364869]
    np.testing.assert_allclose(rl.digamma(rl.tensor(x, dtype=rl.float64)).numpy(), expected, rtol=1e-8)


def test_functions_of_two_numbers():
    a = 10 ** RANDOM.uniform(-3, 4, 3000)
    for x in (a * 10 ** RANDOM.uniform(-1, 1, 3000), np.abs(a + np.sqrt(a) * RANDOM.normal(size=3000) * 3)):
        ours = rl.igamma(rl.from_numpy(a), rl.from_numpy(x)), rl.igammac(rl.from_numpy(a), rl.from_numpy(x))
        np.testing.assert_allclose(ours[0].numpy(), scipy.special.gammainc(a, x), rtol=1e-9, atol=1e-200)
        np.testing.assert_allclose(ours[1].numpy(), scipy.special.gammaincc(a, x), rtol=1e-9, atol=1e-200)
    s, q = 10 ** RANDOM.uniform(0.01, 1.5, 3000), 10 ** RANDOM.uniform(-2, 4, 3000)
    np.testing.assert_allclose(
        rl.special.zeta(rl.from_numpy(s), rl.from_numpy(q)).numpy(), scipy.special.zeta(s, q), rtol=1e-12
    )
    ends = {
        (0, 0): np.nan, (0, 1): 1, (1, 0): 0, (np.inf, 1): 0, (1, np.inf): 1, (np.inf, np.inf): np.nan, (-1, 1): np.nan,
        (1, -1): np.nan, (np.nan, 1): np.nan,
    }  # fmt: skip
    for (a, x), expected in ends.items():
        found = rl.igamma(rl.tensor(float(a)), rl.tensor(float(x))).item()
        assert found == expected or (np.isnan(found) and np.isnan(expected)), (a, x)
    for n in (1, 2, 5):
        x = np.abs(WIDE) + 0.1
        found = rl.polygamma(n, rl.from_numpy(x)).numpy()
        np.testing.assert_allclose(found, scipy.special.polygamma(n, x), rtol=1e-12)


def test_layouts_and_results_given():
    x = rl.from_numpy(WIDE).view(40, -1).t()
    np.testing.assert_allclose(rl.erfc(x).numpy(), scipy.special.erfc(x.numpy()), rtol=1e-11, atol=1e-300)
    out = rl.empty(x.shape[0] * 2, x.shape[1], dtype=rl.float64)[::2]
    rl.special.i0e(x, out=out)
    np.testing.assert_allclose(out.numpy(), scipy.special.i0e(x.numpy()), rtol=1e-12)
    assert rl.erfinv(rl.empty(0)).shape == (0,) and rl.igamma(rl.tensor([1.0, 2.0]), rl.tensor(1.0)).shape == (2,)


def random_matrix(kind, *sizes):
    return (RANDOM.normal(size=sizes) + (1j * RANDOM.normal(size=sizes) if kind in "FD" else 0)).astype(kind)


@pytest.mark.parametrize("sizes", [(1, 1), (3, 3), (130, 130), (150, 70), (70, 150)])
@pytest.mark.parametrize("kind", "fdFD")
def test_factorizations_and_least_squares(kind, sizes):
    bounds = dict(rtol=5e-3, atol=5e-3) if kind in "fF" else dict(rtol=1e-8, atol=1e-9)
    a = random_matrix(kind, *sizes)
    factors = a.copy()[None]
    pivots, info = linalg_plain.lu_factor(factors)
    packed, positions, _ = scipy.linalg.lapack.get_lapack_funcs(("getrf",), (a,))[0](a)
    assert (pivots[0] == positions).all() and info[0] == 0
    np.testing.assert_allclose(factors[0], packed, **bounds)
    vectors, scales = linalg_plain.householder(a)
    if sizes[0] >= sizes[1]:
        q = linalg_plain.orthogonal(vectors, scales)
        np.testing.assert_allclose(q @ np.triu(vectors[: sizes[1]]), a, **bounds)
    b = random_matrix(kind, sizes[0], 3)
    expected = np.linalg.lstsq(a, b, rcond=None)[0]
    np.testing.assert_allclose(linalg_plain.solve_full_rank(a, b)[0], expected, **bounds)
    np.testing.assert_allclose(linalg_plain.least_squares(a, b, -1.0)[0], expected, **bounds)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_triangular_systems(upper, unit):
    for n in (1, 5, 150):
        a, b = random_matrix("d", 2, n, n) / n + np.eye(n), random_matrix("d", 2, n, 4)
        found = b.copy()
        linalg_plain.divide(a, found, upper=upper, unit=unit)
        for one, right, solution in zip(a, b, found, strict=True):
            expected = scipy.linalg.solve_triangular(one, right, lower=not upper, unit_diagonal=unit)
            np.testing.assert_allclose(solution, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("scale", [0.0, 1e-3, 1.0, 30.0])
def test_matrix_exponential(scale):
    a = random_matrix("D", 3, 6, 6) * scale
    np.testing.assert_allclose(linalg_plain.exponential(a), scipy.linalg.expm(a), rtol=1e-10, atol=1e-10)


PROGRAM = """
    import sys

    class Without:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] == "scipy":
                raise ModuleNotFoundError(f"No module named {name!r}", name="scipy")

    sys.meta_path.insert(0, Without())
    import rushlight as torch
    torch.manual_seed(0)
    x = torch.rand(4, 4, dtype=torch.float64) + torch.eye(4, dtype=torch.float64)
    torch.fft.irfft(torch.fft.rfft(x)), torch.fft.fft2(x), torch.stft(torch.rand(400), 64, return_complex=True)
    torch.linalg.lu(x), torch.linalg.lstsq(x, x), torch.matrix_exp(x), torch.linalg.eig(x), torch.cholesky_solve(x, x)
    torch.linalg.qr(x), torch.linalg.svd(x), torch.geqrf(x), torch.linalg.inv(x), torch.triangular_solve
    torch.erfinv(x / 3), torch.lgamma(x), torch.special.ndtri(x / 3), torch.igamma(x.abs(), x.abs()), torch.polygamma(2, x)
    torch.distributions.Gamma(torch.ones(2, requires_grad=True), 1.0).rsample().sum().backward()
    torch.distributions.VonMises(0.0, 1.0).log_prob(torch.zeros(1)), torch.distributions.Beta(1.0, 2.0).sample()
    torch.nn.init.trunc_normal_(torch.empty(3, 3))
    assert not any(name.startswith("scipy") for name in sys.modules)
    try:
        torch.special.airy_ai(x)
    except ImportError as error:
        print(error)
"""


def test_programs_where_scipy_is_not_installed():
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(PROGRAM)], capture_output=True, text=True)
    assert done.stdout == "this function needs scipy: pip install rushlight[scipy]\n", done.stderr
