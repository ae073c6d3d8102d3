"""Tensors that change places, groups of tensors, variables, and what is known of the build and the machine."""

from __future__ import annotations

import weakref

import pytest

import rushlight as torch
from rushlight.utils._foreach_utils import _group_tensors_by_device_and_dtype


def test_tensors_change_places():
    a, b = torch.ones(2, requires_grad=True), torch.nn.Parameter(torch.zeros(3, dtype=torch.float64))
    a.note = "a"
    kept = a
    torch.utils.swap_tensors(a, b)
    assert kept.shape == (3,) and type(kept) is torch.nn.Parameter and b.tolist() == [1.0, 1.0] and b.note == "a"
    assert not hasattr(a, "note") and b.requires_grad
    reference = weakref.ref(a)
    with pytest.raises(RuntimeError, match="Cannot swap t1"):
        torch.utils.swap_tensors(a, b)
    assert reference() is a


def test_groups_of_tensors():
    x, y, z = torch.ones(1), torch.ones(1, dtype=torch.float64), torch.ones(2)
    groups = _group_tensors_by_device_and_dtype([[x, y, z], [None, x, y]], with_indices=True)
    assert {kind: ([[id(each) for each in part] for part in lists], places) for (_, kind), (lists, places) in groups.items()} == {
        torch.float32: ([[id(x), id(z)], [id(None), id(y)]], [0, 2]), torch.float64: ([[id(y)], [id(x)]], [1]),
    }  # fmt: skip
    with pytest.raises(ValueError, match="of one length"):
        _group_tensors_by_device_and_dtype([[x], []])


def test_variables_are_tensors():
    x = torch.ones(2)
    made = torch.autograd.Variable(x, requires_grad=True)
    assert made.requires_grad and made.data_ptr() == x.data_ptr() and isinstance(x, torch.autograd.Variable)
    with pytest.raises(TypeError, match="has to be a tensor"):
        torch.autograd.Variable([1.0])


def test_what_is_built_and_classes_that_are_not_there():
    assert "Rushlight" in torch.__config__.show() and "Threads" in torch.__config__.parallel_info()
    with pytest.raises(RuntimeError, match="'foo.Bar', but it does not exist"):
        torch.classes.foo.Bar  # noqa: B018


def test_what_is_known_of_the_machine(capsys):
    from rushlight.utils import collect_env

    collect_env.main()
    shown = capsys.readouterr().out
    assert "(Rushlight)" in shown and "numpy==" in shown and collect_env.get_env_info().cuda_compiled_version == "None"
