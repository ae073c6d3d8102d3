"""Draws from distributions: what they check, their shapes, generators of one's own, and moments."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as rl


@pytest.fixture(autouse=True)
def seeded():
    with rl.fork_rng():
        rl.manual_seed(5)
        yield


def test_multinomial():
    weights = rl.tensor([[0.0, 1.0, 3.0], [1.0, 0.0, 0.0]])
    drawn = rl.multinomial(weights, 4000, replacement=True)
    assert (drawn.shape, drawn.dtype) == ((2, 4000), rl.int64)
    assert drawn[0].double().mean().item() == pytest.approx(1.75, abs=0.05)
    assert drawn[1].max().item() == 0
    assert sorted(rl.multinomial(rl.ones(6), 6).tolist()) == list(range(6))


def test_multinomial_says_what_is_wrong():
    for wrong, message in (
        (lambda: rl.multinomial(rl.ones(2, 2, 2), 1), "1 or 2 dim"),
        (lambda: rl.multinomial(rl.ones(2), 3), "without replacement"),
        (lambda: rl.multinomial(rl.ones(2), 0), "n_sample <= 0"),
        (lambda: rl.multinomial(rl.tensor([1, 2]), 1), "floating-point"),
        (lambda: rl.multinomial(rl.tensor([-1.0, 2.0]), 1), "element < 0"),
        (lambda: rl.multinomial(rl.zeros(2), 1), "sum of probabilities <= 0"),
    ):
        with pytest.raises(RuntimeError, match=message):
            wrong()


@pytest.mark.parametrize(
    "name, args, mean",
    [("exponential_", (2.0,), 0.5), ("geometric_", (0.25,), 4.0), ("log_normal_", (0.0, 0.5), np.exp(0.125))],
)
def test_means_of_draws(name, args, mean):
    x = rl.empty(200, 100, dtype=rl.float64)
    assert getattr(x, name)(*args) is x
    assert x.mean().item() == pytest.approx(mean, rel=0.03)


def test_cauchy_has_its_median():
    assert rl.empty(20000).cauchy_(3.0, 0.5).median().item() == pytest.approx(3, abs=0.05)


@pytest.mark.parametrize("rate", (1.5, 9.0, 40.0))
def test_poisson(rate):
    drawn = rl.poisson(rl.full((10000,), rate, dtype=rl.float64))
    assert drawn.mean().item() == pytest.approx(rate, rel=0.06)
    assert drawn.var().item() == pytest.approx(rate, rel=0.12)


@pytest.mark.parametrize("count, chance", ((8.0, 0.3), (100.0, 0.4), (60.0, 0.9)))
def test_binomial(count, chance):
    drawn = rl.binomial(rl.full((4000,), count), rl.full((4000,), chance)).double()
    assert drawn.mean().item() == pytest.approx(count * chance, rel=0.05)
    assert drawn.var().item() == pytest.approx(count * chance * (1 - chance), rel=0.12)
    assert 0 <= drawn.min().item() and drawn.max().item() <= count


def test_normal_with_tensors():
    mean, deviation = rl.tensor([[0.0], [100.0]]), rl.tensor([0.0, 1.0, 2.0])
    drawn = rl.normal(mean, deviation)
    assert drawn.shape == (2, 3) and drawn[:, 0].tolist() == [0, 100]
    assert rl.normal(mean).shape == (2, 1) and rl.normal(1.0, deviation).shape == (3,)
    assert rl.normal(0.0, 1.0, (2, 2), dtype=rl.float64).dtype is rl.float64
    with pytest.raises(RuntimeError, match="all elements of std >= 0"):
        rl.normal(0.0, rl.tensor([-1.0]))


def test_bernoulli_of_probabilities_and_numbers():
    chances = rl.tensor([0.0, 1.0])
    assert rl.bernoulli(chances).tolist() == [0, 1]
    assert rl.empty(3, 2).bernoulli_(chances).tolist() == [[0, 1]] * 3
    assert rl.bernoulli(rl.zeros(4), 1.0).tolist() == [1] * 4
    with pytest.raises(RuntimeError, match="p_in"):
        rl.bernoulli(rl.tensor([1.5]))
    with pytest.raises(RuntimeError, match="must match the size"):
        rl.empty(3).bernoulli_(rl.zeros(2))


def test_generators_of_ones_own():
    source = rl.Generator().manual_seed(1)
    first = rl.rand_like(rl.empty(3), generator=source)
    rl.randn_like(rl.empty(3), generator=source)
    assert rl.randint_like(rl.empty(2), 2, 5, generator=source).min().item() >= 2
    assert rl.multinomial(rl.ones(3), 2, generator=source).shape == (2,)
    source.manual_seed(1)
    assert rl.rand(3, generator=source).tolist() == first.tolist()


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda x: x.exponential_(-1.0), "lambda > 0"),
        (lambda x: x.cauchy_(0.0, 0.0), "sigma > 0"),
        (lambda x: x.geometric_(1.0), "p to be in"),
        (lambda x: x.log_normal_(0.0, -1.0), "std > 0"),
        (lambda x: x.long().exponential_(), "continuous probability distribution"),
        (lambda x: rl.poisson(-x), "non-negative"),
    ],
)
def test_parameters_outside_their_range(call, message):
    with pytest.raises(RuntimeError, match=message):
        call(rl.ones(3))
