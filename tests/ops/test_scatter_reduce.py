"""Scatters into reductions, by index, by segment and through masks."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as rl
from rushlight.autograd import gradcheck

REDUCTIONS = {"sum": np.sum, "prod": np.prod, "mean": np.mean, "amax": np.max, "amin": np.min}


def array(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


@pytest.mark.parametrize("include_self", (True, False))
@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_scatter_reduce(reduce, include_self):
    start, values, index = array(4), array(6), np.array([0, 1, 1, 3, 1, 0])
    want = start.copy()
    for place in set(index.tolist()):
        group = values[index == place]
        want[place] = REDUCTIONS[reduce](np.append(group, start[place]) if include_self else group)
    x, src = rl.from_numpy(start), rl.from_numpy(values)
    got = x.scatter_reduce(0, rl.from_numpy(index), src, reduce, include_self=include_self)
    np.testing.assert_allclose(got.numpy(), want)
    x.scatter_reduce_(0, rl.from_numpy(index), src, reduce, include_self=include_self)
    np.testing.assert_allclose(x.numpy(), want)


@pytest.mark.parametrize("reduce", ("prod", "mean", "amax", "amin"))
def test_index_reduce_is_a_scatter_of_slices(reduce):
    start, values, index = rl.from_numpy(array(3, 4)), rl.from_numpy(array(2, 4)), rl.tensor([2, 2])
    want = start.scatter_reduce(0, index.unsqueeze(1).expand(2, 4), values, reduce)
    np.testing.assert_array_equal(start.index_reduce(0, index, values, reduce).numpy(), want.numpy())
    with pytest.raises(RuntimeError, match="prod, mean, amax or amin"):
        start.index_reduce(0, index, values, "sum")


@pytest.mark.parametrize("include_self", (True, False))
@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_gradients(reduce, include_self):
    index = rl.tensor([[0, 1, 1], [2, 0, 0]])
    x, src = rl.from_numpy(array(3, 4)).requires_grad_(), rl.from_numpy(array(2, 3)).requires_grad_()
    assert gradcheck(lambda x, src: x.scatter_reduce(0, index, src, reduce, include_self=include_self), (x, src))


def test_a_product_with_zeros_has_a_gradient():
    src = rl.tensor([0.0, 2.0, 3.0, 0.0], dtype=rl.float64, requires_grad=True)
    rl.ones(2, dtype=rl.float64).scatter_reduce(0, rl.tensor([0, 0, 1, 1]), src, "prod").sum().backward()
    assert src.grad.tolist() == [2, 0, 0, 3]


def test_scatter_with_a_reduction():
    x, index = rl.tensor([1.0, 2.0, 3.0]), rl.tensor([0, 2])
    assert x.scatter(0, index, rl.tensor([5.0, 6.0]), reduce="multiply").tolist() == [5, 2, 18]
    assert x.scatter(0, index, 4, reduce="add").tolist() == [5, 2, 7]
    assert x.scatter_(0, index, 0.0).tolist() == [0, 2, 0]
    with pytest.raises(RuntimeError, match="add or multiply"):
        x.scatter(0, index, 4, reduce="sum")


@pytest.mark.parametrize("reduce", ("sum", "prod", "mean", "max", "min"))
def test_segments(reduce):
    values = array(7, 2)
    function = getattr(np, reduce)
    data, lengths = rl.from_numpy(values), rl.tensor([3, 4])
    want = np.stack([function(values[:3], 0), function(values[3:], 0)])
    np.testing.assert_allclose(rl.segment_reduce(data, reduce, lengths=lengths).numpy(), want)
    np.testing.assert_allclose(rl.segment_reduce(data, reduce, offsets=rl.tensor([0, 3, 7])).numpy(), want)


def test_empty_segments_and_initial_values():
    data, lengths = rl.tensor([1.0, 2.0]), rl.tensor([0, 2])
    empty = {"sum": 0.0, "prod": 1.0, "max": -np.inf, "min": np.inf, "mean": np.nan}
    for reduce, value in empty.items():
        np.testing.assert_equal(rl.segment_reduce(data, reduce, lengths=lengths)[0].item(), value)
    assert rl.segment_reduce(data, "max", lengths=lengths, initial=5).tolist() == [5, 5]
    with pytest.raises(RuntimeError, match="Expected all rows of lengths"):
        rl.segment_reduce(data, "sum", lengths=rl.tensor([1]))


def test_masked_scatter():
    x, mask = rl.zeros(2, 3), rl.tensor([[True, False, True], [False, True, False]])
    source = rl.arange(6.0).requires_grad_()
    made = x.masked_scatter(mask, source)
    assert made.tolist() == [[0, 0, 1], [0, 2, 0]]
    made.sum().backward()
    assert source.grad.tolist() == [1, 1, 1, 0, 0, 0]
    assert x.masked_scatter_(mask[0], rl.ones(4)).tolist() == [[1, 0, 1], [1, 0, 1]]
    with pytest.raises(RuntimeError, match="Number of elements of source"):
        x.masked_scatter(mask, rl.ones(2))


def test_slices_by_index_in_place():
    x, index = rl.zeros(3, 2), rl.tensor([0, 2])
    assert x.index_add_(0, index, rl.ones(2, 2), alpha=2) is x
    assert x.tolist() == [[2, 2], [0, 0], [2, 2]]
    assert x.index_copy_(0, index, rl.ones(2, 2)).tolist() == [[1, 1], [0, 0], [1, 1]]
    assert x.index_fill_(1, rl.tensor([-1]), 7).tolist() == [[1, 7], [0, 7], [1, 7]]


def test_index_arguments_that_do_not_fit():
    x, index = rl.zeros(3, 4), rl.tensor([0, 1])
    for kind, wrong, message in (
        (IndexError, lambda: x.index_add(0, rl.zeros(2, 2, dtype=rl.int64), rl.zeros(2, 4)), "vector"),
        (RuntimeError, lambda: x.index_add(0, rl.zeros(2), rl.zeros(2, 4)), "int32/int64"),
        (RuntimeError, lambda: x.index_add(0, index, rl.zeros(2, 4, dtype=rl.float64)), "same scalar type"),
        (RuntimeError, lambda: x.index_add(0, index, rl.zeros(3, 4)), "Number of indices"),
        (RuntimeError, lambda: x.index_add(0, index, rl.zeros(2, 5)), "source tensor shape must match"),
        (IndexError, lambda: x.index_copy(0, rl.tensor([0, 7]), rl.zeros(2, 4)), "out of bounds"),
        (RuntimeError, lambda: x.index_copy(0, index.int(), rl.zeros(2, 4)), "long tensor"),
        (RuntimeError, lambda: x.index_copy(0, index, rl.zeros(2, 5)), "same slice shapes"),
        (IndexError, lambda: x.index_fill(0, rl.tensor([3]), 1), "out of bounds"),
        (RuntimeError, lambda: x.index_fill(0, index, 1j), "complex"),
    ):
        with pytest.raises(kind, match=message):
            wrong()


def test_masked_index_clamps_what_is_masked_out():
    x = rl.tensor([1.0, 2.0, 3.0])
    index, mask = rl.tensor([0, 9, -9]), rl.tensor([True, False, False])
    aten = rl.ops.aten
    assert aten._unsafe_masked_index(x, mask, [index], -1.0).tolist() == [1, -1, -1]
    assert aten._unsafe_masked_index_put_accumulate(x, mask, [index], rl.ones(3)).tolist() == [2, 2, 3]
