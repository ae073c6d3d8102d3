"""Regression and probability losses. `reduction` is 0 for none, 1 for the mean, 2 for the sum."""

from __future__ import annotations

import math

from rushlight.core.dtype import bool_
from rushlight.core.tensor import Tensor
from rushlight.ops.composite.network.activations import log_sigmoid
from rushlight.ops.composite.network.common import MEAN, aten, checked_later, reduce_loss, values_of
from rushlight.ops.composite.pointwise import filled
from rushlight.ops.promotion import check_number, result_type
from rushlight.ops.registry import check_castable, composite


@composite("mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor")
def mse_loss(self, target, reduction=MEAN):
    difference = _difference(self, target)
    return reduce_loss(difference * difference, reduction)


def _difference(self: Tensor, target: Tensor) -> Tensor:
    """Compute self - target; bools count as 0 and 1."""
    if (self.dtype is bool_) != (target.dtype is bool_):
        kind = result_type(self, target)
        return self.to(kind) - target.to(kind)
    return self - target


@composite("l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor")
def l1_loss(self, target, reduction=MEAN):
    return reduce_loss((self - target).abs(), reduction)


@composite("smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.0) -> Tensor")
def smooth_l1_loss(self, target, reduction=MEAN, beta=1.0):
    """Compute a loss that is squared below beta and absolute above, meeting smoothly (Girshick 2015)."""
    if not beta >= 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return l1_loss(self, target, reduction)
    difference = _difference(self, target)
    distance = difference.abs()
    loss = aten.where.self(distance < beta, difference * difference * (0.5 / beta), distance - 0.5 * beta)
    return reduce_loss(loss, reduction)


@composite("huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.0) -> Tensor")
def huber_loss(self, target, reduction=MEAN, delta=1.0):
    """Compute smooth_l1_loss times delta (Huber 1964)."""
    if not delta > 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    difference = _difference(self, target)
    check_castable("huber_loss", difference.dtype, self.dtype)
    distance = difference.abs()
    loss = aten.where.self(distance < delta, difference * difference * 0.5, (distance - 0.5 * delta) * delta)
    return reduce_loss(loss.to(self.dtype), reduction)


MIN_VARIANCE = 1e-12  # clamps p * (1 - p) in the gradient of binary cross entropy


def _bounded_log(x):
    """Compute log(x) clamped to at least -100, with gradient 0 below."""
    zero = x == 0
    return filled(filled(x, zero, 1).log().clamp(min=-100), zero, -100)


@composite("binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor")
def binary_cross_entropy(self, target, weight=None, reduction=MEAN):
    """Compute -target * log(self) - (1 - target) * log(1 - self), for probabilities."""
    values = values_of(self)
    if values is not None and not ((values >= 0) & (values <= 1)).all():
        raise RuntimeError("all elements of input should be between 0 and 1")
    self = checked_later(self, lambda x: (x >= 0) & (x <= 1), RuntimeError, "all elements of input should be between 0 and 1")
    if target.dtype is not self.dtype:
        raise RuntimeError(f"Found dtype {target.dtype.scalar_name} but expected {self.dtype.scalar_name}")
    if self.requires_grad:
        return reduce_loss(_apply_weight(_differentiable_cross_entropy(self, target), weight), reduction)
    return reduce_loss(_apply_weight(_binary_cross_entropy(self, target), weight), reduction)


def _apply_weight(loss: Tensor, weight: Tensor | None) -> Tensor:
    return loss if weight is None else loss * weight


def _binary_cross_entropy(self: Tensor, target: Tensor) -> Tensor:
    return (target - 1) * _bounded_log(1 - self) - target * _bounded_log(self)


def _differentiable_cross_entropy(self: Tensor, target: Tensor) -> Tensor:
    """Compute binary cross entropy with ATen's gradient near 0 and 1: (self - target) / MIN_VARIANCE."""
    value = self.detach()
    is_end = value * (1 - value) < MIN_VARIANCE
    slope = aten.where.self(is_end, (value - target.detach()) / MIN_VARIANCE, value.new_zeros([]))
    return _binary_cross_entropy(aten.where.self(is_end, value, self), target) + (self - value) * slope


