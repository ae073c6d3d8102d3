"""Tensors from Python data, from ranges and from random numbers."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as rl

DATA = [
    1, 1.5, True, 1j, [], [[]], [[], []], [1, 2], [1, 2.5], [True, 2], [[1], [2]], ((1, 2), (3, 4)), [[1.0, 2], [True, 4j]],
    [np.float64(1), 2], [np.int32(1)], [np.array([1, 2]), np.array([3, 4])], np.array([1.5]), np.float32(2),
]  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("data", DATA, ids=str)
def test_values_and_dtypes_are_torchs(data):
    torch = pytest.importorskip("torch")
    ours, theirs = rl.tensor(data), torch.tensor(data)
    assert repr(ours) == repr(theirs)
    assert tuple(ours.shape) == tuple(theirs.shape)


def test_tensors_among_data():
    assert rl.tensor([rl.tensor(1), rl.tensor(2.5)]).dtype is rl.float32
    assert rl.tensor([rl.tensor(1), 2]).dtype is rl.int64
    assert rl.tensor([[rl.tensor(1.0, dtype=rl.float64)], [2]]).dtype is rl.float64
    assert rl.tensor([rl.ones(2), rl.zeros(2)]).tolist() == [[1, 1], [0, 0]]
    x = rl.ones(2)
    assert rl.tensor(x).data_ptr() != x.data_ptr()


def test_options():
    assert rl.tensor([1], dtype=rl.float16).dtype is rl.tensor([1], dtype=rl.half).dtype is rl.float16
    assert rl.tensor([1.7], dtype=int).tolist() == [1] and rl.tensor([1], dtype=float).dtype is rl.float64
    assert rl.tensor([1.0], requires_grad=True).is_leaf and rl.tensor([1.0], device="meta").is_meta


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ([[1, 2], [3]], ValueError, r"expected sequence of length 2 at dim 1 \(got 1\)"),
        ([[[1], [2]], [[1]]], ValueError, r"expected sequence of length 2 at dim 1 \(got 1\)"),
        ([1, [2]], ValueError, "at dim 1"),
        ("a", TypeError, "invalid data type 'str'"),
        (["a"], TypeError, "invalid data type"),
        (object(), TypeError, "invalid data type 'object'"),
        (None, TypeError, "invalid data type 'NoneType'"),
        ([None], TypeError, "invalid data type"),
    ],
)
def test_what_is_no_data(data, error, message):
    with pytest.raises(error, match=message):
        rl.tensor(data)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.arange(5), lambda t: t.arange(1, 2, 0.3), lambda t: t.arange(5, 1, -2), lambda t: t.arange(0.0),
        lambda t: t.arange(3, dtype=t.float16), lambda t: t.linspace(0, 1, 7), lambda t: t.linspace(3, -3, 4),
        lambda t: t.linspace(1, 2, 1), lambda t: t.linspace(0, 10, 5, dtype=t.int64), lambda t: t.eye(3),
        lambda t: t.eye(2, 3, dtype=t.int64), lambda t: t.full((2,), 3), lambda t: t.full((), True),
        lambda t: t.full((2, 2), 1.5, dtype=t.int32), lambda t: t.zeros(2, 0), lambda t: t.ones(()),
        lambda t: t.zeros_like(t.ones(2, 3).t()), lambda t: t.ones_like(t.arange(3), dtype=t.float64),
        lambda t: t.full_like(t.ones(2), 7), lambda t: t.scalar_tensor(3), lambda t: t.tril(t.ones(3, 3), 1),
        lambda t: t.empty_strided((2, 3), (1, 2)).fill_(1), lambda t: t.empty_like(t.ones(2, 3).t()).fill_(2),
    ],
)  # fmt: skip
def test_factories_are_torchs(call):
    torch = pytest.importorskip("torch")
    ours, theirs = call(rl), call(torch)
    assert repr(ours) == repr(theirs) and ours.stride() == theirs.stride()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rl.arange(0, 5, 0), "step must be nonzero"),
        (lambda: rl.arange(5, 0), "upper bound and lower bound inconsistent with step sign"),
        (lambda: rl.arange(0, float("inf")), "unsupported range"),
        (lambda: rl.zeros(-1), "negative dimension -1"),
        (lambda: rl.linspace(0, 1, -1), "number of steps must be non-negative"),
        (lambda: rl.randperm(-1), "n must be non-negative"),
        (lambda: rl.zeros(2).tril(), "at least 2 dimensions"),
    ],
)
def test_factory_errors(call, message):
    with pytest.raises(RuntimeError, match=message):
        call()
