"""The closed forms of KL divergences, by pairs of families. Importing the module registers them."""

from __future__ import annotations

import math
from typing import Any

from rushlight.autograd.backward import grad
from rushlight.autograd.grad_mode import enable_grad
from rushlight.core.tensor import Tensor
from rushlight.distributions.bernoulli import Bernoulli
from rushlight.distributions.beta import Beta
from rushlight.distributions.binomial import Binomial
from rushlight.distributions.categorical import Categorical
from rushlight.distributions.cauchy import Cauchy
from rushlight.distributions.continuous_bernoulli import ContinuousBernoulli
from rushlight.distributions.dirichlet import Dirichlet
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.exp_family import ExponentialFamily
from rushlight.distributions.exponential import Exponential
from rushlight.distributions.gamma import Gamma
from rushlight.distributions.geometric import Geometric
from rushlight.distributions.gumbel import Gumbel
from rushlight.distributions.half_normal import HalfNormal
from rushlight.distributions.independent import Independent
from rushlight.distributions.kl import kl_divergence, register_kl
from rushlight.distributions.laplace import Laplace
from rushlight.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from rushlight.distributions.multivariate_normal import MultivariateNormal, log_diagonal, mahalanobis
from rushlight.distributions.normal import Normal
from rushlight.distributions.one_hot_categorical import OneHotCategorical
from rushlight.distributions.pareto import Pareto
from rushlight.distributions.poisson import Poisson
from rushlight.distributions.transformed_distribution import TransformedDistribution
from rushlight.distributions.uniform import Uniform
from rushlight.distributions.utils import euler_constant, sum_rightmost
from rushlight.ops.functional import broadcast_shapes
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")
_INFINITE_PAIRS = [
    (Beta, Pareto), (ContinuousBernoulli, Pareto), (Exponential, Beta), (Exponential, ContinuousBernoulli),
    (Exponential, Pareto), (Exponential, Uniform), (Gamma, Beta), (Gamma, ContinuousBernoulli), (Gamma, Pareto),
    (Gamma, Uniform), (Gumbel, Beta), (Gumbel, ContinuousBernoulli), (Gumbel, Exponential), (Gumbel, Gamma),
    (Gumbel, Pareto), (Gumbel, Uniform), (Laplace, Beta), (Laplace, ContinuousBernoulli), (Laplace, Exponential),
    (Laplace, Gamma), (Laplace, Pareto), (Laplace, Uniform), (Normal, Beta), (Normal, ContinuousBernoulli),
    (Normal, Exponential), (Normal, Gamma), (Normal, Pareto), (Normal, Uniform), (Pareto, Beta),
    (Pareto, ContinuousBernoulli), (Pareto, Uniform), (Poisson, Bernoulli), (Poisson, Binomial),
]  # fmt: skip


def _infinite(p: Distribution, q: Distribution) -> Tensor:
    """Infinity: q gives probability 0 to values in p's support."""
    return aten.full(broadcast_shapes(p.batch_shape, q.batch_shape), math.inf)


for _pair in _INFINITE_PAIRS:
    register_kl(*_pair)(_infinite)


def _by_entropy(p: Distribution, cross: Tensor) -> Tensor:
    """Return KL from the mean of log q under p."""
    return -p.entropy() - cross


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p, q):
    difference = q.logits - p.logits
    same_side = p.probs * (aten.softplus(-q.logits) - aten.softplus(-p.logits))
    other_side = (1 - p.probs) * (aten.softplus(q.logits) - aten.softplus(p.logits))
    result = same_side + other_side
    impossible = ((q.probs == 0) & (p.probs > 0)) | ((q.probs == 1) & (p.probs < 1))
    return aten.where(impossible, math.inf, result + 0 * difference)


@register_kl(Binomial, Binomial)
def _binomial(p, q):
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    one = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return aten.where(p.total_count > q.total_count, math.inf, p.total_count * one)


