"""Sums of rows by index as native code agree with eager's."""

from __future__ import annotations

import warnings

import pytest

import rushlight as torch
from rushlight.nn import functional as F


def gradient(function, table, indices):
    leaf = table.detach().requires_grad_()
    result = function(leaf, indices)
    weights = (torch.arange(result.numel()) % 7 - 2.5).view(result.shape)
    return torch.autograd.grad((result * weights).sum(), leaf)[0]


def check(indices, rows=11, columns=20, dynamic=None, **options):
    def function(table, indices):
        return F.embedding(indices, table, **options)

    table = torch.randn(rows, columns)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="compile")
        found = gradient(torch.compile(function, fullgraph=True, dynamic=dynamic), table, indices)
    wanted = gradient(function, table, indices)
    assert found.stride() == wanted.stride()
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("columns", [1, 7, 16, 300])
@pytest.mark.parametrize("shape", [(), (1,), (400,), (3, 50)], ids=str)
def test_gradient_of_an_embedding(shape, columns):
    check(torch.randint(0, 11, shape), columns=columns)


@pytest.mark.parametrize("padding", [0, 3, -1])
def test_the_row_of_padding_gets_none(padding):
    check(torch.randint(0, 11, (60,)), padding_idx=padding)


def test_large_tables_and_other_indices():
    check(torch.randint(0, 5000, (300,)), rows=5000, columns=64)
    check(torch.randint(0, 11, (60,)).to(torch.int32))
    check(torch.randint(0, 11, (30, 6)).t()[::2])


def test_scaled_by_frequency_runs_in_eager():
    check(torch.randint(0, 11, (60,)), scale_grad_by_freq=True)


def test_open_sizes():
    check(torch.randint(0, 11, (6, 9)), dynamic=True)


def test_an_index_out_of_range_is_an_error():
    table = torch.randn(4, 3).requires_grad_()
    with pytest.raises(IndexError):
        torch.compile(lambda table, indices: F.embedding(indices, table))(table, torch.tensor([1, 4]))
