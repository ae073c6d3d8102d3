"""Tensors whose sizes, strides, dtype or memory change in place, and histories of views of another dtype."""

from __future__ import annotations

import pytest

import rushlight as rl


def test_resize_shares_a_storage_that_grows():
    z = rl.arange(4.0)
    view = z[1:]
    view.resize_(6)
    assert view._is_view() and view.storage_offset() == 1 and view._version == z._version == 1
    assert z.untyped_storage().nbytes() == 28
    z[2] = 9
    assert view[:3].tolist() == [1, 9, 3]
    assert z.resize_(2, 2).tolist() == [[0, 1], [9, 3]] and z.resize_(2, 2)._version == z._version
    t = rl.zeros(2, 3).t()
    assert t.resize_(3, 2).stride() == (1, 3) and t.resize_(2, 3).stride() == (3, 1)
    last = rl.zeros(1, 2, 3, 4).to(memory_format=rl.channels_last)
    assert rl.zeros(2).resize_as_(last).stride() == (24, 12, 4, 1)
    assert rl.resize_as_(rl.zeros(2), last, memory_format=rl.preserve_format).stride() == (24, 1, 8, 2)


def test_set_points_at_other_memory():
    other = rl.arange(6.0)
    z = rl.zeros(4)
    z.set_(other, 1, (2, 2), (2, 1))
    assert z.tolist() == [[1, 2], [3, 4]] and z._version == 1
    other[1] = 7
    assert z[0, 0] == 7
    assert z.set_(other.untyped_storage()).shape == (6,) and z.set_().shape == (0,)


def test_views_in_place():
    z = rl.zeros(1, 2, 3)
    assert z.transpose_(1, 2).shape == (1, 3, 2) and z.squeeze_(0).shape == (3, 2) and z.t_().shape == (2, 3)
    assert z.unsqueeze_(-1).shape == (2, 3, 1) and z.swapaxes_(0, 2).shape == (1, 3, 2) and z._version == 5
    assert z.as_strided_((2,), (3,)).stride() == (3,)
    x = rl.ones(2, 3, requires_grad=True)
    y = x * 1
    view = y[0]
    y.t_()
    view.unsqueeze_(0)
    view.mul_(2)
    (y * rl.arange(6.0).view(3, 2)).sum().backward()
    assert x.grad.tolist() == [[0, 4, 8], [1, 3, 5]]


def test_views_of_another_dtype():
    x = rl.tensor([1.0, 2.0, 3.0, 4.0])
    bits = x.view(rl.int32)
    assert bits[0].item() == 0x3F800000 and x.view(rl.float64).shape == (2,) and x.view(rl.uint8).shape == (16,)
    bits[0] = 0
    assert x[0] == 0 and x._version == 1
    y = rl.ones(2, 4, requires_grad=True) * 1
    assert not y.view(rl.float64).requires_grad and not y.view(rl.int32)._is_view()


def test_writes_through_real_views_of_complex_tensors():
    x = rl.ones(2, dtype=rl.complex64, requires_grad=True)
    y = x * 1
    imaginary = y.imag
    y.real.mul_(3)
    (y.real.sum() + 2 * imaginary.sum()).backward()
    assert x.grad.tolist() == [3 + 2j, 3 + 2j]
    z = rl.ones(2, 2, requires_grad=True)
    w = z * 1
    rl.view_as_complex(w).mul_(2j)
    w.sum().backward()
    assert z.grad.tolist() == [[2, -2], [2, -2]]


def test_gradients_of_overlapping_sources():
    x = rl.ones(3, requires_grad=True)
    (x * 1).expand(4, 3).as_strided((3,), (1,)).sum().backward()
    assert x.grad.tolist() == [1, 1, 1]
    x.grad = None
    (x * 1).unfold(0, 2, 1).as_strided((2, 2), (1, 1)).sum().backward()
    assert x.grad.tolist() == [1, 2, 1]
    x.grad = None
    (x * 1).expand(4, 3).diagonal().sum().backward()
    assert x.grad.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda z: z[1:].add_(z[:-1]), "some elements of the input tensor and the written-to tensor refer to a single memory"),
        (lambda z: z.view(2, 2).copy_(z.view(2, 2).t()), "some elements of the input tensor"),
        (lambda z: z.mul_(z[1]), "some elements of the input tensor"),
        (lambda z: z.index_add_(0, rl.tensor([1, 2]), z[:2]), "some elements of the input tensor"),
        (lambda z: z[:1].expand(3).add_(1), "more than one element of the written-to tensor"),
    ],
)
def test_writes_that_read_what_they_write(write, message):
    with pytest.raises(RuntimeError, match=message):
        write(rl.arange(4.0))


def test_writes_that_may_read_what_they_write():
    z = rl.arange(4.0)
    assert z[1:].mul_(z[1:]).tolist() == [1, 4, 9] and z.add_(z.view(4)).tolist() == [0, 2, 8, 18]
    assert z[:1].expand(3).fill_(5).tolist() == [5, 5, 5] and z.view(2, 2)[0].add_(z.view(2, 2)[1]).tolist() == [13, 20]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rl.ones(3, requires_grad=True).resize_(2), "cannot resize variables that require grad"),
        (lambda: rl.ones(3).set_(rl.ones(3).int()), "Could not set tensor of type int"),
        (lambda: rl.ones(3, requires_grad=True).set_(rl.ones(2)), "a leaf Variable that requires grad"),
        (lambda: rl.ones(2, 3, requires_grad=True).t_(), "a leaf Variable that requires grad"),
        (lambda: rl.ones(3).view(rl.float64), r"self.size\(-1\) must be divisible by 2 to view Float as Double"),
        (lambda: rl.ones(4)[1:3].view(rl.float64), r"self.storage_offset\(\) must be divisible by 2"),
        (lambda: rl.ones(4, 4).t().view(rl.int16), r"self.stride\(-1\) must be 1 to view Float as Short"),
        (lambda: rl.ones(()).view(rl.int16), r"self.dim\(\) cannot be 0 to view Float as Short"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(RuntimeError, match=message):
        call()


def test_inference_tensors_are_not_reshaped_in_place_outside():
    with rl.inference_mode():
        x = rl.ones(2, 3)
        x.t_()
        rl.ones(2, requires_grad=True).resize_(3)
    for write in (rl.Tensor.t_, lambda x: x.resize_(2), lambda x: x.set_(rl.ones(2))):
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
            write(x)
