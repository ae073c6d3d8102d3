"""Medians, quantiles, modes and the k-th smallest value; NaN and empty tensors."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as rl
from rushlight.autograd import gradcheck

NAN = float("nan")


def test_median_is_the_lower_middle_value():
    assert rl.tensor([4, 1, 3, 2]).median().item() == 2
    values, places = rl.tensor([[4.0, 1.0, 3.0], [1.0, NAN, 0.0]]).median(1)
    np.testing.assert_array_equal(values.numpy(), [3, np.nan])
    assert places.tolist() == [2, 1]


def test_nanmedian_passes_over_nan():
    x = rl.tensor([[4.0, NAN, 3.0, 5.0], [NAN, NAN, NAN, NAN]])
    assert x.nanmedian().item() == 4
    values, places = x.nanmedian(1, keepdim=True)
    np.testing.assert_array_equal(values.numpy(), [[4], [np.nan]])
    assert places.shape == (2, 1) and places[0].item() == 0
    assert np.isnan(rl.tensor([1.0, NAN]).median().item())


def test_medians_of_nothing():
    assert np.isnan(rl.zeros(0).median().item())
    with pytest.raises(IndexError, match="dim 0 to have non-zero size"):
        rl.zeros(0, 3).median(0)
    with pytest.raises(NotImplementedError, match="Bool"):
        rl.tensor([True]).median()


@pytest.mark.parametrize("interpolation", ("linear", "lower", "higher", "midpoint", "nearest"))
@pytest.mark.parametrize("dim", (None, 0, 1))
def test_quantiles_agree_with_numpy(dim, interpolation):
    values = np.random.default_rng(0).standard_normal((4, 6))
    x, levels = rl.from_numpy(values), np.array([0.0, 0.2, 0.55, 1.0])
    want = np.quantile(values, levels, axis=dim, method=interpolation)
    np.testing.assert_allclose(rl.quantile(x, rl.from_numpy(levels), dim, interpolation=interpolation).numpy(), want)
    values[1, 2] = np.nan
    got = rl.nanquantile(rl.from_numpy(values), 0.3, dim, True, interpolation=interpolation)
    np.testing.assert_allclose(got.numpy(), np.nanquantile(values, 0.3, axis=dim, method=interpolation, keepdims=True))
    assert np.isnan(rl.quantile(rl.from_numpy(values), 0.3, dim).numpy()).any()


def test_quantile_says_what_is_wrong():
    x = rl.ones(3)
    for wrong, message in (
        (lambda: x.quantile(1.5), "in the range"),
        (lambda: x.quantile(rl.tensor([0.5, -1.0])), "in the range"),
        (lambda: x.quantile(rl.tensor(0.5, dtype=rl.float64)), "same dtype"),
        (lambda: x.quantile(0.5, interpolation="best"), "must be one of"),
        (lambda: rl.ones(0).quantile(0.5), "non-empty"),
        (lambda: rl.tensor([1, 2]).quantile(0.5), "either float or double"),
        (lambda: x.quantile(rl.zeros(1, 1)), "scalar or 1D"),
    ):
        with pytest.raises(RuntimeError, match=message):
            wrong()


def test_mode_takes_the_smallest_of_the_most_frequent_values():
    values, places = rl.tensor([[3, 1, 3, 1, 2], [5, 5, 5, 0, 0]]).mode()
    assert (values.tolist(), places.tolist()) == ([1, 5], [3, 2])
    values, places = rl.mode(rl.tensor([[1.0, 2.0], [1.0, 3.0]]), 0, keepdim=True)
    assert (values.tolist(), places.tolist()) == ([[1, 2]], [[1, 0]])


def test_kthvalue():
    x = rl.tensor([[3.0, 1.0, 2.0], [6.0, 5.0, 4.0]])
    values, places = x.kthvalue(2)
    assert (values.tolist(), places.tolist()) == ([2, 5], [2, 1])
    assert rl.kthvalue(x, 1, 0, keepdim=True).values.shape == (1, 3)
    with pytest.raises(RuntimeError, match="out of range for dimension 1"):
        x.kthvalue(4)


def test_msort_and_aminmax():
    x = rl.tensor([[3, 1], [2, 5]])
    assert rl.msort(x).tolist() == [[2, 1], [3, 5]]
    assert [part.tolist() for part in rl.aminmax(x, dim=0)] == [[2, 1], [3, 5]]
    assert rl.aminmax(x).max.item() == 5


def test_gradients():
    x = rl.from_numpy(np.random.default_rng(2).standard_normal((3, 5))).requires_grad_()
    assert gradcheck(lambda x: (x.median(), x.nanmedian(), x.median(0)[0], x.kthvalue(2)[0]), (x,))
    assert gradcheck(lambda x: (x.quantile(0.37), x.quantile(0.7, 1), x.mode(1)[0], rl.msort(x)), (x,))
    tied = rl.tensor([2.0, 1.0, 2.0, 3.0, 2.0], requires_grad=True)
    tied.median().backward()
    np.testing.assert_allclose(tied.grad.numpy(), [1 / 3, 0, 1 / 3, 0, 1 / 3])
