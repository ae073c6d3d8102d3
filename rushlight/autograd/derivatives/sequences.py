"""The derivative of CTC loss."""

from __future__ import annotations

from rushlight.autograd.derivative_table import derivative
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


def _differentiate_ctc_loss(
    grad, log_probs, targets, input_lengths, target_lengths, result0, result1, blank, zero_infinity
):
    # The kernel returns the gradient of log_softmax's input. log_softmax's own derivative then passes it on unchanged.
    return aten._ctc_loss_backward.default(
        grad, log_probs, targets, input_lengths, target_lengths, result0, result1, blank, zero_infinity
    )


def _differentiate_twice(grad):
    raise RuntimeError("the derivative of '_ctc_loss_backward' is not implemented: ctc_loss can be differentiated once")


derivative("_ctc_loss", log_probs=_differentiate_ctc_loss, non_differentiable_outputs=(1,))
derivative("_ctc_loss_backward", grad=_differentiate_twice, log_probs=_differentiate_twice)
