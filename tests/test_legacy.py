"""Names from torch's first years: tensor types, `range`, `unravel_index`, methods as functions."""

from __future__ import annotations

import pytest

import rushlight as rl


def test_tensor_types_make_tensors_and_recognise_them():
    assert rl.FloatTensor(2, 3).shape == (2, 3) and rl.FloatTensor().shape == (0,)
    made = rl.LongTensor([1, 2])
    assert made.dtype is rl.int64 and made.tolist() == [1, 2]
    assert isinstance(made, rl.LongTensor) and not isinstance(made, rl.FloatTensor) and not isinstance(3, rl.LongTensor)
    assert rl.ones(2).type(rl.IntTensor).dtype is rl.int32


def test_the_default_type():
    try:
        rl.set_default_tensor_type("torch.DoubleTensor")
        assert rl.ones(1).dtype is rl.float64
    finally:
        rl.set_default_tensor_type(rl.FloatTensor)
    with pytest.raises(TypeError, match="floating"):
        rl.set_default_tensor_type(rl.LongTensor)


def test_range_includes_its_end():
    assert rl.range(0, 4).tolist() == [0, 1, 2, 3, 4] and rl.range(1, 2, 0.5).tolist() == [1, 1.5, 2]
    assert rl.range(3, 1, -1, dtype=rl.int64).tolist() == [3, 2, 1]
    with pytest.raises(RuntimeError, match="inconsistent with step sign"):
        rl.range(1, 0)


def test_unravel_index():
    rows, columns = rl.unravel_index(rl.tensor([5, 7]), (2, 4))
    assert rows.tolist() == [1, 1] and columns.tolist() == [1, 3]
    with pytest.raises(TypeError, match="integer dtype"):
        rl.unravel_index(rl.ones(2), (2,))


def test_methods_as_functions():
    x = rl.ones(2, 2, requires_grad=True) * 2
    assert rl.is_same_size(x, rl.zeros(2, 2)) and rl.is_signed(x) and not rl.is_inference(x) and not rl.is_distributed(x)
    assert not rl.detach_(x).requires_grad and rl.from_dlpack(x).tolist() == x.tolist()
    assert rl.as_strided_(x, (4,), (1,)).shape == (4,)


def test_methods_and_inner_operators_are_no_functions():
    hidden = ("add_", "copy_", "view", "to", "slice", "gelu", "linear", "nll_loss_backward", "upsample_nearest2d")
    assert not [name for name in hidden if hasattr(rl, name)]
    assert rl.ops.aten.add_(rl.ones(1), 1).item() == 2 and rl.ones(1).add_(1).item() == 2
