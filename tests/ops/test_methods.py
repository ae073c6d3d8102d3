"""Tensor methods and Python's operators that are more than one operator call."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rushlight as rl


def test_numbers_out_of_tensors():
    assert rl.tensor(2.5).item() == 2.5 and isinstance(rl.tensor(2).item(), int) and rl.tensor(True).item() is True
    assert float(rl.tensor([2])) == 2.0 and int(rl.tensor(2.9)) == 2 and complex(rl.tensor(1j)) == 1j
    assert rl.tensor(1.5, dtype=rl.bfloat16).item() == 1.5
    assert [10, 20, 30][rl.tensor(1)] == 20 and bool(rl.tensor([0.0])) is False
    assert rl.tensor([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]] and rl.tensor(3).tolist() == 3


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda: rl.ones(2).item(), RuntimeError, "a Tensor with 2 elements cannot be converted to Scalar"),
        (lambda: bool(rl.ones(2)), RuntimeError, "Boolean value of Tensor with more than one value is ambiguous"),
        (lambda: bool(rl.ones(0)), RuntimeError, "Boolean value of Tensor with no values is ambiguous"),
        (lambda: [1][rl.tensor(0.0)], TypeError, "only integer tensors of a single element can be converted"),
        (lambda: range(rl.ones(2, dtype=rl.int64)), TypeError, "only integer tensors of a single element"),
        (lambda: "a" in rl.ones(2), RuntimeError, r"only supports Tensor or scalar, but you passed in a <class 'str'>"),
        (lambda: ~rl.ones(2), TypeError, "only implemented on integer and Boolean-type tensors"),
        (lambda: -rl.tensor(True), RuntimeError, "on a bool tensor is not supported"),
        (lambda: rl.tensor(True) - rl.tensor(True), RuntimeError, "with two bool tensors is not supported"),
        (lambda: 1 - rl.tensor(True), RuntimeError, "with a bool tensor is not supported"),
        (lambda: rl.arange(3) // 0, RuntimeError, "ZeroDivisionError"),
        (lambda: rl.arange(3) % 0, RuntimeError, "ZeroDivisionError"),
        (lambda: rl.arange(3) ** -1, RuntimeError, "Integers to negative integer powers are not allowed"),
        (lambda: rl.ones(2) & rl.ones(2), NotImplementedError, "not implemented for 'Float'"),
        (lambda: rl.ones(2) + "a", TypeError, "unsupported operand"),
        (lambda: rl.ones(2).to(object()), TypeError, r"to\(\) received an invalid combination of arguments"),
        (lambda: rl.ones(2).type("torch.NoTensor"), ValueError, "invalid type: 'torch.NoTensor'"),
        (lambda: rl.ones(2, device="meta").to("cpu"), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
    ],
)
def test_mistakes_are_named(use, error, message):
    with pytest.raises(error, match=message):
        use()


def test_python_operators():
    x, i = rl.tensor([1.0, -2.0]), rl.tensor([7, -7])
    assert (1 - x).tolist() == [0, 3] and (2 / x).tolist() == [2, -1] and (2**x).tolist() == [2, 0.25]
    assert (i // 2).tolist() == [3, -4] and (i % 3).tolist() == [1, 2] and (20 // i).tolist() == [2, -3]
    assert (20 % i).tolist() == [6, -1] and (i & 3).tolist() == [3, 1] and (3 | i).tolist() == [7, -5]
    assert (i ^ 1).tolist() == [6, -8] and (~i).tolist() == [-8, 6] and abs(x).tolist() == [1, 2] and (+x) is x
    assert (x @ x).item() == 5 and (x > -1).tolist() == [True, False] and (x == 1).tolist() == [True, False]
    assert (x == None) is False and (x != "a") is True  # noqa: E711
    assert 1.0 in x and 3 not in x


def test_numbers_keep_their_digits():
    x = rl.ones(1, dtype=rl.float64)
    for result in (0.1 - x, x - 0.1, 0.1 * x, x + 0.1, rl.where(x > 0, 0.1, x), rl.maximum(x * 0, rl.tensor(0.1))):
        assert result.dtype is rl.float64
    assert (0.1 - x).item() == 0.1 - 1 and rl.where(x > 0, 0.1, x).item() == 0.1


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "pow", "mod", "floordiv", "and", "or", "xor"])
def test_in_place_operators_keep_the_object(name):
    x = rl.tensor([5, 6]) if name in ("and", "or", "xor", "floordiv") else rl.tensor([5.0, 6.0])
    expected = getattr(x, f"__{name}__")(3).tolist()
    y = x
    y = getattr(y, f"__i{name}__")(3)
    assert y is x and x.tolist() == expected and x._version == 1
    assert getattr(x, f"__i{name}__")("a") is NotImplemented


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda: rl.ones(2).add_(rl.ones(3, 2)), "doesn't match the broadcast shape"),
        (lambda: rl.ones(2, dtype=rl.int64).add_(1.5), "result type Float can't be cast to the desired output type Long"),
        (lambda: rl.ones(2, dtype=rl.int64).div_(2), "result type Float can't be cast to the desired output type Long"),
        (lambda: rl.ones(2, dtype=rl.bool).mul_(2), "result type Long can't be cast to the desired output type Bool"),
        (lambda: rl.ones(1).expand(3).add_(1), "more than one element of the written-to tensor"),
        (lambda: rl.ones(1).expand(3).copy_(rl.ones(3)), "more than one element of the written-to tensor"),
        (lambda: rl.ones(2).copy_(rl.ones(3)), "must match the size of tensor b|doesn't match the broadcast shape"),
    ],
)
def test_writes_that_do_not_fit(write, message):
    with pytest.raises(RuntimeError, match=message):
        write()


def test_writes_read_before_they_write():
    y = rl.arange(5.0)
    y[1:].copy_(y[:-1].clone())
    assert y.tolist() == [0, 0, 1, 2, 3]
    z = rl.tensor([-7, 7])
    assert z.div_(z, rounding_mode="trunc").tolist() == [1, 1]


def test_conversions():
    x = rl.tensor([1.7, -1.7])
    assert x.long().tolist() == x.int().tolist() == [1, -1] and x.bool().tolist() == [True, True]
    assert x.float() is x and x.double().dtype is rl.float64 and x.half().dtype is rl.float16
    assert x.to(rl.float64).dtype is x.to(dtype=float).dtype is x.to("cpu", rl.float64).dtype is rl.float64
    assert x.to(rl.ones(1, dtype=rl.int32)).dtype is x.to(other=rl.ones(1, dtype=rl.int32)).dtype is rl.int32
    assert x.to(rl.float32) is x and x.to(rl.float32, copy=True) is not x and x.to("cpu") is x and x.cpu() is x
    assert x.to("meta").is_meta and x.to("meta").shape == x.shape
    assert x.type() == "torch.FloatTensor" and x.type(rl.int32).dtype is rl.int32
    assert x.type("torch.DoubleTensor").dtype is rl.float64 and x.type_as(rl.arange(1)).dtype is rl.int64
    assert rl.tensor([math.nan, math.inf]).bool().tolist() == [True, True]


def test_new_tensors_like_this_one():
    x = rl.ones(2, dtype=rl.float64)
    assert x.new_tensor([1, 2]).dtype is rl.float64 and x.new_zeros(3).dtype is rl.float64
    assert x.new_full((2,), 7).tolist() == [7, 7] and x.new_empty(2, 3).shape == (2, 3) and x.new_ones((2,)).sum() == 2
    assert x.new_tensor([1.0], requires_grad=True).requires_grad


def test_resize_keeps_elements_where_it_can():
    x = rl.arange(6)
    address = x.data_ptr()
    assert x.resize_(2, 2).tolist() == [[0, 1], [2, 3]] and x.data_ptr() == address
    assert x.resize_((2, 4)).shape == (2, 4) and x.view(-1)[:6].tolist() == [0, 1, 2, 3, 4, 5]
    assert rl.ones(3).resize_as_(rl.ones(1, 2)).shape == (1, 2)
    with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
        rl.ones(2, requires_grad=True).resize_(3)


def test_set_moves_to_other_memory():
    x, y = rl.zeros(2), rl.arange(6, dtype=rl.float32)
    assert x.set_(y).data_ptr() == y.data_ptr() and x.tolist() == y.tolist()
    assert x.set_(y.untyped_storage(), 1, (2, 2), (2, 1)).tolist() == [[1, 2], [3, 4]]
    assert x.set_(y.storage()).tolist() == y.tolist() and x.set_().numel() == 0
    with pytest.raises(RuntimeError, match="Negative strides are not supported"):
        x.set_(y.untyped_storage(), 0, (7,), (-1,))


def test_transposes():
    x = rl.arange(6).view(1, 2, 3)
    assert x.T.shape == (3, 2, 1) and x.mT.shape == x.mH.shape == (1, 3, 2) and x[0].H.shape == (3, 2)
    with pytest.raises(RuntimeError, match="only supported on matrices"):
        x.H  # noqa: B018
    np.testing.assert_array_equal(x.mT.numpy(), x.numpy().transpose(0, 2, 1))


def test_new():
    x = rl.ones(2, dtype=rl.float64)
    assert [x.new(*sizes).shape for sizes in ((2, 3), (), (rl.Size([4]),))] == [(2, 3), (0,), (4,)]
    assert x.new([1, 2]).tolist() == [1.0, 2.0] and x.new([1]).dtype is rl.float64
    shared = x.new(x)
    shared[0] = 5
    assert x.tolist() == [5.0, 1.0]
    with pytest.raises(TypeError, match="data must be a sequence"):
        x.new(2.5)
    with pytest.raises(TypeError, match="expected a tensor of torch.float64"):
        x.new(rl.ones(1))
