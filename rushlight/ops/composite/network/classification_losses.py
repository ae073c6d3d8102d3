"""Losses over classes: negative log-likelihood, cross entropy, and the margins."""

from __future__ import annotations

from rushlight.core.dtype import int64
from rushlight.ops.composite.network.common import MEAN, NONE, SUM, arange, aten, quotient, reduce_loss
from rushlight.ops.registry import composite


@composite("nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> Tensor")
def nll_loss(self, target, weight=None, reduction=MEAN, ignore_index=-100):
    """Compute -self[i, target[i]], for log-probabilities (N, C) or (C)."""
    return aten.nll_loss_forward.default(self, target, weight, reduction, ignore_index)[0]


@composite("nll_loss2d(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> Tensor")
def nll_loss2d(self, target, weight=None, reduction=MEAN, ignore_index=-100):
    return nll_loss_nd(self, target, weight, reduction, ignore_index)


@composite("nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> Tensor")
def nll_loss_nd(self, target, weight=None, reduction=MEAN, ignore_index=-100):
    """Compute nll_loss for (N, C, ...) and targets (N, ...): every place in the trailing dimensions counts as a sample."""
    if not 1 <= self.dim():
        raise ValueError(f"Expected 1 or more dimensions (got {self.dim()})")
    count = target.shape[0] if target.dim() else 0
    if self.dim() != 1 and self.shape[0] != count:
        raise ValueError(f"Expected input batch_size ({self.shape[0]}) to match target batch_size ({count}).")
    if self.dim() <= 2:
        return nll_loss(self, target, weight, reduction, ignore_index)
    expected = [self.shape[0], *self.shape[2:]]
    if list(target.shape) != expected:
        raise RuntimeError(f"Expected target size {expected}, got {list(target.shape)}")
    rows = self.movedim(1, -1).reshape([-1, self.shape[1]])
    loss = nll_loss(rows, target.reshape([-1]), weight, reduction, ignore_index)
    return loss.view(target.shape) if reduction == NONE else loss


@composite(
    "cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, "
    "SymInt ignore_index=-100, float label_smoothing=0.0) -> Tensor"
)
def cross_entropy_loss(self, target, weight=None, reduction=MEAN, ignore_index=-100, label_smoothing=0.0):
    """Compute nll_loss of the log-softmax; targets are class numbers, or probabilities when they have the input's shape."""
    class_dim = 0 if self.dim() == 1 else 1
    if target.shape == self.shape:
        if not target.is_floating_point():
            raise RuntimeError(f"Expected floating point type for target with class probabilities, got {target.dtype}")
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        log_probabilities = self.log_softmax(class_dim)
        return _cross_entropy_of_probabilities(log_probabilities, target, weight, reduction, label_smoothing, class_dim)
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    log_probabilities = self.log_softmax(class_dim)
    loss = nll_loss_nd(log_probabilities, target, weight, reduction, ignore_index)
    if label_smoothing == 0:
        return loss
    smooth = _uniform_part(log_probabilities, target, weight, reduction, ignore_index, class_dim)
    share = quotient(self, label_smoothing, self.shape[class_dim], smooth.dtype)
    return loss * (1 - label_smoothing) + smooth * share


def _broadcast_over_classes(weight, x, class_dim: int):
    shape = [1] * x.dim()
    shape[class_dim] = weight.numel()
    return weight.view(shape)


def _cross_entropy_of_probabilities(log_probabilities, target, weight, reduction, label_smoothing, class_dim):
    classes = log_probabilities.shape[class_dim]
    if label_smoothing > 0:
        target = target * (1 - label_smoothing) + quotient(target, label_smoothing, classes, target.dtype)
    products = log_probabilities * target
    if weight is not None:
        products = products * _broadcast_over_classes(weight, products, class_dim)
    if reduction == NONE:
        return -products.sum([class_dim])
    total = -products.sum()
    return total if reduction == SUM else total / max(log_probabilities.numel() // max(classes, 1), 1)


def _uniform_part(log_probabilities, target, weight, reduction, ignore_index, class_dim):
    """Return the loss against the uniform distribution, reduced with the weights of the true classes."""
    if weight is not None:
        log_probabilities = log_probabilities * _broadcast_over_classes(weight, log_probabilities, class_dim)
    ignored = target == ignore_index
    loss = -log_probabilities.sum([class_dim]).masked_fill(ignored, 0)
    if reduction != MEAN:
        return reduce_loss(loss, reduction)
    if weight is None:
        return loss.sum() / ignored.logical_not().sum()
    counted = weight.index_select(0, target.masked_fill(ignored, 0).reshape([-1]))
    return loss.sum() / counted.masked_fill(ignored.reshape([-1]), 0).sum()


@composite(
    "multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int reduction=1) -> Tensor"
)
def multi_margin_loss(self, target, p=1, margin=1, weight=None, reduction=MEAN):
    """Compute the mean over classes of max(0, margin - self[target] + self[other]) ** p."""
    if p not in (1, 2):
        raise RuntimeError(f"only p == 1 and p == 2 supported, got {p}")
    _check_classes(self)
    scores = self if self.dim() == 2 else self.reshape([1, -1])
    truth = target.reshape([-1, 1])
    if target.dim() > 1 or truth.shape[0] != scores.shape[0]:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). "
            f"Expected target size [{scores.shape[0]}], but got {list(target.shape)}. Input has shape {list(self.shape)}."
        )
    if weight is not None and weight.numel() != scores.shape[1]:
        raise RuntimeError(f"inconsistent weight size, expected {scores.shape[1]} but got {list(weight.shape)}")
    if target.dtype is not int64:
        raise RuntimeError(f"multi_margin_loss: expected scalar type Long but found {target.dtype.scalar_name} for target")
    excess = margin - scores.gather(1, truth) + scores
    excess = excess.masked_fill((excess <= 0).logical_or(arange(scores, scores.shape[1]) == truth), 0)
    excess = excess if p == 1 else excess * excess
    if weight is not None:
        excess = excess * weight.index_select(0, truth.reshape([-1])).unsqueeze(1)
    loss = excess.sum([1]) / scores.shape[1]
    return reduce_loss(loss if target.dim() else loss.reshape([]), reduction)


def _check_classes(x) -> None:
    if x.dim() > 2 or 0 in x.shape[max(x.dim() - 1, 0) :]:
        raise RuntimeError(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(x.shape)}")


@composite("multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor")
def multilabel_margin_loss(self, target, reduction=MEAN):
    """Compute the mean over classes of max(0, 1 - self[label] + self[other]), over the labels before the first -1."""
    _check_classes(self)
    if self.shape != target.shape:
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(self.shape)}")
    if target.dtype is not int64:
        raise RuntimeError(f"multilabel_margin_loss: expected scalar type Long but found {target.dtype.scalar_name} for target")
    scores, labels = (self, target) if self.dim() == 2 else (self.reshape([1, -1]), target.reshape([1, -1]))
    listed = (labels < 0).to(int64).cumsum(1) == 0
    safe = labels.masked_fill(listed.logical_not(), 0)
    classes = arange(scores, scores.shape[1])
    is_label = (safe.unsqueeze(2) == classes).logical_and(listed.unsqueeze(2)).any(1)
    excess = 1 - scores.gather(1, safe).unsqueeze(2) + scores.unsqueeze(1)
    counted = listed.unsqueeze(2).logical_and(is_label.logical_not().unsqueeze(1)).logical_and(excess > 0)
    loss = excess.masked_fill(counted.logical_not(), 0).sum([1, 2]) / scores.shape[1]
    return reduce_loss(loss if self.dim() == 2 else loss.reshape([]), reduction)
