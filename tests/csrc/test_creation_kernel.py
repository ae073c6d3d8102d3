"""The C kernels that make, fill and copy tensors agree with the general ones, and leave to those what is not plain."""

import numpy as np
import pytest

import rushlight as torch

VALUES = [(torch.float32, 1.5), (torch.float64, -0.0), (torch.int64, -3), (torch.int32, 7), (torch.bool, True), (torch.uint8, 0)]


@pytest.mark.parametrize(("kind", "value"), VALUES)
@pytest.mark.parametrize("size", [(), (0,), (3,), (2, 5), (1 << 18,)])
def test_full_and_fill_write_every_element(kind, value, size):
    made = torch.full(size, value, dtype=kind)
    assert made.dtype is kind and tuple(made.shape) == size and made.is_contiguous()
    assert np.array_equal(made.numpy(), np.full(size, value, made.numpy().dtype))
    assert np.array_equal(torch.empty(size, dtype=kind).fill_(value).numpy(), made.numpy())


def test_numbers_that_do_not_fit_are_left_to_the_general_kernel():
    assert torch.full((2,), 2.5, dtype=torch.int64).tolist() == [2, 2]
    assert torch.full((2,), 200, dtype=torch.uint8).tolist() == [200, 200]
    assert torch.full((2,), 0.5, dtype=torch.bool).tolist() == [True, True]
    with pytest.raises(RuntimeError, match="negative dimension"):
        torch.full((-1,), 1.0, dtype=torch.float32)


@pytest.mark.parametrize("bounds", [(0, 5), (5, 0, -1), (0, 5, 2), (1, 6, 3), (3, 3), (-4, 4, 3), (4, -4, -3), (5, -6, -5)])
@pytest.mark.parametrize("kind", [None, torch.float32, torch.float64, torch.int32])
def test_arange_is_numpys(bounds, kind):
    made = torch.arange(*bounds, dtype=kind)
    assert made.dtype is (kind or torch.int64)
    assert np.array_equal(made.numpy(), np.arange(*bounds))


def test_arange_refuses_what_it_refused():
    for bounds in ((0, 5, 0), (0, 5, -1), (5, 0, 1)):
        with pytest.raises(RuntimeError):
            torch.arange(*bounds)


def test_a_copy_reads_and_writes_whole_tensors_only_where_both_are_row_major():
    source, target = torch.arange(6.0).view(2, 3), torch.zeros(3, 2)
    target.t().copy_(source)
    assert target.tolist() == source.t().tolist()
    same = torch.arange(4.0)
    same[1:].copy_(same[1:])
    assert same.tolist() == [0, 1, 2, 3]
    version = target._version
    assert target.copy_(target.clone())._version == version + 1
    with pytest.raises(RuntimeError, match="must match the size"):
        torch.zeros(2).copy_(torch.zeros(3))


def test_empty_strided_keeps_odd_strides():
    assert torch.empty_strided((2, 3), (1, 2)).stride() == (1, 2)
    assert torch.empty_strided((2, 3), (3, 1)).stride() == (3, 1)
    assert torch.empty_like(torch.zeros(2, 3).t()).stride() == (1, 3)
