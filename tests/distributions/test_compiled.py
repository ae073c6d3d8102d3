"""Distributions in compiled functions: one graph, for the values of parameters and samples are not looked at there."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight.distributions import Categorical, Geometric, Normal, kl_divergence
from tests.distributions.cases import CASES

ONE_GRAPH = [
    "Bernoulli", "Beta", "Categorical", "ContinuousBernoulli", "Dirichlet", "Exponential", "Gamma", "Geometric", "Independent",
    "Laplace", "MixtureSameFamily", "MultivariateNormal", "Normal", "OneHotCategorical", "StudentT", "Uniform",
]  # fmt: skip


@pytest.mark.parametrize("name", ONE_GRAPH)
def test_a_family_is_one_graph(name):
    def likelihood(value, shift):
        return CASES[name](torch.distributions, lambda parameters: torch.tensor(parameters) + shift).log_prob(value)

    value = CASES[name](torch.distributions, torch.tensor).sample()
    fast = torch.compile(likelihood, backend="eager", fullgraph=True)
    assert torch.allclose(fast(value, torch.zeros(())), likelihood(value, torch.zeros(())))


def test_a_divergence_with_gradients():
    def divergence(mean, scale):
        return kl_divergence(Normal(mean, scale.exp()), Normal(torch.zeros(3), torch.ones(3))).sum()

    results = []
    for function in (divergence, torch.compile(divergence, fullgraph=True)):
        mean, scale = (torch.linspace(start, 1, 3).requires_grad_() for start in (-1, 0.5))
        function(mean, scale).backward()
        results.append(torch.stack([mean.grad, scale.grad]))
    assert torch.allclose(*results)


def test_shapes_are_looked_at_and_values_only_in_eager():
    with pytest.raises(ValueError, match="broadcastable"):
        torch.compile(lambda value: Categorical(torch.ones(2, 3)).log_prob(value), backend="eager")(torch.zeros(5))
    wrong = torch.tensor([0.5, -1.0])
    for family in (lambda value: Normal(value, value), lambda value: Geometric(value)):
        with pytest.raises(ValueError, match="Expected parameter"):
            family(wrong)
        torch.compile(lambda value, family=family: family(value).mean, backend="eager", fullgraph=True)(wrong)
