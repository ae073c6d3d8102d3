"""Special functions and arithmetic on the parts of numbers, against SciPy, NumPy and known values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

import rushlight as rl

POINTS = np.array([-2.5, -0.5, 0.25, 1.0, 3.75])
OF_ONE = {
    "airy_ai": lambda x: special.airy(x)[0], "bessel_j0": special.j0, "bessel_j1": special.j1, "bessel_y0": special.y0,
    "bessel_y1": special.y1, "digamma": special.psi, "entr": special.entr, "erf": special.erf, "erfc": special.erfc,
    "erfcx": special.erfcx, "erfinv": special.erfinv, "exp2": np.exp2, "expit": special.expit, "expm1": np.expm1,
    "gammaln": special.gammaln, "i0": special.i0, "i0e": special.i0e, "i1": special.i1, "i1e": special.i1e, "log1p": np.log1p,
    "log_ndtr": special.log_ndtr, "logit": special.logit, "modified_bessel_i0": special.i0, "modified_bessel_i1": special.i1,
    "modified_bessel_k0": special.k0, "modified_bessel_k1": special.k1, "ndtr": special.ndtr, "ndtri": special.ndtri,
    "psi": special.psi, "scaled_modified_bessel_k0": special.k0e, "scaled_modified_bessel_k1": special.k1e, "sinc": np.sinc,
    "spherical_bessel_j0": lambda x: special.spherical_jn(0, x),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OF_ONE)
def test_functions_of_one_number(name: str):
    function = getattr(rl.special, name)
    for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 2e-6)):
        got = function(rl.from_numpy(POINTS.astype(dtype)))
        assert got.numpy().dtype == dtype
        np.testing.assert_allclose(got.numpy(), OF_ONE[name](POINTS), rtol=tolerance, atol=tolerance)
    assert function(rl.tensor([1, 2])).dtype is rl.float32


OF_TWO = {
    "gammainc": special.gammainc, "gammaincc": special.gammaincc, "xlog1py": special.xlog1py, "xlogy": special.xlogy,
    "zeta": special.zeta,
}  # fmt: skip


@pytest.mark.parametrize("name", OF_TWO)
def test_functions_of_two_numbers(name: str):
    first, second = np.array([1.5, 2.0, 3.0]), np.array([[0.5], [2.5]])
    function = getattr(rl.special, name)
    got = function(rl.from_numpy(first), rl.from_numpy(second))
    np.testing.assert_allclose(got.numpy(), OF_TWO[name](first, second), rtol=1e-12)
    if not name.startswith("gamma"):
        np.testing.assert_allclose(function(rl.from_numpy(first), 2).numpy(), OF_TWO[name](first, 2), rtol=1e-12)
        np.testing.assert_allclose(function(2, rl.from_numpy(first)).numpy(), OF_TWO[name](2, first), rtol=1e-12)


def _chebyshev(kind: str, n: int, x: np.ndarray) -> np.ndarray:
    angle = np.arccos(x)
    return {
        "t": np.cos(n * angle),
        "u": np.sin((n + 1) * angle) / np.sin(angle),
        "v": np.cos((n + 0.5) * angle) / np.cos(angle / 2),
        "w": np.sin((n + 0.5) * angle) / np.sin(angle / 2),
    }[kind]


@pytest.mark.parametrize("kind", "tuvw")
def test_chebyshev_polynomials(kind: str):
    x = np.array([-0.7, 0.1, 0.6])
    for n in (0, 1, 2, 5, 9):
        got = getattr(rl.special, f"chebyshev_polynomial_{kind}")(rl.from_numpy(x), n)
        np.testing.assert_allclose(got.numpy(), _chebyshev(kind, n, x), rtol=1e-10, atol=1e-12)
        shifted = getattr(rl.special, f"shifted_chebyshev_polynomial_{kind}")(rl.from_numpy((x + 1) / 2), n)
        np.testing.assert_allclose(shifted.numpy(), _chebyshev(kind, n, x), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("hermite_polynomial_h", special.eval_hermite), ("hermite_polynomial_he", special.eval_hermitenorm),
        ("laguerre_polynomial_l", special.eval_laguerre), ("legendre_polynomial_p", special.eval_legendre),
    ],
)  # fmt: skip
def test_orthogonal_polynomials(name, reference):
    degrees = np.arange(6)
    got = getattr(rl.special, name)(rl.from_numpy(POINTS[:, None].copy()), rl.from_numpy(degrees))
    np.testing.assert_allclose(got.numpy(), reference(degrees, POINTS[:, None]), rtol=1e-12)
    assert getattr(rl.special, name)(rl.ones(1), -1).tolist() == [0.0]
    assert getattr(rl.special, name)(0.5, rl.tensor([0])).tolist() == [1.0]


def test_gamma_family():
    x = rl.from_numpy(np.array([2.5, 3.0]))
    for n in (0, 1, 2, 3):
        np.testing.assert_allclose(x.polygamma(n).numpy(), special.polygamma(n, x.numpy()), rtol=1e-12)
    wanted = [special.multigammaln(value, 2) for value in (2.5, 3.0)]
    np.testing.assert_allclose(rl.mvlgamma(x, 2).numpy(), wanted, rtol=1e-12)
    with pytest.raises(RuntimeError, match="does not support negative n"):
        rl.polygamma(-1, x)
    with pytest.raises(RuntimeError, match="p has to be greater than or equal to 1"):
        rl.mvlgamma(x, 0)


def test_limits():
    inf, nan = math.inf, math.nan
    assert rl.lgamma(rl.tensor([inf, -inf, 0.0, -1.0])).tolist() == [inf] * 4
    assert rl.digamma(rl.tensor([0.0, -0.0])).tolist() == [-inf, inf]
    assert rl.erfinv(rl.tensor([1.0, -1.0])).tolist() == [inf, -inf]
    assert rl.special.spherical_bessel_j0(rl.tensor([0.0, inf])).tolist() == [1.0, 0.0]
    assert rl.xlogy(rl.zeros(3), rl.tensor([0.0, inf, nan])).nan_to_num(5).tolist() == [0.0, 0.0, 5.0]


def test_functions_without_a_derivative_say_so():
    x = rl.ones(2, requires_grad=True)
    assert not rl.special.bessel_j0(x).requires_grad and not rl.special.hermite_polynomial_h(x, 3).requires_grad
    with pytest.raises(RuntimeError, match="the derivative for 'self' is not implemented"):
        rl.igamma(x, x.detach()).sum().backward()


def test_parts_of_numbers():
    mantissa, exponent = rl.frexp(rl.tensor([3.0, -0.25]))
    assert mantissa.tolist() == [0.75, -0.5] and exponent.tolist() == [2, -1] and exponent.dtype is rl.int32
    assert rl.ldexp(mantissa, exponent).tolist() == [3.0, -0.25]
    assert rl.copysign(rl.tensor([1, -2]), -0.0).tolist() == [-1.0, -2.0]
    assert rl.signbit(rl.tensor([-0.0, 0.0, -1.0])).tolist() == [True, False, True]
    assert rl.nextafter(rl.tensor(1.0), rl.tensor(2.0)).item() == np.nextafter(np.float32(1), np.float32(2))
    assert rl.nextafter(rl.tensor(1.0).bfloat16(), rl.tensor(2.0).bfloat16()).item() == 1.0078125
    assert rl.heaviside(rl.tensor([-1.0, 0.0, 2.0]), rl.tensor(0.5)).tolist() == [0.0, 0.5, 1.0]
    with pytest.raises(RuntimeError, match="only supports floating-point dtypes"):
        rl.frexp(rl.tensor([1]))


def test_minima_skip_nan():
    first, second = rl.tensor([math.nan, 1.0, 2.0], requires_grad=True), rl.tensor([3.0, math.nan, 2.0], requires_grad=True)
    assert rl.fmax(first, second).tolist() == rl.fmin(first, second).tolist() == [3.0, 1.0, 2.0]
    rl.fmax(first, second).sum().backward()
    assert first.grad.tolist() == [0.0, 1.0, 1.0] and second.grad.tolist() == [1.0, 0.0, 0.0]


def test_integers():
    assert rl.gcd(rl.tensor([12, -18, 0]), rl.tensor([18, 12, 0])).tolist() == [6, 6, 0]
    assert rl.lcm(rl.tensor([4, 0]), rl.tensor([6, 3])).tolist() == [12, 0]
    x = rl.tensor([1, -8])
    assert (x << 2).tolist() == [4, -32] and (x >> 1).tolist() == [0, -4] and (1 << rl.tensor([3])).tolist() == [8]
    assert (x << 64).tolist() == [0, 0] and (x >> 64).tolist() == [0, -1]
    assert (rl.tensor([200], dtype=rl.uint8) >> 9).tolist() == [0]
    with pytest.raises(NotImplementedError, match="not implemented for 'Float'"):
        rl.gcd(rl.ones(1), rl.ones(1))


def test_aliases():
    x = rl.tensor([0.5, -0.25])
    for alias, name in (("arcsin", "asin"), ("arctan", "atan"), ("absolute", "abs"), ("negative", "neg"), ("fix", "trunc")):
        assert getattr(rl, alias)(x).tolist() == getattr(x, name)().tolist()
        assert getattr(x.clone(), alias + "_")().tolist() == getattr(x, name)().tolist()
    assert rl.greater(x, 0).tolist() == [True, False] and rl.not_equal(x, x).tolist() == [False, False]
    assert rl.arctan2(x, x).tolist() == rl.atan2(x, x).tolist()
    assert rl.float_power(rl.tensor([2]), 0.5).dtype is rl.float64
    assert rl.rad2deg(rl.tensor(math.pi)).item() == pytest.approx(180)
    assert x.__rdiv__(1).tolist() == [2.0, -4.0]


@pytest.mark.parametrize("name", ["t", "u", "v", "w"])
def test_chebyshev_polynomials_of_any_degree(name: str):
    of_angle = {
        "t": lambda n, a: np.cos(n * a), "u": lambda n, a: np.sin((n + 1) * a) / np.sin(a),
        "v": lambda n, a: np.cos((n + 0.5) * a) / np.cos(a / 2), "w": lambda n, a: np.sin((n + 0.5) * a) / np.sin(a / 2),
    }[name]  # fmt: skip
    angles = np.array([0.3, 1.2, 2.9])
    for degree in (3, 999, 1001, 1_000_000):
        found = getattr(rl.special, f"chebyshev_polynomial_{name}")(rl.tensor(np.cos(angles)), rl.tensor(degree))
        np.testing.assert_allclose(found.numpy(), of_angle(degree, angles), rtol=1e-6, atol=1e-8)
    ends = getattr(rl.special, f"chebyshev_polynomial_{name}")(rl.tensor([1.0, -1.0], dtype=rl.float64), rl.tensor(10**12))
    assert ends.tolist() == {"t": [1, 1], "u": [1e12 + 1] * 2, "v": [1, 2e12 + 1], "w": [2e12 + 1, 1]}[name]


def test_logit_at_its_limits():
    def at_limits(x, eps=None):
        result = rl.logit(x, eps)
        return result.tolist(), rl.autograd.grad(result.sum(), x)[0].tolist()

    x = rl.tensor([0.0, 1.0, 0.5, -1.0, 2.0], requires_grad=True)
    for function in (at_limits, rl.compile(at_limits)):
        values, gradients = function(x)
        assert values[:3] == [-math.inf, math.inf, 0] and all(map(math.isnan, values[3:]))
        assert gradients[:3] == [math.inf, math.inf, 4] and all(map(math.isnan, gradients[3:]))
        assert function(x, 0.0) == ([-math.inf, math.inf, 0, -math.inf, math.inf], [math.inf, math.inf, 4, 0, 0])
    assert rl.logit(x.detach().bfloat16()).dtype is rl.bfloat16
