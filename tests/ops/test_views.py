"""Views: they share memory and version counter with their base, and read what NumPy's views read."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as rl

# name: view of a 3-dimensional tensor of shape (2, 3, 4), and the same in NumPy
VIEWS = {
    "select": (lambda x: x.select(1, -1), lambda a: a[:, -1]),
    "slice": (lambda x: x[:, 1:, ::2], lambda a: a[:, 1:, ::2]),
    "narrow": (lambda x: x.narrow(2, 1, 2), lambda a: a[:, :, 1:3]),
    "view": (lambda x: x.view(4, -1), lambda a: a.reshape(4, 6)),
    "reshape": (lambda x: x.reshape(3, 8), lambda a: a.reshape(3, 8)),
    "flatten": (lambda x: x.flatten(1), lambda a: a.reshape(2, 12)),
    "unflatten": (lambda x: x.unflatten(2, (2, -1)), lambda a: a.reshape(2, 3, 2, 2)),
    "transpose": (lambda x: x.transpose(0, -1), lambda a: a.swapaxes(0, 2)),
    "permute": (lambda x: x.permute(2, 0, 1), lambda a: a.transpose(2, 0, 1)),
    "movedim": (lambda x: x.movedim((0, 1), (2, 0)), lambda a: np.moveaxis(a, (0, 1), (2, 0))),
    "swapaxes": (lambda x: x.swapaxes(0, 1), lambda a: a.swapaxes(0, 1)),
    "unsqueeze": (lambda x: x.unsqueeze(-1), lambda a: a[..., None]),
    "squeeze": (lambda x: x.unsqueeze(0).squeeze(), lambda a: a),
    "expand": (lambda x: x.unsqueeze(0).expand(5, -1, -1, 4), lambda a: np.broadcast_to(a, (5, 2, 3, 4))),
    "expand_as": (lambda x: x[:, :1].expand_as(x), lambda a: np.broadcast_to(a[:, :1], (2, 3, 4))),
    "diagonal": (lambda x: x.diagonal(1, 1, 2), lambda a: a.diagonal(1, 1, 2)),
    "unfold": (lambda x: x.unfold(2, 2, 2), lambda a: np.stack([a[:, :, :2], a[:, :, 2:]], 2)),
    "unbind": (lambda x: x.unbind(1)[2], lambda a: a[:, 2]),
    "split": (lambda x: x.split([1, 3], 2)[1], lambda a: a[:, :, 1:]),
    "chunk": (lambda x: x.chunk(2, 1)[1], lambda a: a[:, 2:]),
    "tensor_split": (lambda x: x.tensor_split((1, 2), 2)[1], lambda a: a[:, :, 1:2]),
    "T": (lambda x: x[0].T, lambda a: a[0].T),
    "mT": (lambda x: x.mT, lambda a: a.swapaxes(1, 2)),
    "detach": (lambda x: x.detach(), lambda a: a),
    "alias": (lambda x: x[...], lambda a: a),
    "as_strided": (lambda x: x.as_strided((2, 2), (12, 5), 1), lambda a: np.array([[a.flat[1], a.flat[6]], [a.flat[13], a.flat[18]]])),
    "view_as": (lambda x: x.view_as(rl.ones(6, 4)), lambda a: a.reshape(6, 4)),
    "ravel": (lambda x: x.ravel(), lambda a: a.ravel()),
    "contiguous": (lambda x: x.contiguous(), lambda a: a),
}  # fmt: skip


@pytest.mark.parametrize("name", VIEWS)
def test_views_share_memory_and_versions(name):
    view, in_numpy = VIEWS[name]
    base = rl.arange(24.0).view(2, 3, 4)
    made = view(base)
    np.testing.assert_array_equal(made.numpy(), in_numpy(base.numpy()))
    assert made.untyped_storage() == base.untyped_storage() and np.shares_memory(made.numpy(), base.numpy())
    before = base._version
    made.view_as(made)[(0,) * made.dim()] = 100.0
    assert base._version == made._version == before + 1
    np.testing.assert_array_equal(made.numpy(), in_numpy(base.numpy()))
    assert (base == 100).sum().item() == 1


def test_views_remember_their_base():
    base = rl.zeros(2, 3)
    view = base[0][1:]
    assert view._is_view() and view._base is base and not base._is_view() and base._base is None
    assert not base.detach()._is_view() and not base.contiguous()._is_view()
    assert not (base + 1)._is_view() and not base.t().contiguous()._is_view()


def test_copies_are_copies():
    x = rl.arange(6).view(2, 3)
    for made in (x.t().reshape(6), x.repeat(2, 1), x.t().contiguous(), x.clone(), x[[0]], x.flip(0), x.roll(1, 0), x.tile(2)):
        assert made.untyped_storage() != x.untyped_storage()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: x.view(7), RuntimeError, r"shape '\[7\]' is invalid for input of size 6"),
        (lambda x: x.t().view(6), RuntimeError, r"view size is not compatible.*Use .reshape\(...\) instead"),
        (lambda x: x.as_strided((7,), (1,)), RuntimeError, "out of bounds for storage of size 24"),
        (lambda x: x.as_strided((2,), (1,), 5), RuntimeError, "out of bounds for storage of size 24"),
        (lambda x: x.as_strided((1 << 62, 2), (1 << 62, 1)), RuntimeError, "out of bounds"),
        (lambda x: x.as_strided((2,), (-1,)), RuntimeError, "Negative strides are not supported"),
        (lambda x: x.as_strided((2, 2), (1,)), RuntimeError, "mismatch in length of strides and shape"),
        (lambda x: x.as_strided((-2,), (1,)), RuntimeError, "must not be negative"),
        (lambda x: x.permute(0), RuntimeError, r"is not equal to len\(dims\) = 1"),
        (lambda x: x.permute(0, 0), RuntimeError, "dim 0 appears multiple times"),
        (lambda x: x.permute(0, 2), IndexError, "Dimension out of range"),
        (lambda x: x.transpose(0, 2), IndexError, "Dimension out of range"),
        (lambda x: x.select(0, 2), IndexError, r"select\(\): index 2 out of range for tensor of size \[2, 3\] at dimension 0"),
        (lambda x: x.narrow(0, 1, 2), RuntimeError, r"start \(1\) \+ length \(2\) exceeds dimension size \(2\)"),
        (lambda x: x.narrow(0, 3, 0), IndexError, r"expected to be in range of \[-2, 2\], but got 3"),
        (lambda x: x.narrow(0, 0, -1), RuntimeError, "length must be non-negative"),
        (lambda x: x.unsqueeze(3), IndexError, r"expected to be in range of \[-3, 2\], but got 3"),
        (lambda x: x.squeeze(2), IndexError, "Dimension out of range"),
        (lambda x: x.expand(2, 4), RuntimeError, r"expanded size of the tensor \(4\) must match the existing size \(3\)"),
        (lambda x: x.split(-1), RuntimeError, "split expects split_size be non-negative"),
        (lambda x: x.split([1, 3]), RuntimeError, "expects split_sizes to sum exactly to 2"),
        (lambda x: x.chunk(0), RuntimeError, "chunk expects `chunks` to be greater than 0"),
        (lambda x: x.diagonal(0, 1, 1), RuntimeError, "diagonal dimensions cannot be identical"),
        (lambda x: x.unfold(0, 3, 1), RuntimeError, "maximum size for tensor at dimension 0 is 2 but size is 3"),
        (lambda x: x.unfold(0, 1, 0), RuntimeError, "step is 0 but must be > 0"),
        (lambda x: x.unflatten(1, (2, 2)), RuntimeError, "don't multiply up to the size of dim 1"),
        (lambda x: x.flatten(1, 0), RuntimeError, "start_dim cannot come after end_dim"),
        (lambda x: x.unsqueeze(0).t(), RuntimeError, r"t\(\) expects a tensor with <= 2 dimensions, but self is 3D"),
        (lambda x: x[0].mT, RuntimeError, "only supported on matrices or batches of matrices. Got 1-D tensor"),
        (lambda x: x.repeat(2), RuntimeError, "can not be smaller than number of dimensions"),
        (lambda x: x.roll((1, 2), 0), RuntimeError, "shifts and dimensions must align"),
    ],
)  # fmt: skip
def test_impossible_views_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call(rl.arange(6, dtype=rl.float32).view(2, 3))