@register_kl(Beta, Beta)
def _beta(p, q):
    pairs = [(p.concentration1, q.concentration1), (p.concentration0, q.concentration0)]
    total_p, total_q = p.concentration1 + p.concentration0, q.concentration1 + q.concentration0
    result = aten.lgamma(total_p) - aten.lgamma(total_q)
    for ours, theirs in pairs:
        result = result + aten.lgamma(theirs) - aten.lgamma(ours)
        result = result + (ours - theirs) * (aten.digamma(ours) - aten.digamma(total_p))
    return result


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p, q):
    ours, theirs = p.concentration, q.concentration
    total = ours.sum(-1)
    constant = aten.lgamma(total) - aten.lgamma(theirs.sum(-1))
    spread = aten.digamma(ours) - aten.digamma(total).unsqueeze(-1)
    return constant + (aten.lgamma(theirs) - aten.lgamma(ours) + (ours - theirs) * spread).sum(-1)


@register_kl(Categorical, Categorical)
def _categorical(p, q):
    terms = p.probs * (p.logits - q.logits)
    terms = aten.where((q.probs == 0).expand(terms.shape), math.inf, terms)
    return aten.where((p.probs == 0).expand(terms.shape), 0, terms).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p, q):
    return _categorical(p._categorical, q._categorical)


@register_kl(Cauchy, Cauchy)
def _cauchy(p, q):
    """F. Chyzak and F. Nielsen, "A closed-form formula for the KL divergence between Cauchy distributions" (2019)."""
    numerator = (p.scale + q.scale).square() + (p.loc - q.loc).square()
    return (numerator / (4 * p.scale * q.scale)).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p, q):
    ours = p.mean * p.logits + p._log_constant() + (-p.probs).log1p()
    return ours - (p.mean * q.logits + q._log_constant() + (-q.probs).log1p())


@register_kl(Exponential, Exponential)
def _exponential(p, q):
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


@register_kl(Gamma, Gamma)
def _gamma(p, q):
    return (
        q.concentration * (p.rate / q.rate).log()
        + aten.lgamma(q.concentration)
        - aten.lgamma(p.concentration)
        + (p.concentration - q.concentration) * aten.digamma(p.concentration)
        + (q.rate - p.rate) * (p.concentration / p.rate)
    )


@register_kl(Gumbel, Gumbel)
def _gumbel(p, q):
    ratio = p.scale / q.scale
    shift = (p.loc - q.loc) / q.scale
    decay = (aten.lgamma(1 + ratio) - shift).exp()
    return -ratio.log() + shift + euler_constant * (ratio - 1) + decay - 1


@register_kl(Geometric, Geometric)
def _geometric(p, q):
    return _by_entropy(p, (-q.probs).log1p() / p.probs + q.logits)


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p, q):
    return _normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p, q):
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * (-distance / p.scale).exp() - 1


@register_kl(Normal, Normal)
def _normal(p, q):
    ratio = (p.scale / q.scale).square()
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).square() - 1 - ratio.log())


@register_kl(Pareto, Pareto)
def _pareto(p, q):
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return aten.where(p.support.lower_bound < q.support.lower_bound, math.inf, result)


