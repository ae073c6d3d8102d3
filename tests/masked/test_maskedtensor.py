"""Masked tensors: values, masks, texts and gradients are torch's; what has no meaning is refused."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import rushlight as rl

MASK = [[True, False, True], [False, False, True]]


def example(library=rl, **options):
    return library.masked.masked_tensor(library.arange(6.0).reshape(2, 3), library.tensor(MASK), **options)


def test_a_masked_tensor_has_data_and_a_mask():
    x = example()
    assert rl.masked.is_masked_tensor(x) and isinstance(x, rl.Tensor) and x.shape == (2, 3)
    assert x.get_data().tolist() == [[0, 1, 2], [3, 4, 5]] and x.get_mask().tolist() == MASK
    assert x.to_tensor(-1).tolist() == [[0, -1, 2], [-1, -1, 5]] and x.double().dtype is rl.float64
    for made in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.clone()):
        made.get_data().zero_()
        assert rl.masked.is_masked_tensor(made) and x.get_data()[0, 1] == 1


def test_gradients_are_those_of_what_is_there():
    x = example(requires_grad=True)
    (x * x).sum().backward()
    assert x.grad.get_data().tolist() == [[0, 0, 4], [0, 0, 10]] and x.grad.get_mask().tolist() == MASK
    data = rl.ones(2, 3, requires_grad=True)
    rl.masked.as_masked_tensor(data, rl.tensor(MASK)).sum().backward()
    assert data.grad.tolist() == [[1, 0, 1], [0, 0, 1]]


def test_what_does_not_fit_is_refused():
    data, mask = rl.ones(2, 3), rl.tensor(MASK)
    for wrong, kind in ((mask[0], ValueError), (mask[:, :2], ValueError), (data, TypeError)):
        with pytest.raises(kind):
            rl.masked.masked_tensor(data, wrong)
    with pytest.raises(ValueError, match="masks must match"):
        example() + rl.masked.masked_tensor(data, ~mask)
    with pytest.raises(NotImplementedError, match="get_data"):
        example().nonzero()


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
class TestOracle:
    CALLS = (
        lambda t, x: x + x, lambda t, x: 2 * x - 1, lambda t, x: -x, lambda t, x: x > 1, lambda t, x: t.sin(x), lambda t, x: x[0],
        lambda t, x: x.sum(), lambda t, x: x.sum(0), lambda t, x: x.mean(1), lambda t, x: x.amax(1), lambda t, x: x.prod(),
        lambda t, x: x.argmax(1), lambda t, x: x.std(), lambda t, x: x.softmax(1), lambda t, x: x.t(), lambda t, x: x.reshape(3, 2),
        lambda t, x: x.unsqueeze(0), lambda t, x: t.cat([x, x]), lambda t, x: t.stack([x, x]), lambda t, x: x.expand(2, 2, 3),
        lambda t, x: t.masked.masked_tensor(t.tensor(2.0), t.tensor(False)), lambda t, x: x.to(t.int64),
        lambda t, x: t.where(x.get_mask(), x, t.masked.masked_tensor(x.get_data(), ~x.get_mask())),
    )  # fmt: skip

    @pytest.mark.parametrize("place", range(len(CALLS)))
    def test_texts_of_results(self, place):
        torch = pytest.importorskip("torch")
        assert repr(self.CALLS[place](rl, example())) == repr(self.CALLS[place](torch, example(torch)))

    def test_values_under_the_mask(self):
        torch = pytest.importorskip("torch")
        for call in (lambda x: x.softmax(0), lambda x: x.softmax(1), lambda x: x.amin(0)):
            mine, its = (call(example(library)) for library in (rl, torch))
            assert mine.get_mask().tolist() == its.get_mask().tolist()
            np.testing.assert_allclose(mine.to_tensor(0).numpy(), its.to_tensor(0).numpy(), atol=1e-6)


def test_gradients_of_masked_elements_are_zero():
    y = rl.tensor([0.0, 4.0], requires_grad=True)
    rl.masked.as_masked_tensor(y, rl.tensor([False, True])).sqrt().sum().backward()
    assert y.grad.tolist() == [0.0, 0.25]
