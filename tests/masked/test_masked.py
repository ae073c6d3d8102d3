"""Reductions and normalisations over chosen elements, against the same over those elements alone."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as rl
from rushlight import masked
from rushlight.autograd import gradcheck

VALUES = np.random.default_rng(3).standard_normal((3, 5))
MASK = np.array([[1, 0, 1, 1, 0], [0, 1, 0, 0, 1], [1, 1, 1, 0, 0]], bool)
x, mask = rl.from_numpy(VALUES), rl.from_numpy(MASK)
ROWS = [row[chosen] for row, chosen in zip(VALUES, MASK, strict=True)]
NUMPY = {
    "sum": np.sum, "prod": np.prod, "amax": np.max, "amin": np.min, "mean": np.mean,
    "median": lambda row: np.sort(row)[(len(row) - 1) // 2],
    "var": lambda row: np.var(row, ddof=1), "std": lambda row: np.std(row, ddof=1),
    "logsumexp": lambda row: np.log(np.exp(row).sum()),
}  # fmt: skip


@pytest.mark.parametrize("name", NUMPY)
def test_reductions(name):
    got = getattr(masked, name)(x, 1, mask=mask)
    np.testing.assert_allclose(got.numpy(), [NUMPY[name](row) for row in ROWS])
    assert getattr(masked, name)(x, 1, keepdim=True, mask=mask).shape == (3, 1)
    if name != "median":
        np.testing.assert_allclose(getattr(masked, name)(x, mask=mask).item(), NUMPY[name](VALUES[MASK]))
        np.testing.assert_allclose(getattr(masked, name)(x, (0, 1)).item(), NUMPY[name](VALUES.reshape(-1)))


@pytest.mark.parametrize(
    "name, value",
    [("sum", 0), ("prod", 1), ("amax", -np.inf), ("amin", np.inf), ("mean", np.nan), ("median", np.nan), ("logsumexp", -np.inf)],
)
def test_rows_without_elements(name, value):
    nothing = rl.zeros(2, 3, dtype=rl.bool)
    np.testing.assert_equal(getattr(masked, name)(rl.ones(2, 3), 1, mask=nothing).numpy(), np.full(2, value, np.float32))


def test_positions_and_norms():
    assert masked.argmax(x, 1, mask=mask).tolist() == [np.where(m, v, -np.inf).argmax() for v, m in zip(VALUES, MASK, strict=True)]
    assert masked.argmin(x, mask=mask, dtype=rl.int64).item() == np.where(MASK, VALUES, np.inf).argmin()
    for order in (1, 2, 3.0, np.inf, -np.inf):
        want = [np.linalg.norm(row, order) for row in ROWS]
        np.testing.assert_allclose(masked.norm(x, order, 1, mask=mask).numpy(), want)


def test_running_sums_and_products():
    np.testing.assert_allclose(masked.cumsum(x, 1, mask=mask).numpy(), np.cumsum(np.where(MASK, VALUES, 0), 1))
    np.testing.assert_allclose(masked.cumprod(x, 1, mask=mask).numpy(), np.cumprod(np.where(MASK, VALUES, 1), 1))


def test_softmax_and_its_like():
    weights = np.where(MASK, np.exp(VALUES), 0)
    want = weights / weights.sum(1, keepdims=True)
    np.testing.assert_allclose(masked.softmax(x, 1, mask=mask).numpy(), want)
    np.testing.assert_allclose(masked.softmin(-x, 1, mask=mask).numpy(), want)
    np.testing.assert_allclose(masked.log_softmax(x, 1, mask=mask).exp().numpy(), want)
    unit = masked.normalize(x, 2.0, 1, mask=mask).numpy()
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1)
    assert not unit[~MASK].any()
    both = masked.logaddexp(x, x, input_mask=mask, other_mask=~mask)
    np.testing.assert_allclose(both.numpy(), VALUES)


def test_gradients_reach_chosen_elements_only():
    value = x.detach().clone().requires_grad_()
    assert gradcheck(lambda v: (masked.sum(v, 1, mask=mask), masked.var(v, mask=mask), masked.softmax(v, 1, mask=mask)), (value,))
    masked.mean(value, mask=mask).backward()
    np.testing.assert_allclose(value.grad.numpy(), MASK / MASK.sum())


def test_masks_that_do_not_fit():
    with pytest.raises(IndexError, match="dimensionality higher"):
        masked.sum(x, mask=rl.ones(1, 3, 5, dtype=rl.bool))
    with pytest.raises(RuntimeError, match="expanded size"):
        masked.sum(x, mask=rl.ones(2, 5, dtype=rl.bool))
    with pytest.raises(ValueError, match="Could not infer output dtype"):
        masked.mean(rl.tensor([1, 2]))
    with pytest.raises(ValueError, match="fully masked out"):
        masked.median(rl.tensor([[1, 2]]), mask=rl.tensor([[False, False]]))
    with pytest.raises(NotImplementedError, match="identity of amax"):
        masked.amax(rl.tensor([True]), mask=rl.tensor([True]))


def test_products_check_their_dimensions():
    values = rl.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert masked.prod(values, dim=[]).tolist() == values.tolist()
    assert masked.prod(values).item() == 24 and masked.prod(values, dim=(0, -1)).item() == 24
    with pytest.raises(IndexError, match="Dimension out of range"):
        masked.prod(values, dim=2)
    with pytest.raises(RuntimeError, match="multiple times"):
        masked.prod(values, dim=(0, 0))
