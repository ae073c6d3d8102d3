"""Checks and Meta rules of CTC loss."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.core.dtype import float32, float64, int32, int64
from rushlight.core.tensor import Tensor
from rushlight.ops.meta.checks import not_implemented
from rushlight.ops.meta.common import empty, like
from rushlight.ops.registry import meta


def check_ctc(
    log_probs: Tensor, targets: Tensor, input_lengths: Sequence[int], target_lengths: Sequence[int], blank: int
) -> int:
    """Return the longest target; RuntimeError when probabilities, targets and lengths do not fit together."""
    if log_probs.dim() != 3:
        raise RuntimeError(f"log_probs must have shape (time, batch, classes), but got {list(log_probs.shape)}")
    steps, batch, classes = log_probs.shape
    if not log_probs.numel():
        raise RuntimeError("log_probs tensor must not be empty")
    if log_probs.dtype not in (float32, float64):
        raise not_implemented("ctc_loss_cpu", log_probs.dtype)
    if targets.dtype not in (int32, int64):
        raise RuntimeError(f"targets must be int32 or int64, but got {targets.dtype}")
    if not 0 <= blank < classes:
        raise RuntimeError(f"blank must be in label range: got blank={blank} for {classes} labels")
    for name, lengths in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        if len(lengths) != batch:
            raise RuntimeError(f"{name} must be of size batch_size: got {len(lengths)} for a batch of {batch}")
        if any(length < 0 for length in lengths):
            raise RuntimeError(f"Expected {name} to have value at least 0, but got {list(lengths)}")
    for index, length in enumerate(input_lengths):
        if length > steps:
            raise RuntimeError(
                f"Expected input_lengths to have value at most {steps}, but got value {length} (while checking arguments for "
                f"ctc_loss_cpu, sequence {index})"
            )
    longest = max(target_lengths, default=0)
    _check_targets(targets, target_lengths, longest, batch)
    return longest


def _check_targets(targets: Tensor, target_lengths: Sequence[int], longest: int, batch: int) -> None:
    if targets.dim() == 1:
        if targets.numel() != sum(target_lengths):
            raise RuntimeError(
                f"Expected tensor to have size {sum(target_lengths)} at dimension 0, but got size {targets.numel()} for "
                "argument 'targets' (while checking arguments for ctc_loss_cpu)"
            )
    elif targets.dim() != 2 or targets.shape[0] != batch or targets.shape[1] < longest:
        raise RuntimeError(
            f"Expected tensor to have size at least {longest} at dimension 1, but got size {list(targets.shape)} for argument "
            "'targets' (while checking arguments for ctc_loss_cpu)"
        )


@meta("_ctc_loss")
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, zero_infinity=False):
    longest = check_ctc(log_probs, targets, input_lengths, target_lengths, blank)
    steps, batch, _ = log_probs.shape
    return empty((batch,), log_probs.dtype), empty((batch, steps, 2 * longest + 1), log_probs.dtype)


@meta("_ctc_loss_backward")
def ctc_loss_backward(
    grad, log_probs, targets, input_lengths, target_lengths, neg_log_likelihood, log_alpha, blank, zero_infinity=False
):
    return like(log_probs)
