"""Columns that are several dimensions in one are walked along the last of them, in vectors."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight.core.algebra import Var
from rushlight.core.dtype import float32
from rushlight.inductor.codegen.cpp.runs import runs_of
from rushlight.inductor.ir import Load
from rushlight.nn import functional as F
from tests.inductor.native_nodes import check, source_of


def variation(x):
    return (x[..., 1:] - x[..., :-1]).abs().mean(), (x[:, 1:] - x[:, :-1]).abs().amax()


def shifted(x):
    return x[:, 1:].abs().sum(), (x[:, :-1] * 2).argmin(), x[..., 2:-2].norm()


def groups(x, weight, bias):
    return F.silu(F.group_norm(x, 4, weight, bias)), F.group_norm(x, 2, weight).tanh()


@pytest.mark.parametrize("shape", [(2, 129, 127), (511, 1023), (3, 8, 62, 62), (301, 701), (7, 11, 13)], ids=str)
@pytest.mark.parametrize("function", [variation, shifted])
def test_reductions_of_slices(function, shape):
    check(function, torch.randn(shape))


@pytest.mark.parametrize("shape", [(2, 8, 32, 32), (3, 16, 7, 7), (2, 8, 5), (4, 8)], ids=str)
def test_group_norm(shape):
    check(groups, torch.randn(shape), torch.randn(shape[1]), torch.randn(shape[1]))


@pytest.mark.parametrize("function", [variation, shifted, groups])
def test_loops_are_vectors_of_neighbours(function):
    inputs = [torch.randn(2, 8, 129, 127), torch.randn(8), torch.randn(8)][: function.__code__.co_argcount]
    source = source_of(function, *inputs)
    assert "long place" in source
    assert "load_at" not in source and "scalar_lane lane;" not in source


def test_how_long_runs_are():
    x, column = Var("x", 8), Var("r", 6096)

    def length(*indices):
        found = runs_of([Load(float32, "in", index) for index in indices], column)
        return None if found is None else (found.run.extent, found.place.extent)

    assert length(x * 6096 + column) is None  # all columns are one run
    assert length(column // 127 * 128 + column % 127) == (48, 127)
    whole = x * 6096 + column
    assert length(whole // 16256 * 16383 + whole % 16256) == (3, 2032)
    assert length(column // 127 * 128 + column % 127, column // 254) == (48, 127)
    assert length(column // 3) is None
    assert length(column // 127 * 128 + column % 127, column // 3) is None
