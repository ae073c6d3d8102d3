"""Families against scipy.stats, draws by the Kolmogorov-Smirnov distance and by moments, gradients of draws by differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

import rushlight
from rushlight import distributions
from tests.distributions.cases import CASES, make

CONTINUOUS = {
    "Normal": (lambda d: d.Normal(0.5, 2.0), stats.norm(0.5, 2.0)),
    "Laplace": (lambda d: d.Laplace(0.5, 2.0), stats.laplace(0.5, 2.0)),
    "Cauchy": (lambda d: d.Cauchy(0.5, 2.0), stats.cauchy(0.5, 2.0)),
    "Uniform": (lambda d: d.Uniform(-1.0, 2.0), stats.uniform(-1.0, 3.0)),
    "Exponential": (lambda d: d.Exponential(2.0), stats.expon(scale=0.5)),
    "Gamma": (lambda d: d.Gamma(1.5, 2.0), stats.gamma(1.5, scale=0.5)),
    "Chi2": (lambda d: d.Chi2(3.0), stats.chi2(3)),
    "InverseGamma": (lambda d: d.InverseGamma(3.5, 2.0), stats.invgamma(3.5, scale=2.0)),
    "Beta": (lambda d: d.Beta(1.5, 0.7), stats.beta(1.5, 0.7)),
    "StudentT": (lambda d: d.StudentT(5.0, 0.5, 2.0), stats.t(5, 0.5, 2.0)),
    "FisherSnedecor": (lambda d: d.FisherSnedecor(4.0, 9.0), stats.f(4, 9)),
    "Gumbel": (lambda d: d.Gumbel(0.5, 2.0), stats.gumbel_r(0.5, 2.0)),
    "Weibull": (lambda d: d.Weibull(2.0, 1.5), stats.weibull_min(1.5, scale=2.0)),
    "Pareto": (lambda d: d.Pareto(2.0, 3.5), stats.pareto(3.5, scale=2.0)),
    "GeneralizedPareto": (lambda d: d.GeneralizedPareto(0.5, 2.0, 0.2), stats.genpareto(0.2, 0.5, 2.0)),
    "LogNormal": (lambda d: d.LogNormal(0.5, 0.7), stats.lognorm(0.7, scale=np.exp(0.5))),
    "HalfNormal": (lambda d: d.HalfNormal(2.0), stats.halfnorm(scale=2.0)),
    "HalfCauchy": (lambda d: d.HalfCauchy(2.0), stats.halfcauchy(scale=2.0)),
    "VonMises": (lambda d: d.VonMises(0.5, 2.0), stats.vonmises(2.0, 0.5)),
}
DISCRETE = {
    "Bernoulli": (lambda d: d.Bernoulli(0.3), stats.bernoulli(0.3)),
    "Geometric": (lambda d: d.Geometric(0.3), stats.geom(0.3, loc=-1)),
    "Binomial": (lambda d: d.Binomial(7, rushlight.tensor(0.3)), stats.binom(7, 0.3)),
    "Poisson": (lambda d: d.Poisson(12.5), stats.poisson(12.5)),
    "NegativeBinomial": (lambda d: d.NegativeBinomial(4.0, rushlight.tensor(0.3)), stats.nbinom(4, 0.7)),
}


@pytest.fixture(autouse=True)
def in_float64():
    rushlight.set_default_dtype(rushlight.float64)
    rushlight.manual_seed(1)
    yield
    rushlight.set_default_dtype(rushlight.float32)


def known(call):
    try:
        return call()
    except NotImplementedError:
        return None


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name):
    build, reference = CONTINUOUS[name]
    ours = build(distributions)
    levels = np.array([0.05, 0.3, 0.6, 0.95])
    values = reference.ppf(levels)
    np.testing.assert_allclose(ours.log_prob(rushlight.tensor(values)).numpy(), reference.logpdf(values), rtol=1e-8)
    cdf, icdf = known(lambda: ours.cdf(rushlight.tensor(values))), known(lambda: ours.icdf(rushlight.tensor(levels)))
    assert cdf is None or np.allclose(cdf.numpy(), levels, rtol=1e-8)
    assert icdf is None or np.allclose(icdf.numpy(), values, rtol=1e-8)
    drawn = ours.sample((4000,)).numpy()
    assert stats.kstest(drawn, reference.cdf).statistic < 0.035


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete(name):
    build, reference = DISCRETE[name]
    ours, values = build(distributions), np.arange(2.0 if name == "Bernoulli" else 8.0)
    np.testing.assert_allclose(ours.log_prob(rushlight.tensor(values)).numpy(), reference.logpmf(values), rtol=1e-6)
    drawn = ours.sample((4000,)).numpy()
    assert abs(drawn.mean() - reference.mean()) < 0.1 * reference.std()
    assert abs(drawn.var() / reference.var() - 1) < 0.12


@pytest.mark.parametrize("name", {**CONTINUOUS, **DISCRETE})
def test_moments(name):
    build, reference = {**CONTINUOUS, **DISCRETE}[name]
    ours = build(distributions)
    pairs = [(known(lambda: ours.entropy()), reference.entropy())]
    if "Cauchy" not in name and name != "VonMises":
        pairs += [(ours.mean, reference.mean()), (ours.variance, reference.var())]
    for mine, expected in pairs:
        assert mine is None or np.isclose(float(mine), expected, rtol=1e-6)


def test_vector_families():
    rng = np.random.default_rng(0)
    covariance, point = np.array([[2.0, 0.5], [0.5, 1.0]]), rng.normal(size=2)
    normal = distributions.MultivariateNormal(rushlight.zeros(2), rushlight.tensor(covariance))
    reference = stats.multivariate_normal(np.zeros(2), covariance)
    assert np.isclose(float(normal.log_prob(rushlight.tensor(point))), reference.logpdf(point))
    assert np.isclose(float(normal.entropy()), reference.entropy())
    shapes, shares = np.array([0.5, 2.0, 3.0]), np.array([0.2, 0.3, 0.5])
    dirichlet = distributions.Dirichlet(rushlight.tensor(shapes))
    assert np.isclose(float(dirichlet.log_prob(rushlight.tensor(shares))), stats.dirichlet(shapes).logpdf(shares))
    assert np.isclose(float(dirichlet.entropy()), stats.dirichlet(shapes).entropy())
    counts = distributions.Multinomial(6, rushlight.tensor(shares))
    expected = stats.multinomial(6, shares)
    assert np.isclose(float(counts.log_prob(rushlight.tensor([1.0, 2.0, 3.0]))), expected.logpmf([1, 2, 3]))
    assert np.isclose(float(counts.entropy()), expected.entropy())
    wishart = distributions.Wishart(rushlight.tensor(4.0), rushlight.tensor(covariance))
    expected = stats.wishart(4, covariance)
    assert np.isclose(float(wishart.log_prob(rushlight.tensor(covariance))), expected.logpdf(covariance))
    np.testing.assert_allclose(wishart.sample((3000,)).mean(0).numpy(), expected.mean(), rtol=0.1, atol=0.1)


@pytest.mark.parametrize("name", CASES)
def test_draws_lie_in_the_support_and_have_the_mean(name):
    distribution = make(name, rushlight)
    drawn = distribution.sample((1500,))
    support = distribution.support
    if name != "MixtureSameFamily":
        assert support.check(drawn).all()
    mean = known(lambda: distribution.mean)
    if mean is None or not rushlight.isfinite(mean).all() or name == "VonMises":
        return
    spread = distribution.stddev
    if rushlight.isfinite(spread).all():
        assert ((drawn.mean(0) - mean).abs() <= 0.2 * spread + 1e-9).all()


@pytest.mark.parametrize("alpha", [1e-3, 0.1, 0.7, 3.0, 50.0, 1e4])
def test_gamma_draws_move_with_the_shape(alpha):
    levels = np.array([0.05, 0.4, 0.8])
    step = alpha * 1e-5
    moved = special.gammaincinv([[alpha - step], [alpha + step]], levels)
    drawn = special.gammaincinv(alpha, levels)
    keep = drawn > 1e-200
    slope = rushlight._standard_gamma_grad(rushlight.tensor(alpha), rushlight.tensor(drawn[keep])).numpy()
    np.testing.assert_allclose(slope, ((moved[1] - moved[0]) / (2 * step))[keep], rtol=1e-5)


@pytest.mark.parametrize("first, second", [(0.3, 0.4), (2.0, 0.5), (0.5, 6.0), (30.0, 40.0), (1e3, 2.0)])
def test_beta_draws_move_with_the_parameter(first, second):
    levels = np.array([0.1, 0.4, 0.8])
    step = first * 1e-5
    moved = special.betaincinv([[first - step], [first + step]], second, levels)
    x = special.betaincinv(first, second, levels)
    slope = rushlight._dirichlet_grad(rushlight.tensor(x), rushlight.tensor(first), rushlight.tensor(first + second)).numpy()
    np.testing.assert_allclose(slope * (1 - x), (moved[1] - moved[0]) / (2 * step), rtol=1e-4)


def test_divergences_are_means_of_log_ratios():
    pairs = [
        ("Normal", "Laplace"),
        ("Gamma", "Exponential"),
        ("Beta", "ContinuousBernoulli"),
        ("Uniform", "Normal"),
        ("Wishart", "Wishart"),
    ]
    for first, second in pairs:
        p, q = make(first, rushlight), make(second, rushlight)
        if first == "Wishart":
            q = distributions.Wishart(rushlight.tensor([4.0, 4.5]), rushlight.eye(2))
        drawn = p.sample((20000,))
        estimate = (p.log_prob(drawn) - q.log_prob(drawn)).mean(0)
        np.testing.assert_allclose(distributions.kl_divergence(p, q).detach().numpy(), estimate.numpy(), rtol=0.1, atol=0.03)
