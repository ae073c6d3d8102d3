"""CPU kernels of the negative log-likelihood and its gradient."""

from __future__ import annotations

import numpy as np

from rushlight.core.tensor import Tensor
from rushlight.ops.cpu.common import operand
from rushlight.ops.cpu.results import contiguous
from rushlight.ops.meta.losses import MEAN, NONE, check_nll_loss
from rushlight.ops.registry import cpu


def _targets(self: Tensor, target: Tensor, ignore_index: int) -> tuple[np.ndarray, np.ndarray]:
    """Per row the target class (0 where ignored), and which rows count; IndexError for a class that does not exist."""
    labels = target._impl.array.reshape(-1).astype(np.int64)
    counted = labels != ignore_index
    classes = self._impl.sizes[-1]
    wrong = counted & ((labels < 0) | (labels >= classes))
    if wrong.any():
        label = labels[wrong][0]
        raise IndexError(f"Target {label} is out of bounds. (nll_loss: there are {classes} classes)")
    return np.where(counted, labels, 0), counted


def _row_weights(labels: np.ndarray, counted: np.ndarray, weight: Tensor | None, kind: np.dtype) -> np.ndarray:
    if weight is None or not counted.any():
        return counted.astype(kind)
    return np.where(counted, weight._impl.array.astype(kind)[labels], kind.type(0))


@cpu("nll_loss_forward")
def nll_loss_forward(self, target, weight, reduction, ignore_index):
    sizes, kind = check_nll_loss(self, target, weight, reduction), self.dtype
    x = operand(self, kind).reshape(-1, self._impl.sizes[-1])
    labels, counted = _targets(self, target, ignore_index)
    weights = _row_weights(labels, counted, weight, x.dtype)
    with np.errstate(all="ignore"):
        taken = x[np.arange(len(labels)), labels] if counted.any() else np.zeros(len(labels), x.dtype)
        losses = np.where(counted, -taken * weights, x.dtype.type(0))
        total = weights.sum()
        if reduction == NONE:
            reduced = losses.reshape(sizes)
            total = x.dtype.type(0) if len(self._impl.sizes) == 2 else total
        else:
            reduced = losses.sum() / total if reduction == MEAN else losses.sum()
    return contiguous(reduced, kind), contiguous(total, kind)


@cpu("nll_loss_backward")
def nll_loss_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight):
    check_nll_loss(self, target, weight, reduction)
    kind, classes = self.dtype, self._impl.sizes[-1]
    labels, counted = _targets(self, target, ignore_index)
    grad = np.zeros((len(labels), classes), kind.compute)
    with np.errstate(all="ignore"):
        scale = -_row_weights(labels, counted, weight, kind.compute) * operand(grad_output, kind).reshape(-1)
        if reduction == MEAN:
            scale = scale / operand(total_weight, kind)
    rows = np.flatnonzero(counted)
    grad[rows, labels[rows]] = scale[rows]
    return contiguous(grad.reshape(self._impl.sizes), kind)
