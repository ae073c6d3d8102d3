"""CPU kernels of CTC loss (Graves et al. 2006), in log space, for all sequences of a batch at once.

The targets are interleaved with blanks: position 2k + 1 is label k, and the even positions are the blanks before, between and
after the labels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rushlight.core.tensor import Tensor
from rushlight.ops.cpu.quiet import quietly
from rushlight.ops.cpu.results import contiguous
from rushlight.ops.meta.sequences import check_ctc
from rushlight.ops.registry import cpu


def _labels(targets: Tensor, lengths: Sequence[int], longest: int, blank: int, classes: int) -> np.ndarray:
    """Return (batch, 2 * longest + 1): the labels interleaved with blanks, and padded with blanks."""
    given = targets._impl.array
    labels = np.full((len(lengths), 2 * longest + 1), blank, np.int64)
    start = 0
    for row, length in enumerate(lengths):
        labels[row, 1 : 2 * length : 2] = given[start : start + length] if given.ndim == 1 else given[row, :length]
        start += length
    if labels.size and (labels.min() < 0 or labels.max() >= classes):
        raise RuntimeError(f"ctc_loss: expected target labels in [0, {classes}), but got {labels.min()} to {labels.max()}")
    return labels


def _emissions(log_probs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return (time, batch, positions): the log-probability of each position's label."""
    return np.take_along_axis(log_probs, np.broadcast_to(labels, (len(log_probs), *labels.shape)), 2)


def _step(before: np.ndarray, may_skip: np.ndarray) -> np.ndarray:
    """Return log-probabilities of arriving at each position: from itself, from the one before, or from the label before a
    skipped blank."""
    nothing = np.full((len(before), 2), -np.inf, before.dtype)
    shifted = np.concatenate([nothing, before], 1)
    one, two = shifted[:, 1:-1], np.where(may_skip, shifted[:, :-2], -np.inf)
    return np.logaddexp(np.logaddexp(before, one), two).astype(before.dtype, copy=False)


def _may_skip(labels: np.ndarray, blank: int) -> np.ndarray:
    """Return whether a position can follow the position two before it: its label must be no blank and differ from the label
    there."""
    allowed = np.zeros(labels.shape, np.bool_)
    allowed[:, 2:] = (labels[:, 2:] != labels[:, :-2]) & (labels[:, 2:] != blank)
    allowed[:, ::2] = False
    return allowed


def _forward(emissions: np.ndarray, may_skip: np.ndarray) -> np.ndarray:
    """Return (time, batch, positions): the log-probability of all alignments that end at this position at this time."""
    alpha = np.full(emissions.shape, -np.inf, emissions.dtype)
    alpha[0, :, :2] = emissions[0, :, :2]
    for step in range(1, len(emissions)):
        alpha[step] = _step(alpha[step - 1], may_skip) + emissions[step]
    return alpha


def _loss(log_probs: np.ndarray, labels: np.ndarray, steps: np.ndarray, lengths: np.ndarray, blank: int) -> tuple:
    emissions = _emissions(log_probs, labels)
    # Only blanks pad a target, so the forward pass may run past its end.
    alpha = _forward(emissions, _may_skip(labels, blank))
    rows = np.arange(len(labels))
    last = alpha[np.maximum(steps - 1, 0), rows]
    at_blank = last[rows, 2 * lengths]
    at_label = np.where(lengths > 0, last[rows, np.maximum(2 * lengths - 1, 0)], -np.inf)
    total = np.logaddexp(at_blank, at_label)
    total = np.where(steps > 0, total, np.where(lengths > 0, -np.inf, 0.0))
    outside = np.arange(labels.shape[1]) > 2 * lengths[:, None]
    return -total, np.where(outside[:, None], -np.inf, alpha.transpose(1, 0, 2))


@cpu("_ctc_loss")
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, zero_infinity=False):
    longest = check_ctc(log_probs, targets, input_lengths, target_lengths, blank)
    labels = _labels(targets, target_lengths, longest, blank, log_probs.shape[2])
    steps, lengths = np.asarray(input_lengths, np.int64), np.asarray(target_lengths, np.int64)
    loss, alpha = quietly(_loss, log_probs._impl.array, labels, steps, lengths, blank)
    return contiguous(loss, log_probs.dtype), contiguous(alpha, log_probs.dtype)


def _backward(emissions: np.ndarray, may_skip: np.ndarray, steps: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return (time, batch, positions): the log-probability of all paths from a position at a time to the end, including its own
    emission."""
    beta = np.full(emissions.shape, -np.inf, emissions.dtype)
    positions = np.arange(emissions.shape[2])
    final = (positions == 2 * lengths[:, None]) | (positions == 2 * lengths[:, None] - 1)
    # In reversed order, a position can be followed by the one two ahead of it if that one may skip.
    onward = np.zeros_like(may_skip)
    onward[:, : max(may_skip.shape[1] - 2, 0)] = may_skip[:, 2:]
    following = np.full(emissions.shape[1:], -np.inf, emissions.dtype)
    for step in range(len(emissions) - 1, -1, -1):
        reversed_skip = onward[:, ::-1]
        arrived = _step(following[:, ::-1], reversed_skip)[:, ::-1]
        arrived = np.where((step == steps - 1)[:, None], np.where(final, 0, -np.inf), arrived)
        following = np.where((step < steps)[:, None], arrived + emissions[step], -np.inf).astype(emissions.dtype)
        beta[step] = following
    return beta


def _gradient(
    grad: np.ndarray, log_probs: np.ndarray, labels: np.ndarray, steps: np.ndarray, lengths: np.ndarray,
    loss: np.ndarray, alpha: np.ndarray, blank: int,
) -> np.ndarray:  # fmt: skip
    emissions = _emissions(log_probs, labels)
    beta = _backward(emissions, _may_skip(labels, blank), steps, lengths)
    both = alpha.transpose(1, 0, 2) + beta
    # Each label's share in the alignments: the sum over its positions, relative to the total to avoid overflow.
    share = np.exp(both - emissions + loss[None, :, None])
    share[~np.isfinite(share)] = 0
    occupied = np.zeros(log_probs.shape, log_probs.dtype)
    batch = np.arange(len(labels))[:, None]
    for step in range(len(log_probs)):
        np.add.at(occupied[step], (batch, labels), share[step])
    result = (np.exp(log_probs) - occupied) * grad[None, :, None]
    result[np.arange(len(log_probs))[:, None] >= steps[None, :]] = 0
    return result


@cpu("_ctc_loss_backward")
def ctc_loss_backward(
    grad, log_probs, targets, input_lengths, target_lengths, neg_log_likelihood, log_alpha, blank, zero_infinity=False
):
    longest = check_ctc(log_probs, targets, input_lengths, target_lengths, blank)
    labels = _labels(targets, target_lengths, longest, blank, log_probs.shape[2])
    steps, lengths = np.asarray(input_lengths, np.int64), np.asarray(target_lengths, np.int64)
    loss, alpha = neg_log_likelihood._impl.array, log_alpha._impl.array
    result = quietly(_gradient, grad._impl.array, log_probs._impl.array, labels, steps, lengths, loss, alpha, blank)
    impossible = np.isinf(loss)
    result[:, impossible] = 0 if zero_infinity else np.nan
    result[np.arange(len(result))[:, None] >= steps[None, :]] = 0
    return contiguous(result, log_probs.dtype)
