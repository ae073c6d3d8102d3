"""CPU kernels of the negative log-likelihood and its gradient."""

from __future__ import annotations

import math

import numpy as np

from rushlight.core.dtype import float32, int64
from rushlight.core.tensor import Tensor
from rushlight.ops.cpu import native
from rushlight.ops.cpu.common import empty, operand
from rushlight.ops.cpu.results import contiguous
from rushlight.ops.meta.losses import MEAN, NONE, check_nll_loss
from rushlight.ops.registry import cpu


def _targets(self: Tensor, target: Tensor, ignore_index: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the target class of each row (0 where ignored), and the mask of rows that count; IndexError for an invalid
    class."""
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


def _arguments(self: Tensor, target: Tensor, weight: Tensor | None) -> tuple[np.ndarray, np.ndarray | None] | None:
    """Return labels and weights for the native kernels, or None if the kernels do not support them."""
    if native.kernels is None or self.dtype is not float32 or self.dim() != 2 or target.dtype is not int64:
        return None
    return native.contiguous(target._impl.array), None if weight is None else native.contiguous(weight._impl.array)


def _native_forward(
    self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int, sizes: tuple[int, ...]
) -> tuple[Tensor, Tensor] | None:
    given = _arguments(self, target, weight)
    if given is None:
        return None
    out, total = empty(sizes, float32), empty((), float32)
    losses = out._impl.array if reduction == NONE else None
    sums = native.kernels.nll_loss(native.contiguous(self._impl.array), *given, ignore_index, losses)
    if sums is None:
        return None
    if reduction != NONE:
        mean = sums[0] / sums[1] if sums[1] else math.nan
        out._impl.array[...] = mean if reduction == MEAN else sums[0]
    total._impl.array[...] = 0 if reduction == NONE else sums[1]
    return out, total


def _native_backward(
    grad_output: Tensor, self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int,
    total_weight: Tensor,
) -> Tensor | None:  # fmt: skip
    given = _arguments(self, target, weight)
    if given is None:
        return None
    out = empty(self._impl.sizes, float32)
    divisor = float(total_weight._impl.array) if reduction == MEAN else 1.0
    grad = native.contiguous(grad_output._impl.array)
    return out if native.kernels.nll_loss_backward(out._impl.array, *given, ignore_index, grad, divisor) else None


@cpu("nll_loss_forward")
def nll_loss_forward(self, target, weight, reduction, ignore_index):
    sizes, kind = check_nll_loss(self, target, weight, reduction), self.dtype
    found = _native_forward(self, target, weight, reduction, ignore_index, sizes)
    if found is not None:
        return found
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
    found = _native_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight)
    if found is not None:
        return found
    labels, counted = _targets(self, target, ignore_index)
    grad = np.zeros((len(labels), classes), kind.compute)
    with np.errstate(all="ignore"):
        scale = -_row_weights(labels, counted, weight, kind.compute) * operand(grad_output, kind).reshape(-1)
        if reduction == MEAN:
            scale = scale / operand(total_weight, kind)
    rows = np.flatnonzero(counted)
    grad[rows, labels[rows]] = scale[rows]
    return contiguous(grad.reshape(self._impl.sizes), kind)
