"""Places in sorted sequences, distinct values, membership and histograms."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as rl

NAN = float("nan")


@pytest.mark.parametrize("side", ("left", "right"))
def test_searchsorted_agrees_with_numpy(side):
    random = np.random.default_rng(0)
    sequence, values = np.sort(random.integers(0, 9, (3, 7)), axis=1), random.integers(-1, 10, (3, 5))
    want = np.stack([np.searchsorted(row, value, side) for row, value in zip(sequence, values, strict=True)])
    got = rl.searchsorted(rl.from_numpy(sequence), rl.from_numpy(values), side=side)
    np.testing.assert_array_equal(got.numpy(), want)
    got = rl.bucketize(rl.from_numpy(values), rl.from_numpy(sequence[0]), right=side == "right")
    np.testing.assert_array_equal(got.numpy(), np.searchsorted(sequence[0], values, side))


def test_searchsorted_with_a_sorter_a_number_and_nan():
    sequence = rl.tensor([3.0, 1.0, 2.0])
    assert rl.searchsorted(sequence, 2.5, sorter=sequence.argsort()).item() == 2
    found = rl.searchsorted(rl.tensor([1.0, 2.0]), rl.tensor([NAN, 1.5]), out_int32=True)
    assert (found.dtype, found.tolist()) == (rl.int32, [2, 1])
    assert rl.searchsorted(rl.tensor([1.0, 2.0]), input=rl.tensor([3.0])).tolist() == [2]


def test_searchsorted_says_what_is_wrong():
    x = rl.tensor([1.0, 2.0])
    for wrong, message in (
        (lambda: rl.searchsorted(x, x, side="left", right=True), "opposites"),
        (lambda: rl.searchsorted(x, x, side="middle"), "'left' or 'right'"),
        (lambda: rl.searchsorted(rl.zeros(2, 3), rl.zeros(3, 3)), "first N-1 dimensions"),
        (lambda: rl.searchsorted(x, x, sorter=rl.tensor([0, 5])), "out of range"),
        (lambda: rl.bucketize(x, rl.zeros(2, 2)), "1 dimension"),
    ):
        with pytest.raises(RuntimeError, match=message):
            wrong()


def test_unique():
    x = rl.tensor([[3, 1], [1, 2]])
    assert rl.unique(x).tolist() == [1, 2, 3]
    values, inverse, counts = x.unique(return_inverse=True, return_counts=True)
    assert (inverse.tolist(), counts.tolist()) == ([[2, 0], [0, 1]], [2, 1, 1])
    assert values[inverse].tolist() == x.tolist()
    assert rl.unique(rl.tensor([NAN, NAN])).shape == (2,)


def test_unique_slices():
    x = rl.tensor([[2, 1], [0, 5], [2, 1], [2, 0]])
    values, inverse, counts = rl.unique(x, dim=0, return_inverse=True, return_counts=True)
    assert values.tolist() == [[0, 5], [2, 0], [2, 1]]
    assert (inverse.tolist(), counts.tolist()) == ([2, 0, 2, 1], [1, 1, 2])
    assert rl.unique(rl.tensor([[1, 0, 1], [2, 3, 2]]), dim=1).tolist() == [[0, 1], [3, 2]]
    with pytest.raises(RuntimeError, match="0 sized dimensions"):
        rl.unique(rl.zeros(2, 0), dim=0)
    with pytest.raises(IndexError, match="no dimensions"):
        rl.unique(rl.tensor(1), dim=0)


def test_unique_consecutive():
    x = rl.tensor([1, 1, 2, 1, 1])
    values, inverse, counts = rl.unique_consecutive(x, return_inverse=True, return_counts=True)
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([1, 2, 1], [0, 0, 1, 2, 2], [2, 1, 2])
    assert rl.tensor([[1, 2], [1, 2], [0, 2]]).unique_consecutive(dim=0).tolist() == [[1, 2], [0, 2]]


def test_isin():
    x = rl.tensor([[1.0, 2.0], [NAN, 4.0]])
    assert rl.isin(x, rl.tensor([4, 1])).tolist() == [[True, False], [False, True]]
    assert rl.isin(x, 2.0, invert=True).tolist() == [[True, False], [True, True]]
    assert rl.isin(4, rl.tensor([4, 1])).item() is True
    assert rl.isin(x, rl.zeros(0)).tolist() == [[False, False], [False, False]]


def test_argwhere_is_nonzero():
    assert rl.argwhere(rl.tensor([[0, 2], [3, 0]])).tolist() == [[0, 1], [1, 0]]


def test_bincount():
    x = rl.tensor([1, 3, 1])
    assert rl.bincount(x, minlength=6).tolist() == [0, 2, 0, 1, 0, 0]
    weighted = rl.bincount(x, rl.tensor([0.5, 1.0, 2.0]))
    assert (weighted.dtype, weighted.tolist()) == (rl.float32, [0, 2.5, 0, 1])
    assert rl.bincount(x, rl.tensor([1, 2, 3])).dtype is rl.float64
    with pytest.raises(RuntimeError, match="non-negative"):
        rl.bincount(rl.tensor([-1]))


def test_histograms_agree_with_numpy():
    random = np.random.default_rng(1)
    values, weights = random.standard_normal(50), random.random(50)
    x, w = rl.from_numpy(values), rl.from_numpy(weights)
    hist, edges = rl.histogram(x, 7, weight=w, density=True)
    want, places = np.histogram(values, 7, weights=weights, density=True)
    np.testing.assert_allclose(hist.numpy(), want)
    np.testing.assert_allclose(edges.numpy(), places)
    bounds = np.array([-1.0, 0.0, 0.5, 2.0])
    np.testing.assert_array_equal(rl.histogram(x, rl.from_numpy(bounds)).hist.numpy(), np.histogram(values, bounds)[0])
    for histc in (rl.histc, rl.compile(rl.histc, fullgraph=True)):
        np.testing.assert_array_equal(histc(x, 5, -1, 1).numpy(), np.histogram(values, 5, (-1, 1))[0])
    assert rl.histc(rl.tensor([NAN, 0.5, rl.inf]), 2, 0, 1).tolist() == [0, 1]
    points = random.standard_normal((40, 2))
    hist, edges = rl.histogramdd(rl.from_numpy(points), bins=[3, 4], range=[-1.0, 1.0, -2.0, 2.0])
    want, places = np.histogramdd(points, [3, 4], [(-1, 1), (-2, 2)])
    np.testing.assert_array_equal(hist.numpy(), want)
    for got, place in zip(edges, places, strict=True):
        np.testing.assert_allclose(got.numpy(), place)


def test_histc_says_what_is_wrong():
    x = rl.ones(3)
    assert rl.histc(x, 2).tolist() == [0, 3]
    for wrong, message in (
        (lambda: rl.histc(x, 0), "bins must be > 0"),
        (lambda: rl.histc(x, 2, 3, 1), "max must be larger than min"),
        (lambda: rl.histc(rl.tensor([NAN]), 2), "not finite"),
    ):
        with pytest.raises(RuntimeError, match=message):
            wrong()