@register_kl(Poisson, Poisson)
def _poisson(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform(p, q):
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return aten.where((q.low > p.low) | (q.high < p.high), math.inf, result)


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p, q):
    """Return the Bregman divergence of the log normaliser."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed using Bregman divergences"
        )
    with enable_grad():
        ours = [parameter.detach().requires_grad_() for parameter in p._natural_params]
        normaliser = p._log_normalizer(*ours)
        slopes = grad(normaliser.sum(), ours, create_graph=True)
    theirs, dims = q._natural_params, max(len(p.batch_shape), len(q.batch_shape))
    result = q._log_normalizer(*theirs) - normaliser
    for mine, other, slope in zip(ours, theirs, slopes, strict=True):
        term = (other - mine) * slope
        result = result - sum_rightmost(term, max(term.dim() - dims, 0))
    return result


@register_kl(Independent, Independent)
def _independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("KL between Independent distributions needs equal reinterpreted_batch_ndims")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _kl_of_transformed(p, q):
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("KL between TransformedDistributions needs equal transforms and event shapes")
    result = kl_divergence(p.base_dist, q.base_dist)
    return sum_rightmost(result, len(p.event_shape) - len(p.base_dist.event_shape))


def _factor(p: Any) -> Tensor:
    """Return a matrix F with F F^T the covariance."""
    if isinstance(p, MultivariateNormal):
        return p._unbroadcasted_scale_tril
    diagonal = p._unbroadcasted_cov_diag.sqrt().diag_embed()
    batch = broadcast_shapes(p._unbroadcasted_cov_factor.shape[:-2], diagonal.shape[:-2])
    parts = (p._unbroadcasted_cov_factor, diagonal)
    return aten.cat([part.expand((*batch, *part.shape[-2:])) for part in parts], -1)


def _half_log_determinant(p: Any) -> Tensor:
    if isinstance(p, MultivariateNormal):
        return log_diagonal(p._unbroadcasted_scale_tril)
    return 0.5 * p._log_determinant()


def _multivariate(p: Any, q: Any) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"KL-divergence between two Multivariate Normals with different event shapes cannot be computed: "
            f"{p.event_shape} and {q.event_shape}"
        )
    lower = q._unbroadcasted_scale_tril if isinstance(q, MultivariateNormal) else q.scale_tril
    ours = _factor(p)
    batch = broadcast_shapes(lower.shape[:-2], ours.shape[:-2])
    lower, ours = (matrix.expand((*batch, *matrix.shape[-2:])) for matrix in (lower, ours))
    trace = aten.linalg_solve_triangular(lower, ours, upper=False).square().sum((-2, -1))
    distance = mahalanobis(lower, q.loc - p.loc)
    size = p.event_shape[0]
    return _half_log_determinant(q) - _half_log_determinant(p) + 0.5 * (trace + distance - size)


for _first in (MultivariateNormal, LowRankMultivariateNormal):
    for _second in (MultivariateNormal, LowRankMultivariateNormal):
        register_kl(_first, _second)(_multivariate)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p, q):
    return _by_entropy(p, p.probs * q.rate.log() - q.rate)


def _beta_log_mean(p: Beta) -> Tensor:
    return aten.digamma(p.concentration1) - aten.digamma(p.concentration1 + p.concentration0)


@register_kl(Beta, ContinuousBernoulli)
def _beta_continuous_bernoulli(p, q):
    return _by_entropy(p, p.mean * q.logits + (-q.probs).log1p() + q._log_constant())


@register_kl(Beta, Exponential)
@register_kl(ContinuousBernoulli, Exponential)
def _to_exponential(p, q):
    return _by_entropy(p, q.rate.log() - q.rate * p.mean)


@register_kl(Gamma, Exponential)
def _gamma_exponential(p, q):
    return _to_exponential(p, q)


def _gamma_cross(q: Gamma, log_mean: Tensor, mean: Tensor) -> Tensor:
    shape = q.concentration
    return shape * q.rate.log() - aten.lgamma(shape) + (shape - 1) * log_mean - q.rate * mean


@register_kl(Beta, Gamma)
def _beta_gamma(p, q):
    return _by_entropy(p, _gamma_cross(q, _beta_log_mean(p), p.mean))


@register_kl(Exponential, Gamma)
def _exponential_gamma(p, q):
    return _by_entropy(p, _gamma_cross(q, -p.rate.log() - euler_constant, p.mean))


@register_kl(Beta, Normal)
@register_kl(ContinuousBernoulli, Normal)
@register_kl(Exponential, Normal)
@register_kl(Gamma, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Laplace, Normal)
@register_kl(Uniform, Normal)
def _to_normal(p, q):
    """Return the mean of log q under p, which depends only on p's mean and variance."""
    square = (p.variance + (p.mean - q.loc).square()) / (2 * q.variance)
    return _by_entropy(p, -square - q.scale.log() - 0.5 * math.log(2 * math.pi))


