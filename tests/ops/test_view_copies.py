"""Copies and scatter forms of views, rearrangements, stacking and grids: values, fresh memory, gradients."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as rl
from rushlight.autograd import gradcheck

aten = rl.ops.aten

# The call and the same in NumPy, of a tensor of shape (2, 3, 4)
COPIES = {
    "alias": (lambda x: aten.alias_copy(x), lambda a: a),
    "as_strided": (lambda x: rl.as_strided_copy(x, (3,), (4,), 1), lambda a: a.ravel()[1:12:4]),
    "diagonal": (lambda x: rl.diagonal_copy(x, 1, 1, 2), lambda a: a.diagonal(1, 1, 2)),
    "expand": (lambda x: rl.expand_copy(x, (2, 2, 3, 4)), lambda a: np.stack([a, a])),
    "narrow": (lambda x: x.narrow_copy(2, -3, 2), lambda a: a[:, :, 1:3]),
    "permute": (lambda x: rl.permute_copy(x, (2, 0, 1)), lambda a: a.transpose(2, 0, 1)),
    "select": (lambda x: rl.select_copy(x, 1, 2), lambda a: a[:, 2]),
    "slice": (lambda x: rl.slice_copy(x, 2, 1, 4, 2), lambda a: a[:, :, 1:4:2]),
    "split": (lambda x: rl.split_copy(x, 2, 1)[1], lambda a: a[:, 2:]),
    "squeeze": (lambda x: rl.squeeze_copy(x[:1], 0), lambda a: a[0]),
    "transpose": (lambda x: rl.transpose_copy(x, 0, 2), lambda a: a.swapaxes(0, 2)),
    "unbind": (lambda x: rl.unbind_copy(x, 2)[3], lambda a: a[:, :, 3]),
    "unfold": (lambda x: rl.unfold_copy(x, 2, 2, 2), lambda a: a.reshape(2, 3, 2, 2)),
    "unsqueeze": (lambda x: rl.unsqueeze_copy(x, -1), lambda a: a[..., None]),
    "view": (lambda x: rl.view_copy(x, (6, 4)), lambda a: a.reshape(6, 4)),
    "flip": (lambda x: x.flip(0, 2), lambda a: a[::-1, :, ::-1]),
    "fliplr": (lambda x: x.fliplr(), lambda a: np.fliplr(a)),
    "flipud": (lambda x: x.flipud(), lambda a: np.flipud(a)),
    "rot90": (lambda x: x.rot90(3, (1, 2)), lambda a: np.rot90(a, 3, (1, 2))),
    "roll": (lambda x: x.roll((1, -2), (0, 2)), lambda a: np.roll(a, (1, -2), (0, 2))),
    "diag_embed": (lambda x: x.diag_embed(1)[0, 0], lambda a: np.diag(a[0, 0], 1)),
    "diag": (lambda x: x[0].diag(1), lambda a: np.diag(a[0], 1)),
    "diagflat": (lambda x: x[0].diagflat(-1), lambda a: np.diagflat(a[0], -1)),
    "take": (lambda x: x.take(rl.tensor([[0, -1], [5, 5]])), lambda a: a.take([[0, -1], [5, 5]])),
    "put": (lambda x: x.put(rl.tensor([1, 1]), x[0, 0, :2], True), lambda a: _put(a)),
    "column_stack": (lambda x: rl.column_stack((x[0, 0], x[0].t())), lambda a: np.column_stack((a[0, 0], a[0].T))),
    "dstack": (lambda x: rl.dstack((x[0], x[1])), lambda a: np.dstack((a[0], a[1]))),
    "hstack": (lambda x: rl.hstack((x[0, 0], x[1, 1])), lambda a: np.hstack((a[0, 0], a[1, 1]))),
    "vstack": (lambda x: rl.vstack((x[0, 0], x[1])), lambda a: np.vstack((a[0, 0], a[1]))),
    "chunk_cat": (lambda x: aten._chunk_cat([x, x[:, :1]], 1, 2), lambda a: _chunk_cat(a)),
    "fill": (lambda x: rl.fill(x, 3.0), lambda a: np.full_like(a, 3)),
    "select_scatter": (lambda x: x.select_scatter(x[:, 0] * 2, 1, 2), lambda a: _written(a, np.s_[:, 2], a[:, 0] * 2)),
    "slice_scatter": (
        lambda x: x.slice_scatter(x[:, :, :2] * 2, 2, 0, 4, 2), lambda a: _written(a, np.s_[:, :, ::2], a[:, :, :2] * 2)
    ),
    "as_strided_scatter": (
        lambda x: x.as_strided_scatter(x[0, :, 0], (3,), (5,), 2),
        lambda a: _written(a.reshape(-1), np.s_[2:15:5], a[0, :, 0]).reshape(2, 3, 4),
    ),
    "diagonal_scatter": (
        lambda x: x[0].diagonal_scatter(x[1, 0, :3], 1), lambda a: _with_diagonal(a[0], a[1, 0, :3])
    ),
    "meshgrid": (lambda x: rl.meshgrid(x[0, 0], x[0, 1], indexing="xy")[1], lambda a: np.meshgrid(a[0, 0], a[0, 1])[1].copy()),
}  # fmt: skip


def _put(a: np.ndarray) -> np.ndarray:
    made = a.copy()
    np.add.at(made.reshape(-1), [1, 1], a[0, 0, :2])
    return made


def _written(a: np.ndarray, index, value: np.ndarray) -> np.ndarray:
    made = a.copy()
    made[index] = value
    return made


def _with_diagonal(a: np.ndarray, values: np.ndarray) -> np.ndarray:
    made = a.copy()
    made[range(3), range(1, 4)] = values
    return made


def _chunk_cat(a: np.ndarray) -> np.ndarray:
    padded = np.concatenate([a, np.zeros_like(a[:, :1])], 1).reshape(2, 2, 8)
    one = np.concatenate([a[:, :1], np.zeros_like(a[:, :1])], 1).reshape(2, 2, 4)
    return np.concatenate([padded, one], 2)


@pytest.mark.parametrize("name", COPIES)
def test_copies_have_their_own_memory(name):
    call, in_numpy = COPIES[name]
    x = rl.arange(24.0, dtype=rl.float64).view(2, 3, 4)
    made = call(x)
    np.testing.assert_array_equal(made.numpy(), in_numpy(x.numpy()))
    assert name == "meshgrid" or made.untyped_storage() != x.untyped_storage()


@pytest.mark.parametrize("name", COPIES)
def test_gradients(name):
    x = rl.rand(2, 3, 4, dtype=rl.float64, requires_grad=True)
    assert gradcheck(COPIES[name][0], (x,))


def test_flips_of_a_number():
    x = rl.tensor(2.0)
    assert x.flip(0).item() == x.flip(-1).item() == x.flip(()).item() == 2 and x.flip(0).data_ptr() != x.data_ptr()
    for dims, error in (((1,), IndexError), ((0, -1), RuntimeError)):
        with pytest.raises(error):
            x.flip(dims)


def test_views_of_a_least_rank():
    x = rl.tensor(1.0)
    assert rl.atleast_1d(x).shape == (1,) and rl.atleast_2d(rl.ones(3)).shape == (1, 3)
    assert [tuple(t.shape) for t in rl.atleast_3d(x, rl.ones(2), rl.ones(2, 3))] == [(1, 1, 1), (1, 2, 1), (2, 3, 1)]
    whole = rl.ones(2, 3, 4)
    assert rl.atleast_3d(whole) is whole and isinstance(rl.atleast_1d([x, x]), tuple)


def test_grids_of_numbers():
    np.testing.assert_allclose(rl.logspace(0, 2, 5).numpy(), np.logspace(0, 2, 5), rtol=1e-6)
    np.testing.assert_allclose(rl.logspace(rl.tensor(-1.0), 1, 3, base=2).numpy(), [0.5, 1, 2])
    np.testing.assert_allclose(rl.linspace(rl.tensor(0.0), rl.tensor(1.0), 5).numpy(), np.linspace(0, 1, 5))
    assert rl.linspace(0, 5, 3, dtype=rl.int64).tolist() == [0, 2, 5]
    assert rl.tril_indices(2, 3).tolist() == np.stack(np.tril_indices(2, 0, 3)).tolist()
    assert rl.triu_indices(3, 3, 1, dtype=rl.int32).dtype is rl.int32
    assert rl.empty_permuted((2, 3, 4), (1, 2, 0)).stride() == (1, 8, 2)
    assert rl.nonzero_static(rl.tensor([0, 3, 4]), size=3, fill_value=7).tolist() == [[1], [2], [7]]
    assert rl.nonzero_static(rl.tensor([0, 3, 4]), size=1).tolist() == [[1]]
    assert rl.zeros(7, 2).fill_diagonal_(1, wrap=True)[:, 0].tolist() == [1, 0, 0, 1, 0, 0, 1]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: rl.ones(3).take(rl.tensor([3])), IndexError, "out of range: tried to access index 3 on a tensor of 3 elements"),
        (lambda: rl.ones(3).take(rl.tensor([1.0])), RuntimeError, "Expected a long tensor for index, but got Float"),
        (lambda: rl.ones(3).put_(rl.tensor([1]), rl.ones(2)), RuntimeError, "source.numel"),
        (lambda: rl.ones(3).put_(rl.tensor([1]), rl.ones(1).long()), RuntimeError, "expected to have the same dtype"),
        (lambda: rl.linspace(0, 1, -1), RuntimeError, "number of steps must be non-negative"),
        (lambda: rl.linspace(rl.ones(1), 1, 2), RuntimeError, "only supports 0-dimensional start and end tensors"),
        (lambda: rl.meshgrid(rl.ones(2, 2), indexing="ij"), RuntimeError, "Expected 0D or 1D tensor"),
        (lambda: rl.meshgrid(rl.ones(2), indexing="ji"), RuntimeError, 'indexing must be one of "xy" or "ij"'),
        (lambda: rl.ones(3).diag_embed(0, 1, 1), RuntimeError, "diagonal dimensions cannot be identical 1, 1"),
        (lambda: rl.ones(2, 2, 2).diag(), RuntimeError, "1D or 2D"),
        (lambda: rl.ones(3).fliplr(), RuntimeError, "Input must be >= 2-d"),
        (lambda: rl.ones(2, 2).rot90(1, (0, 2, 1)), RuntimeError, "expected total rotation dims"),
        (lambda: rl.ones(2, 2).select_scatter(rl.ones(3), 0, 0), RuntimeError, "src to have a size equal"),
        (lambda: rl.empty_permuted((2, 3), (0, 0)), RuntimeError, "Duplicate dim not allowed"),
        (lambda: rl.hstack([]), RuntimeError, "expects a non-empty TensorList"),
        (lambda: aten._chunk_cat([rl.ones(2)], 0, 0), RuntimeError, "positive num_chunks"),
        (lambda: rl.nonzero_static(rl.ones(2), size=-1), RuntimeError, "non-negative integer"),
        (lambda: rl.ones(3).fill_diagonal_(1), RuntimeError, "dimensions must larger than 1"),
    ],
)  # fmt: skip
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
