"""ctc_loss: connectionist temporal classification with its reductions (Graves et al. 2006)."""

from __future__ import annotations

from rushlight.ops.composite.network.common import aten
from rushlight.ops.registry import composite


@composite(
    "_ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, "
    "bool zero_infinity=False) -> (Tensor, Tensor)"
)
def ctc_loss_of_tensors(log_probs, targets, input_lengths, target_lengths, blank=0, zero_infinity=False):
    lengths = input_lengths.tolist(), target_lengths.tolist()
    return aten._ctc_loss.default(log_probs, targets, *lengths, blank, zero_infinity)


@composite(
    "ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, "
    "int reduction=1, bool zero_infinity=False) -> Tensor"
)
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction=1, zero_infinity=False):
    batched = log_probs.dim() == 3
    inputs = log_probs if batched else log_probs.unsqueeze(1)
    loss = aten._ctc_loss.default(inputs, targets, input_lengths, target_lengths, blank, zero_infinity)[0]
    if zero_infinity:
        loss = aten.where.self(loss == float("inf"), aten.zeros_like.default(loss), loss)
    if reduction == 1:
        lengths = aten.clamp.default(loss.new_tensor(target_lengths), 1)
        return (loss / lengths).mean()
    if reduction == 2:
        return loss.sum()
    return loss if batched else loss.squeeze(0)


@composite(
    "ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, "
    "int reduction=1, bool zero_infinity=False) -> Tensor"
)
def ctc_loss_tensor(log_probs, targets, input_lengths, target_lengths, blank=0, reduction=1, zero_infinity=False):
    for name, lengths in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        if not lengths.dtype.is_integral:
            raise RuntimeError(f"{name} must be integral, but got {lengths.dtype}")
    lengths = input_lengths.reshape((-1,)).tolist(), target_lengths.reshape((-1,)).tolist()
    return ctc_loss(log_probs, targets, *lengths, blank, reduction, zero_infinity)
