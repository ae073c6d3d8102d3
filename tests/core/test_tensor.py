"""The handle: geometry, identity, printing hooks, `.data`, and what it says when something is impossible."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as rl
from rushlight.core.tensor import check_geometry, tensor_from_storage


def test_geometry():
    x = rl.arange(24).view(2, 3, 4)[:, 1:, ::2]
    assert x.shape == x.size() == rl.Size([2, 2, 2]) and isinstance(x.shape, rl.Size)
    assert x.stride() == (12, 4, 2) and x.storage_offset() == 4
    assert (x.size(-1), x.stride(1)) == (2, 4)
    assert x.dim() == x.ndim == x.ndimension() == 3
    assert x.numel() == x.nelement() == 8 and x.nbytes == 64 and x.itemsize == x.element_size() == 8
    assert not x.is_contiguous() and x.contiguous().is_contiguous()
    assert x.data_ptr() == x.untyped_storage().data_ptr() + 4 * 8
    with pytest.raises(IndexError, match=r"Dimension out of range \(expected to be in range of \[-3, 2\], but got 3\)"):
        x.size(3)


def test_channels_last_is_a_memory_format():
    x = rl.zeros(2, 3, 4, 5).contiguous(memory_format=rl.channels_last)
    assert x.stride() == (60, 1, 15, 3)
    assert x.is_contiguous(memory_format=rl.channels_last) and not x.is_contiguous()
    assert x.is_non_overlapping_and_dense()


def test_kind():
    x = rl.zeros(2, dtype=rl.float16)
    assert x.is_floating_point() and not x.is_complex() and x.is_signed() and x.is_cpu and not x.is_meta
    assert x.device == rl.device("cpu") and x.layout is rl.strided and x.get_device() == -1
    assert not x.is_cuda and not x.is_sparse and not x.is_quantized
    assert not rl.zeros(2, dtype=rl.uint8).is_signed()


def test_constructor_takes_sizes_or_values():
    assert rl.Tensor(2, 3).shape == (2, 3) and rl.Tensor().shape == (0,)
    assert rl.Tensor([1, 2]).tolist() == [1.0, 2.0] and rl.Tensor([1]).dtype is rl.float32
    with pytest.raises(TypeError, match=r"takes sizes, or one sequence of values, but got \(str\)"):
        rl.Tensor("a")


def test_handles_hash_by_identity():
    x = rl.zeros(2)
    assert hash(x) == hash(x) and {x: 1}[x] == 1 and len({x, rl.zeros(2)}) == 2


def test_versions_count_writes_through_every_alias():
    x = rl.zeros(4)
    view = x.view(2, 2)
    view[0, 0] = 1
    x.add_(1)
    x[1:].zero_()
    assert x._version == view._version == x.detach()._version == 3
    assert x.data._version == 0
    x.data.add_(1)
    assert x._version == 3, "writes through .data are not counted"


def test_data_is_the_same_memory_without_history():
    x = rl.ones(3, requires_grad=True)
    y = (x * 2).data
    assert not y.requires_grad and y.grad_fn is None
    x.data.fill_(5)
    assert x.tolist() == [5, 5, 5]
    x.data = rl.zeros(2)
    assert x.shape == (2,) and x.requires_grad
    with pytest.raises(TypeError, match="data has to be a tensor, but got list"):
        x.data = [1]
    with pytest.raises(RuntimeError, match="must be floating point or complex"):
        x.data = rl.zeros(2, dtype=rl.int64)


def test_a_tensor_over_part_of_a_storage():
    storage = rl.arange(10, dtype=rl.int32).untyped_storage()
    x = tensor_from_storage(storage, rl.int32, (2, 2), (4, 1), 1)
    assert x.tolist() == [[1, 2], [5, 6]]


@pytest.mark.parametrize(
    ("sizes", "strides", "offset", "message"),
    [
        ((2,), (1, 1), 0, "mismatch in length of strides and shape"),
        ((-1,), (1,), 0, "negative dimension -1"),
        ((2,), (-1,), 0, "Negative strides are not supported"),
        ((2,), (1,), -1, "invalid storage offset -1"),
        ((3, 4), (4, 1), 0, "out of bounds for storage of size 40"),
        ((1 << 40, 1 << 40), (1 << 40, 1), 0, "out of bounds for storage of size 40"),
    ],
)
def test_geometry_is_checked(sizes, strides, offset, message):
    with pytest.raises(RuntimeError, match=message):
        check_geometry(rl.zeros(10).untyped_storage()._impl, rl.float32, sizes, strides, offset)


def test_empty_views_may_lie_past_the_end():
    x = rl.arange(4)[4:]
    assert x.tolist() == [] and x.numpy().shape == (0,) and (x + 1).shape == (0,)
    assert rl.zeros(0, 3)[:, 2].tolist() == []


def test_printing_passes_on_what_autograd_knows():
    x = rl.ones(2, requires_grad=True)
    assert repr(x) == "tensor([1., 1.], requires_grad=True)"
    assert repr(x * 2) == "tensor([2., 2.], grad_fn=<MulBackward0>)"
    assert repr(rl.nn.Parameter(rl.ones(1))) == "Parameter containing:\ntensor([1.], requires_grad=True)"
    assert repr(rl.ones(2, device="meta", requires_grad=True)) == "tensor(..., device='meta', size=(2,), requires_grad=True)"
    assert repr(rl.ones(2, device="meta", dtype=rl.float16)) == "tensor(..., device='meta', size=(2,), dtype=torch.float16)"
    try:
        rl.set_default_dtype(rl.float64)
        assert repr(rl.ones(1, device="meta")) == "tensor(..., device='meta', size=(1,))"
        assert repr(rl.ones(1)) == "tensor([1.], dtype=torch.float64)".replace(", dtype=torch.float64", "")
    finally:
        rl.set_default_dtype(rl.float32)


def test_numbers_format_like_numbers():
    assert f"{rl.tensor(3.14159):.2f}" == "3.14" and f"{rl.tensor(7)}" == "7"
    assert f"{rl.ones(1)}" == "tensor([1.])"
    with pytest.raises(TypeError, match="unsupported format string"):
        f"{rl.ones(2):.2f}"


def test_meta_tensors_have_no_values():
    x = rl.ones(2, 3, device="meta")
    assert x.shape == (2, 3) and x.is_meta and x.data_ptr() == 0
    for read in (x.tolist, x.numpy, lambda: np.asarray(x)):
        with pytest.raises((TypeError, NotImplementedError), match="Cannot copy out of meta tensor|can't convert meta device"):
            read()
    with pytest.raises(RuntimeError, match="cannot be called on meta tensors"):
        x.sum().item()


def test_len_and_iteration():
    assert len(rl.zeros(3, 2)) == 3 and [row.shape for row in rl.zeros(2, 3)] == [(3,), (3,)]
    for use, message in ((len, "len() of a 0-d tensor"), (list, "iteration over a 0-d tensor")):
        with pytest.raises(TypeError, match=message.replace("(", r"\(").replace(")", r"\)")):
            use(rl.tensor(1))
