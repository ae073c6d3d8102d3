"""ctc_loss against the sum over all alignments, and its gradient through log_softmax."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import rushlight as rl
from rushlight.autograd import gradcheck

aten = rl.ops.aten


def collapsed(path: tuple[int, ...], blank: int) -> list[int]:
    return [label for label, _ in itertools.groupby(path) if label != blank]


def by_enumeration(log_probs: np.ndarray, target: list[int], blank: int) -> float:
    """Minus the log-probability of all paths that give the target when repetitions and blanks are removed."""
    steps, classes = log_probs.shape
    paths = itertools.product(range(classes), repeat=steps)
    total = sum(np.exp(log_probs[range(steps), path].sum()) for path in paths if collapsed(path, blank) == target)
    return -np.log(total) if total else np.inf


def scores(steps: int, batch: int, classes: int) -> rl.Tensor:
    return rl.from_numpy(np.random.default_rng(0).standard_normal((steps, batch, classes)))


@pytest.mark.parametrize("blank", (0, 2))
def test_the_sum_over_all_alignments(blank):
    log_probs = scores(5, 4, 3).log_softmax(-1)
    labels = [label for label in range(3) if label != blank]
    targets = [[labels[0]], [labels[0], labels[0]], [labels[1], labels[0], labels[1]], []]
    lengths, steps = [len(target) for target in targets], [5, 4, 5, 3]
    flat = rl.tensor([label for target in targets for label in target])
    loss = aten.ctc_loss(log_probs, flat, steps, lengths, blank, 0)
    rows = [log_probs[:count, row].numpy() for row, count in enumerate(steps)]
    want = [by_enumeration(row, target, blank) for row, target in zip(rows, targets, strict=True)]
    np.testing.assert_allclose(loss.numpy(), want)
    padded = rl.tensor([target + [labels[0]] * (3 - len(target)) for target in targets])
    again = aten.ctc_loss(log_probs, padded, rl.tensor(steps), rl.tensor(lengths), blank, 0)
    np.testing.assert_array_equal(again.numpy(), loss.numpy())


def test_gradient():
    raw = scores(6, 3, 4).requires_grad_()
    targets = rl.tensor([[1, 2, 2], [3, 1, 1], [2, 1, 1]])
    assert gradcheck(lambda x: aten.ctc_loss(x.log_softmax(-1), targets, [6, 4, 5], [3, 1, 0], 0, 0), (raw,))
    assert gradcheck(lambda x: aten.ctc_loss(x.log_softmax(-1), targets, [6, 6, 6], [3, 2, 2], 0, 1), (raw,))


def test_impossible_targets():
    raw = scores(2, 1, 3).requires_grad_()
    arguments = (rl.tensor([[1, 1]]), [2], [2], 0, 2)
    assert aten.ctc_loss(raw.log_softmax(-1), *arguments).item() == np.inf
    loss = aten.ctc_loss(raw.log_softmax(-1), *arguments, True)
    loss.backward()
    assert loss.item() == 0 and not raw.grad.numpy().any()


def test_one_sequence_without_a_batch():
    log_probs = scores(4, 1, 3).log_softmax(-1)
    loss = aten.ctc_loss(log_probs.squeeze(1), rl.tensor([1, 2]), rl.tensor(4), rl.tensor(2), 0, 0)
    assert loss.shape == ()
    assert loss.item() == pytest.approx(aten.ctc_loss(log_probs, rl.tensor([[1, 2]]), [4], [2], 0, 0).item())


def test_what_does_not_fit():
    log_probs, targets = scores(4, 2, 3).log_softmax(-1), rl.tensor([[1, 2], [1, 1]])
    for arguments, message in (
        ((targets, [4], [2, 2]), "batch_size"),
        ((targets, [9, 4], [2, 2]), "at most 4"),
        ((targets, [4, 4], [3, 2]), "at least 3"),
        ((targets, [4, 4], [2, 2], 7), "blank must be in label range"),
        ((rl.tensor([1, 2, 1]), [4, 4], [2, 2]), "expected|Expected"),
        ((rl.tensor([[1, 5], [1, 1]]), [4, 4], [2, 2]), "labels in"),
    ):
        with pytest.raises(RuntimeError, match=message):
            aten.ctc_loss(log_probs, *arguments)
    loss = aten.ctc_loss(log_probs.requires_grad_(), targets, [4, 4], [1, 1])
    (first,) = rl.autograd.grad(loss, log_probs, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiated once"):
        first.sum().backward()