@composite(
    "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, "
    "int reduction=1) -> Tensor"
)
def binary_cross_entropy_with_logits(self, target, weight=None, pos_weight=None, reduction=MEAN):
    """Compute binary_cross_entropy of sigmoid(self), without its overflows."""
    check_castable("binary_cross_entropy_with_logits", result_type(target, self), target.dtype)
    log_probability = log_sigmoid(self)
    if pos_weight is not None:
        log_probability = log_probability * ((pos_weight - 1) * target + 1)
    loss = (1 - target) * self - log_probability
    return reduce_loss(loss if weight is None else loss * weight, reduction)


@composite("kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor")
def kl_div(self, target, reduction=MEAN, *, log_target=False):
    """Compute target * (log(target) - self), where 0 * log(0) is 0; `self` holds log-probabilities."""
    if log_target:
        return reduce_loss(target.exp() * (target - self), reduction)
    return reduce_loss(aten.xlogy.Tensor(target, target) - target * self, reduction)


@composite("poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> Tensor")
def poisson_nll_loss(input, target, log_input, full, eps, reduction):
    """Compute the negative log-likelihood of counts, with Stirling's approximation of log(target!) when `full`."""
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (target * (2 * math.pi)).log()
        loss = loss + filled(stirling, target <= 1, 0).to(loss.dtype)
    return reduce_loss(loss, reduction)


@composite("soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor")
def soft_margin_loss(self, target, reduction=MEAN):
    loss = (-self * target).exp().log1p()
    check_castable("soft_margin_loss", loss.dtype, self.dtype)
    if loss.shape != self.shape:
        shapes = f"a target of shape {list(target.shape)} does not fit an input of {list(self.shape)}"
        raise RuntimeError(f"soft_margin_loss: {shapes}")
    return reduce_loss(loss.to(self.dtype), reduction)


def _positive_part(x):
    # As ATen's clamp_min, this passes the whole gradient at 0.
    return filled(x, x < 0, 0)


@composite("hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, int reduction=1) -> Tensor")
def hinge_embedding_loss(self, target, margin=1.0, reduction=MEAN):
    """Compute self where target is 1, max(0, margin - self) where it is -1; of integers with an integer margin."""
    if self.dtype.is_integral:
        check_number(margin, self.dtype)
        margin = int(margin)
    negative = filled(_positive_part(margin - self), target == 1, 0)
    return reduce_loss(negative + filled(self, target == -1, 0), reduction)


@composite("margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=1) -> Tensor")
def margin_ranking_loss(input1, input2, target, margin=0.0, reduction=MEAN):
    return reduce_loss(_positive_part(-target * (input1 - input2) + margin), reduction)


@composite("cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=1) -> Tensor")
def cosine_embedding_loss(input1, input2, target, margin=0.0, reduction=MEAN):
    """Compute 1 - cosine where target is 1, max(0, cosine - margin) where it is -1."""
    _check_cosine_embedding(input1, input2, target)
    tiny = 1e-12
    squares = ((input1 * input1).sum([-1]) + tiny) * ((input2 * input2).sum([-1]) + tiny)
    cosine = (input1 * input2).sum([-1]) / squares.sqrt()
    alike = (1 - cosine).masked_fill(target != 1, 0)
    apart = _positive_part(cosine - margin).masked_fill(target != -1, 0)
    return reduce_loss(alike + apart, reduction)


def _check_cosine_embedding(input1, input2, target) -> None:
    fits = (target.dim() == 1 and input1.dim() == 2) or (target.dim() == 0 and input1.dim() == 1)
    if not fits or input1.dim() != input2.dim():
        raise RuntimeError(
            f"{target.dim()}D target tensor expects {target.dim() + 1}D input tensors, "
            f"but found inputs with sizes {list(input1.shape)} and {list(input2.shape)}."
        )


@composite(
    "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2.0, "
    "float eps=1e-06, bool swap=False, int reduction=1) -> Tensor"
)
def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2.0, eps=1e-06, swap=False, reduction=MEAN):
    """Compute max(0, margin + distance(anchor, positive) - distance(anchor, negative)) (Balntas et al. 2016)."""
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, "
            f"but got: anchor {anchor.dim()}D, positive {positive.dim()}D, and negative {negative.dim()}D inputs"
        )
    near = aten.pairwise_distance.default(anchor, positive, p, eps)
    far = aten.pairwise_distance.default(anchor, negative, p, eps)
    if swap:
        far = aten.minimum.default(far, aten.pairwise_distance.default(positive, negative, p, eps))
    return reduce_loss(_positive_part(margin + near - far), reduction)