@register_kl(Beta, Uniform)
@register_kl(ContinuousBernoulli, Uniform)
def _unit_to_uniform(p, q):
    result = _by_entropy(p, -(q.high - q.low).log())
    return aten.where((q.low > 0) | (q.high < 1), math.inf, result)


def _gumbel_cross(q: Gumbel, mean: Tensor, decay: Tensor) -> Tensor:
    """Return the cross entropy, from the means of x and of exp(-x / scale) under p."""
    return -q.scale.log() - (mean - q.loc) / q.scale - (q.loc / q.scale).exp() * decay


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p, q):
    return _by_entropy(p, _gumbel_cross(q, p.mean, p.rate / (p.rate + 1 / q.scale)))


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p, q):
    decay = (-p.concentration * (1 / (p.rate * q.scale)).log1p()).exp()
    return _by_entropy(p, _gumbel_cross(q, p.mean, decay))


@register_kl(Normal, Gumbel)
def _normal_gumbel(p, q):
    decay = (-p.loc / q.scale + 0.5 * (p.scale / q.scale).square()).exp()
    return _by_entropy(p, _gumbel_cross(q, p.mean, decay))


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p, q):
    decay = q.scale / (p.high - p.low) * ((-p.low / q.scale).exp() - (-p.high / q.scale).exp())
    return _by_entropy(p, _gumbel_cross(q, p.mean, decay))


@register_kl(Normal, Laplace)
def _normal_laplace(p, q):
    offset = p.loc - q.loc
    standard = offset / p.scale
    spread = math.sqrt(2 / math.pi) * p.scale * (-0.5 * standard.square()).exp()
    distance = spread + offset * aten.erf(standard / math.sqrt(2))
    return _by_entropy(p, -(2 * q.scale).log() - distance / q.scale)


@register_kl(Pareto, Exponential)
def _pareto_exponential(p, q):
    return _by_entropy(p, q.rate.log() - q.rate * p.mean)


@register_kl(Pareto, Gamma)
def _pareto_gamma(p, q):
    return _by_entropy(p, _gamma_cross(q, p.scale.log() + p.alpha.reciprocal(), p.mean))


@register_kl(Pareto, Normal)
def _pareto_normal(p, q):
    return aten.where(p.alpha <= 2, math.inf, _to_normal(p, q))


def _inside(low: Tensor, high: Tensor, p: Uniform, result: Tensor) -> Tensor:
    return aten.where((p.low < low) | (p.high > high), math.inf, result)


def _uniform_log_mean(p: Uniform) -> Tensor:
    """Return the mean of log x."""
    return (aten.xlogy(p.high, p.high) - aten.xlogy(p.low, p.low)) / (p.high - p.low) - 1


@register_kl(Uniform, Beta)
def _uniform_beta(p, q):
    log_rest = (aten.xlogy(1 - p.low, 1 - p.low) - aten.xlogy(1 - p.high, 1 - p.high)) / (p.high - p.low) - 1
    first, second = q.concentration1, q.concentration0
    constant = aten.lgamma(first + second) - aten.lgamma(first) - aten.lgamma(second)
    cross = constant + (first - 1) * _uniform_log_mean(p) + (second - 1) * log_rest
    return _inside(0, 1, p, _by_entropy(p, cross))


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p, q):
    return _inside(0, 1, p, _by_entropy(p, p.mean * q.logits + (-q.probs).log1p() + q._log_constant()))


@register_kl(Uniform, Exponential)
def _uniform_exponential(p, q):
    return _inside(0, math.inf, p, _to_exponential(p, q))


@register_kl(Uniform, Gamma)
def _uniform_gamma(p, q):
    return _inside(0, math.inf, p, _by_entropy(p, _gamma_cross(q, _uniform_log_mean(p), p.mean)))


@register_kl(Uniform, Pareto)
def _uniform_pareto(p, q):
    cross = q.alpha.log() + q.alpha * q.scale.log() - (q.alpha + 1) * _uniform_log_mean(p)
    return _inside(q.scale, math.inf, p, _by_entropy(p, cross))
