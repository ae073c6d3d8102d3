"""Cutting a tensor into views: what the parts are, what they share, and which of them may be written to."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as rl

CUTS = {
    "unbind": (lambda x: x.unbind(1), lambda a: [a[:, i] for i in range(4)]),
    "split": (lambda x: x.split(3, 1), lambda a: [a[:, :3], a[:, 3:]]),
    "split_sizes": (lambda x: x.split([1, 0, 3], 1), lambda a: [a[:, :1], a[:, 1:1], a[:, 1:]]),
    "split_with_sizes": (lambda x: x.split_with_sizes((2, 4)), lambda a: [a[:2], a[2:]]),
    "chunk": (lambda x: x.chunk(4), lambda a: [a[:2], a[2:4], a[4:]]),
    "tensor_split": (lambda x: x.tensor_split(4), lambda a: np.array_split(a, 4)),
    "tensor_split_indices": (lambda x: x.tensor_split((2, 9, -1)), lambda a: [a[:2], a[2:], a[9:-1], a[-1:]]),
    "tensor_split_tensor": (lambda x: x.tensor_split(rl.tensor([1, 3]), 1), lambda a: np.split(a, [1, 3], 1)),
    "tensor_split_number": (lambda x: x.tensor_split(rl.tensor(2)), lambda a: np.split(a, 2)),
    "hsplit": (lambda x: x.hsplit(2), lambda a: np.hsplit(a, 2)),
    "vsplit": (lambda x: x.vsplit((1, 4)), lambda a: np.vsplit(a, (1, 4))),
    "dsplit": (lambda x: x.view(2, 3, 4).dsplit(2), lambda a: np.dsplit(a.reshape(2, 3, 4), 2)),
    "unsafe_split": (lambda x: x.unsafe_split(4), lambda a: [a[:4], a[4:]]),
    "unsafe_chunk": (lambda x: x.unsafe_chunk(2, 1), lambda a: [a[:, :2], a[:, 2:]]),
}  # fmt: skip


@pytest.mark.parametrize("name", CUTS)
def test_parts_share_memory(name):
    cut, in_numpy = CUTS[name]
    x = rl.arange(24.0).view(6, 4)
    parts, expected = cut(x), in_numpy(x.numpy())
    assert isinstance(parts, tuple) and len(parts) == len(expected)
    for part, array in zip(parts, expected, strict=True):
        np.testing.assert_array_equal(part.numpy(), array)
        assert part.untyped_storage() == x.untyped_storage()
        apart = name.startswith("unsafe")
        assert part._is_view() is not apart and (part._base is None) is apart
    version = x._version
    parts[0].add_(1)
    assert x._version - version == (0 if name.startswith("unsafe") else 1)
    np.testing.assert_array_equal(parts[0].numpy(), expected[0])


@pytest.mark.parametrize("cut", [lambda x: x.unbind(), lambda x: x.split(1), lambda x: x.chunk(2), lambda x: x.split([1, 1])])
def test_views_that_come_together_are_not_written_to(cut):
    message = "is a view and is being modified inplace. This view is the output of a function that returns multiple views"
    y = rl.ones(2, 3, requires_grad=True) * 1
    parts = cut(y)
    with pytest.raises(RuntimeError, match=message):
        parts[0].mul_(2)
    with pytest.raises(RuntimeError, match=message):
        parts[1][..., 0].mul_(2)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="its base or another view of its base has been modified inplace"):
        parts[0] * 2
    with rl.no_grad():
        parts[0].mul_(2)


def test_parts_of_tensor_split_are_written_to():
    x = rl.ones(4, requires_grad=True)
    y = x * 1
    first, second = y.tensor_split(2)
    first.mul_(3)
    (y.sum() + second.sum()).backward()
    assert x.grad.tolist() == [3, 3, 2, 2]
    x.grad = None
    pieces = (x * 1).unsafe_chunk(2)
    pieces[0].mul_(5)
    (pieces[0].sum() + pieces[1].sum()).backward()
    assert x.grad.tolist() == [5, 5, 1, 1]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: rl.ones(()).unbind(), IndexError, "Dimension specified as 0 but tensor has no dimensions"),
        (lambda: rl.ones(()).split(1), RuntimeError, "split expects at least a 1-dimensional tensor"),
        (lambda: rl.ones(()).chunk(1), RuntimeError, "chunk expects at least a 1-dimensional tensor"),
        (lambda: rl.ones(3).split(0), RuntimeError, "split_size can only be 0 if dimension size is 0"),
        (lambda: rl.ones(3).split([-1, 4]), RuntimeError, "only non-negative entries"),
        (lambda: rl.ones(3).tensor_split(0), RuntimeError, "number of sections must be larger than 0"),
        (lambda: rl.ones(3).tensor_split(rl.tensor([1.0])), RuntimeError, "to have dtype of long, but got Float"),
        (lambda: rl.ones(3).tensor_split(rl.ones(1, 1).long()), RuntimeError, "zero-dimensional or one-dimensional tensor"),
        (lambda: rl.ones(2, 5).hsplit(2), RuntimeError, "size of the dimension 5 is not divisible by the split_size 2"),
        (lambda: rl.ones(5).vsplit(1), RuntimeError, "torch.vsplit requires a tensor with at least 2 dimension"),
        (lambda: rl.ones(5, 5).dsplit((1,)), RuntimeError, "torch.dsplit requires a tensor with at least 3 dimension"),
    ],
)  # fmt: skip
def test_impossible_cuts_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
