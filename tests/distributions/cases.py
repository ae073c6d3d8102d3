"""Families with parameters, made for any library with torch's interface: `make(name, library)` gives the distribution."""

from __future__ import annotations

MATRIX = [[2.0, 0.5], [0.5, 1.0]]

CASES = {
    "Bernoulli": lambda d, t: d.Bernoulli(t([0.2, 0.7])),
    "Bernoulli_logits": lambda d, t: d.Bernoulli(logits=t([0.2, -0.7])),
    "Beta": lambda d, t: d.Beta(t([0.5, 2.0]), t([1.5, 3.0])),
    "Binomial": lambda d, t: d.Binomial(5, t([0.2, 0.7])),
    "Categorical": lambda d, t: d.Categorical(t([[0.2, 0.3, 0.5], [0.6, 0.1, 0.3]])),
    "Cauchy": lambda d, t: d.Cauchy(t([0.5, -1.0]), t([1.0, 2.0])),
    "Chi2": lambda d, t: d.Chi2(t([1.5, 4.0])),
    "ContinuousBernoulli": lambda d, t: d.ContinuousBernoulli(t([0.2, 0.5])),
    "Dirichlet": lambda d, t: d.Dirichlet(t([[0.5, 1.5, 2.0], [3.0, 0.7, 1.0]])),
    "Exponential": lambda d, t: d.Exponential(t([0.5, 2.0])),
    "FisherSnedecor": lambda d, t: d.FisherSnedecor(t([3.0, 5.0]), t([6.0, 7.0])),
    "Gamma": lambda d, t: d.Gamma(t([0.5, 2.0]), t([1.5, 3.0])),
    "GeneralizedPareto": lambda d, t: d.GeneralizedPareto(t([0.5, 1.0]), t([1.5, 3.0]), t([0.2, 0.1])),
    "Geometric": lambda d, t: d.Geometric(t([0.2, 0.7])),
    "Gumbel": lambda d, t: d.Gumbel(t([0.5, -1.0]), t([1.0, 2.0])),
    "HalfCauchy": lambda d, t: d.HalfCauchy(t([1.0, 2.0])),
    "HalfNormal": lambda d, t: d.HalfNormal(t([1.0, 2.0])),
    "Independent": lambda d, t: d.Independent(d.Normal(t([[0.5, -1.0]]), t([[1.0, 2.0]])), 1),
    "InverseGamma": lambda d, t: d.InverseGamma(t([2.5, 4.0]), t([1.5, 3.0])),
    "Kumaraswamy": lambda d, t: d.Kumaraswamy(t([1.5, 2.0]), t([1.5, 3.0])),
    "LKJCholesky": lambda d, t: d.LKJCholesky(3, t([0.5, 2.0])),
    "Laplace": lambda d, t: d.Laplace(t([0.5, -1.0]), t([1.0, 2.0])),
    "LogNormal": lambda d, t: d.LogNormal(t([0.5, -1.0]), t([1.0, 0.5])),
    "LogisticNormal": lambda d, t: d.LogisticNormal(t([0.5, -1.0]), t([1.0, 0.5])),
    "LowRankMultivariateNormal": lambda d, t: d.LowRankMultivariateNormal(t([0.5, -1.0]), t([[1.0], [0.5]]), t([1.0, 2.0])),
    "MixtureSameFamily": lambda d, t: d.MixtureSameFamily(d.Categorical(t([0.3, 0.7])), d.Normal(t([0.5, -1.0]), t([1.0, 2.0]))),
    "Multinomial": lambda d, t: d.Multinomial(6, t([[0.2, 0.3, 0.5], [0.6, 0.1, 0.3]])),
    "MultivariateNormal": lambda d, t: d.MultivariateNormal(t([0.5, -1.0]), t(MATRIX)),
    "MultivariateNormal_precision": lambda d, t: d.MultivariateNormal(t([0.5, -1.0]), precision_matrix=t(MATRIX)),
    "NegativeBinomial": lambda d, t: d.NegativeBinomial(t([3.0, 5.5]), t([0.2, 0.7])),
    "Normal": lambda d, t: d.Normal(t([0.5, -1.0]), t([1.0, 2.0])),
    "OneHotCategorical": lambda d, t: d.OneHotCategorical(t([[0.2, 0.3, 0.5], [0.6, 0.1, 0.3]])),
    "OneHotCategoricalStraightThrough": lambda d, t: d.OneHotCategoricalStraightThrough(logits=t([[0.2, 0.3, 0.5]])),
    "Pareto": lambda d, t: d.Pareto(t([0.5, 2.0]), t([2.5, 3.0])),
    "Poisson": lambda d, t: d.Poisson(t([0.5, 20.0])),
    "RelaxedBernoulli": lambda d, t: d.RelaxedBernoulli(t(0.7), t([0.2, 0.7])),
    "RelaxedOneHotCategorical": lambda d, t: d.RelaxedOneHotCategorical(t(0.7), t([[0.2, 0.3, 0.5]])),
    "StudentT": lambda d, t: d.StudentT(t([2.5, 5.0]), t([0.5, -1.0]), t([1.0, 2.0])),
    "TransformedDistribution": lambda d, t: d.TransformedDistribution(
        d.Normal(t([0.5, -1.0]), t([1.0, 2.0])), [d.AffineTransform(1.0, -0.5), d.SigmoidTransform()]
    ),
    "Uniform": lambda d, t: d.Uniform(t([0.1, -2.0]), t([0.9, 3.0])),
    "VonMises": lambda d, t: d.VonMises(t([0.5, -1.0]), t([1.0, 4.0])),
    "Weibull": lambda d, t: d.Weibull(t([0.5, 2.0]), t([1.5, 3.0])),
    "Wishart": lambda d, t: d.Wishart(t([3.5, 5.0]), t(MATRIX)),
}  # fmt: skip


def make(name: str, library, dtype=None):
    """The family's example in `library`, float64 unless `dtype` says otherwise."""
    distributions = library.distributions
    return CASES[name](distributions, lambda values: library.tensor(values, dtype=dtype or library.float64))
