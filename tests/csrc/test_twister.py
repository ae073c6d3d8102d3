"""The Mersenne Twister in C against NumPy's, and the tensors that it fills."""

import numpy as np
import pytest

import rushlight as torch
from rushlight._C import MersenneTwister


def draws(twister, count):
    target = np.empty(count, np.uint64)
    twister.raw(target)
    return target


@pytest.mark.parametrize("seed", [0, 1, 5489, 2**32 - 1])
def test_draws_are_those_of_numpy(seed):
    expected = np.random.MT19937(0)
    expected._legacy_seeding(seed)
    assert np.array_equal(draws(MersenneTwister(seed), 2000), expected.random_raw(2000))


def test_words_are_two_draws_the_first_the_high_half():
    halves = draws(MersenneTwister(9), 6)
    words = torch.empty(3, dtype=torch.int64)
    assert MersenneTwister(9).words(words)
    assert np.array_equal(words.numpy().view(np.uint64), halves[0::2] << np.uint64(32) | halves[1::2])


def test_a_state_continues_elsewhere():
    first = MersenneTwister(3)
    draws(first, 700)
    second = MersenneTwister()
    second.set_state(*first.get_state())
    assert np.array_equal(draws(first, 1000), draws(second, 1000))
    with pytest.raises(ValueError, match="set_state"):
        second.set_state(b"short", 0)


def test_a_normal_number_is_kept():
    twister = MersenneTwister(1)
    assert twister.kept_normal is None
    twister.standard_normal(np.empty(3))
    assert isinstance(twister.kept_normal, float)
    twister.kept_normal = None
    assert twister.kept_normal is None


def test_only_row_major_tensors_of_known_dtypes_are_filled():
    twister = MersenneTwister(1)
    assert twister.uniform(torch.empty(4), 0, 1)
    assert not twister.uniform(torch.empty(4, 4).t()[:, :2], 0, 1)
    assert not twister.uniform(torch.empty(4, dtype=torch.int64), 0, 1)
    assert not twister.bernoulli(torch.empty(4, dtype=torch.float16), 0.5)
    assert not twister.integers(torch.empty(4, dtype=torch.int8), 0, 5)
    assert not twister.normal(None, 0, 1)
    assert not twister.words(torch.empty(4, dtype=torch.int32)) and not twister.words(torch.empty(2, 2, dtype=torch.int64).t())
    with pytest.raises(TypeError):
        twister.uniform(torch.empty(4), 0)


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.parametrize("count", [1, 7, 15, 16, 17, 1000, 40_000])
def test_numbers_lie_where_they_should(kind, count):
    generator = torch.Generator().manual_seed(0)
    uniform = torch.empty(count, dtype=kind).uniform_(-2, 3, generator=generator)
    assert bool((uniform >= -2).all()) and bool((uniform < 3).all())
    normal = torch.empty(count, dtype=kind).normal_(5, 2, generator=generator)
    assert bool(normal.isfinite().all())
    if count == 40_000:
        assert abs(float(normal.mean()) - 5) < 0.05 and abs(float(normal.std()) - 2) < 0.05
