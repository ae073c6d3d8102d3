"""copy, deepcopy and pickle."""

from __future__ import annotations

import copy
import pickle

import pytest

import rushlight as rl
from rushlight.core.dtype import ALL


@pytest.mark.parametrize("kind", ALL, ids=repr)
def test_pickling_keeps_values_dtype_and_strides(kind):
    x = rl.ones(2, 3, dtype=kind).t()
    y = pickle.loads(pickle.dumps(x))
    assert y.dtype is kind and y.stride() == x.stride() == (1, 3) and y.tolist() == x.tolist()
    assert y.data_ptr() != x.data_ptr() and y.data_ptr() % 64 == 0


def test_pickling_keeps_requires_grad_but_no_history():
    assert pickle.loads(pickle.dumps(rl.ones(2, requires_grad=True))).requires_grad
    assert pickle.loads(pickle.dumps(rl.arange(10)[::3])).tolist() == [0, 3, 6, 9]
    with pytest.raises(RuntimeError, match="cannot be pickled"):
        pickle.dumps(rl.ones(2, requires_grad=True) * 2)


def test_deepcopy_copies_memory_once():
    base = rl.arange(6.0)
    copied = copy.deepcopy({"base": base, "again": base, "part": base[2:]})
    assert copied["base"] is copied["again"] and copied["base"].data_ptr() != base.data_ptr()
    copied["base"][2] = 99
    assert copied["part"][0].item() == 99 and base[2].item() == 2


def test_deepcopy_of_a_leaf_takes_its_gradient_and_attributes_along():
    x = rl.ones(2, requires_grad=True)
    (x * 3).sum().backward()
    x.note = ["kept"]
    y = copy.deepcopy(x)
    assert y.requires_grad and y.grad.tolist() == [3, 3] and y.grad is not x.grad
    assert y.note == ["kept"] and y.note is not x.note
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(x * 2)


def test_shallow_copies_share_memory():
    x = rl.ones(2, requires_grad=True)
    y = copy.copy(x)
    assert y is not x and y.data_ptr() == x.data_ptr() and y.is_leaf and y.requires_grad


def test_meta_tensors_can_be_copied():
    x = copy.deepcopy(rl.ones(2, 3, device="meta"))
    assert x.is_meta and x.shape == (2, 3)
