"""Losses. `reduction` is "none", "mean" or "sum"; `size_average` and `reduce` are its deprecated spellings."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

from rushlight.core.tensor import Tensor
from rushlight.nn.functional.common import aten, reduced, reduction_code, reduction_name
from rushlight.nn.functional.distances import pairwise_distance
from rushlight.ops.composite.network.common import values_of


def _code(size_average: bool | None, reduce: bool | None, reduction: str) -> int:
    return reduction_code(reduction_name(size_average, reduce, reduction))


def _warn_about_sizes(input: Tensor, target: Tensor) -> None:
    if input.shape != target.shape:
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). "
            "This will likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
            stacklevel=3,
        )


def _apply_weights(loss: Tensor, weight: Tensor) -> Tensor:
    """Elementwise losses times weights."""
    if weight.shape != loss.shape:
        raise ValueError(f"Weights and input must have the same size; got {weight.shape} and {loss.shape}")
    return loss * weight


def _weighted_mean(loss: Tensor, weight: Tensor, reduction: str) -> Tensor:
    """Weighted losses, reduced; their mean divides by the sum of weights."""
    loss = _apply_weights(loss, weight)
    return loss.sum() / weight.sum() if reduction == "mean" else reduced(loss, reduction)


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """(input - target) ** 2.

    Args:
        input (Tensor): the input.
        target (Tensor): the target.
        size_average (bool | None): deprecated: use `reduction`.
        reduce (bool | None): deprecated: use `reduction`.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".
        weight (Tensor | None): a weight per element.

    Example:
        >>> F.mse_loss(torch.tensor([0.5, 1.0]), torch.tensor([1.0, 1.0]))
        tensor(0.1250)
    """
    _warn_about_sizes(input, target)
    reduction = reduction_name(size_average, reduce, reduction)
    if weight is not None:
        return _weighted_mean(aten.mse_loss(input, target, 0), weight, reduction)
    return aten.mse_loss(input, target, reduction_code(reduction))


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """|input - target|.

    Args:
        input (Tensor): the input.
        target (Tensor): the target.
        size_average (bool | None): deprecated: use `reduction`.
        reduce (bool | None): deprecated: use `reduction`.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".
        weight (Tensor | None): a weight per element.

    Example:
        >>> F.l1_loss(torch.tensor([0.5, 1.0]), torch.tensor([1.0, 1.0]))
        tensor(0.2500)
    """
    _warn_about_sizes(input, target)
    reduction = reduction_name(size_average, reduce, reduction)
    if weight is not None:
        return _weighted_mean(aten.l1_loss(input, target, 0), weight, reduction)
    return aten.l1_loss(input, target, reduction_code(reduction))


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """0.5 * difference ** 2 / beta where |difference| < beta, |difference| - 0.5 * beta elsewhere.

    Args:
        input (Tensor): the input.
        target (Tensor): the target.
        size_average (bool | None): deprecated: use `reduction`.
        reduce (bool | None): deprecated: use `reduction`.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".
        beta (float): the difference at which the loss turns from quadratic to linear.

    Example:
        >>> F.smooth_l1_loss(torch.tensor([0.5, 1.0]), torch.tensor([1.0, 1.0]))
        tensor(0.0625)
    """
    _warn_about_sizes(input, target)
    return aten.smooth_l1_loss(input, target, _code(size_average, reduce, reduction), beta)


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """0.5 * difference ** 2 where |difference| < delta, delta * (|difference| - 0.5 * delta) elsewhere.

    Args:
        input (Tensor): the input.
        target (Tensor): the target.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".
        delta (float): the difference at which the loss turns from quadratic to linear.
        weight (Tensor | None): a weight per element.

    Example:
        >>> F.huber_loss(torch.tensor([0.5, 1.0]), torch.tensor([1.0, 1.0]))
        tensor(0.0625)
    """
    _warn_about_sizes(input, target)
    if weight is not None:
        return reduced(_apply_weights(aten.huber_loss(input, target, 0, delta), weight), reduction)
    return aten.huber_loss(input, target, reduction_code(reduction), delta)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """-log softmax(input)[target] over dimension 1 of (N, C, ...), or over (C).

    Targets are class numbers (N, ...) or, with the input's shape, class probabilities. `weight` (C) weighs the classes;
    targets equal to `ignore_index` do not count.

    Args:
        input (Tensor): the input.
        target (Tensor): the target.
        weight (Tensor | None): a weight per class.
        size_average (bool | None): deprecated: use `reduction`.
        ignore_index (int): targets of this class are ignored.
        reduce (bool | None): deprecated: use `reduction`.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".
        label_smoothing (float): the share of the target that is spread over all classes.

    Example:
        >>> F.cross_entropy(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
        tensor(0.6931)
    """
    code = _code(size_average, reduce, reduction)
    return aten.cross_entropy_loss(input, target, weight, code, ignore_index, label_smoothing)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-input[target] for log-probabilities, with weights and ignore_index as in cross_entropy.

    Args:
        input (Tensor): the input.
        target (Tensor): the target.
        weight (Tensor | None): a weight per class.
        size_average (bool | None): deprecated: use `reduction`.
        ignore_index (int): targets of this class are ignored.
        reduce (bool | None): deprecated: use `reduction`.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".

    Example:
        >>> F.nll_loss(torch.tensor([[-1.0, -2.0]]), torch.tensor([1]))
        tensor(2.)
    """
    return aten.nll_loss_nd(input, target, weight, _code(size_average, reduce, reduction), ignore_index)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-target * log(input) - (1 - target) * log(1 - input), each log at least -100.

    Args:
        input (Tensor): the input.
        target (Tensor): the target.
        weight (Tensor | None): a weight per element.
        size_average (bool | None): deprecated: use `reduction`.
        reduce (bool | None): deprecated: use `reduction`.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".

    Example:
        >>> F.binary_cross_entropy(torch.tensor([0.5, 1.0]), torch.tensor([1.0, 1.0]))
        tensor(0.3466)
    """
    if input.shape != target.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    if weight is not None:
        weight = weight.expand(input.shape)
    return aten.binary_cross_entropy(input, target, weight, _code(size_average, reduce, reduction))


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """binary_cross_entropy of sigmoid(input); `pos_weight` weighs the positive targets.

    Args:
        input (Tensor): the input.
        target (Tensor): the target.
        weight (Tensor | None): a weight per element.
        size_average (bool | None): deprecated: use `reduction`.
        reduce (bool | None): deprecated: use `reduction`.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".
        pos_weight (Tensor | None): a factor for the positive examples of each class.

    Example:
        >>> F.binary_cross_entropy_with_logits(torch.tensor([0.5, 1.0]), torch.tensor([1.0, 1.0]))
        tensor(0.3937)
    """
    if input.shape != target.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    code = _code(size_average, reduce, reduction)
    return aten.binary_cross_entropy_with_logits(input, target, weight, pos_weight, code)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """target * (log(target) - input) for log-probabilities `input`; "batchmean" divides the sum by the batch size.

    Args:
        input (Tensor): the input.
        target (Tensor): the target.
        size_average (bool | None): deprecated: use `reduction`.
        reduce (bool | None): deprecated: use `reduction`.
        reduction (str): how to reduce the losses: "mean", "batchmean", "sum" or "none".
        log_target (bool): whether the target holds logarithms.

    Example:
        >>> F.kl_div(torch.zeros(1), torch.ones(1), reduction='sum')
        tensor(0.)
    """
    reduction = reduction_name(size_average, reduce, reduction)
    if reduction == "batchmean":
        total = aten.kl_div(input, target, 2, log_target=log_target)
        return total / input.shape[0] if input.dim() else total
    if reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size. 'batchmean' divides "
            "only by the batch size, and aligns with the KL div math definition.",
            stacklevel=2,
        )
    return aten.kl_div(input, target, reduction_code(reduction), log_target=log_target)


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """exp(input) - target * input; or input - target * log(input + eps) when not `log_input`.

    Args:
        input (Tensor): the input.
        target (Tensor): the target.
        log_input (bool): whether the input is the logarithm of the rate.
        full (bool): whether the constant term is added.
        size_average (bool | None): deprecated: use `reduction`.
        eps (float): added to the input before its logarithm is taken.
        reduce (bool | None): deprecated: use `reduction`.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".

    Example:
        >>> F.poisson_nll_loss(torch.zeros(1), torch.ones(1))
        tensor(1.)
    """
    reduction = reduction_name(size_average, reduce, reduction)
    return aten.poisson_nll_loss(input, target, log_input, full, eps, reduction_code(reduction))


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """0.5 * (log(var) + (input - target) ** 2 / var), with var at least eps, plus 0.5 * log(2 pi) when `full`.

    Args:
        input (Tensor): the input.
        target (Tensor): the target.
        var (Tensor | float): the variances.
        full (bool): whether the constant term is added.
        eps (float): the lower bound of the variances.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".

    Example:
        >>> F.gaussian_nll_loss(torch.zeros(2), torch.ones(2), torch.ones(2))
        tensor(0.5000)
    """
    var = _variance(input, var)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    values = values_of(var)
    if values is not None and (values < 0).any():
        raise ValueError("var has negative entry/entries")
    bounded = var + (var.detach().clamp(min=eps) - var.detach())
    difference = input - target
    loss = 0.5 * (bounded.log() + difference * difference / bounded)
    return reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


def _variance(input: Tensor, var: Tensor | float) -> Tensor:
    """Return the variance in a shape that broadcasts: the input's, without the last dimension, or with size 1 in one
    dimension."""
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        return input.detach().new_full(input.shape, var)
    if var.shape == input.shape:
        return var
    if input.shape[:-1] == var.shape:
        return var.unsqueeze(-1)
    if input.dim() == var.dim():
        different = [size for own, size in zip(input.shape, var.shape, strict=True) if own != size]
        if different == [1]:
            return var
    raise ValueError(f"var is of incorrect size: {tuple(var.shape)} for an input of {tuple(input.shape)}")


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """log(1 + exp(-target * input)), for targets 1 and -1.

    Args:
        input (Tensor): the input.
        target (Tensor): the target.
        size_average (bool | None): deprecated: use `reduction`.
        reduce (bool | None): deprecated: use `reduction`.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".

    Example:
        >>> F.soft_margin_loss(torch.zeros(1), torch.ones(1))
        tensor(0.6931)
    """
    return aten.soft_margin_loss(input, target, _code(size_average, reduce, reduction))


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """input where the target is 1, max(0, margin - input) where it is -1.

    Args:
        input (Tensor): the input.
        target (Tensor): the target.
        margin (float): the margin in the formula.
        size_average (bool | None): deprecated: use `reduction`.
        reduce (bool | None): deprecated: use `reduction`.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".

    Example:
        >>> F.hinge_embedding_loss(torch.tensor([0.25]), torch.tensor([-1.0]))
        tensor(0.7500)
    """
    return aten.hinge_embedding_loss(input, target, margin, _code(size_average, reduce, reduction))


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, -target * (input1 - input2) + margin).

    Args:
        input1 (Tensor): the first operand.
        input2 (Tensor): the second operand.
        target (Tensor): the target.
        margin (float): the margin in the formula.
        size_average (bool | None): deprecated: use `reduction`.
        reduce (bool | None): deprecated: use `reduction`.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".

    Example:
        >>> F.margin_ranking_loss(torch.ones(1), torch.ones(1) * 2, torch.ones(1))
        tensor(1.)
    """
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    return aten.margin_ranking_loss(input1, input2, target, margin, _code(size_average, reduce, reduction))


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cosine where the target is 1, max(0, cosine - margin) where it is -1.

    Args:
        input1 (Tensor): the first operand.
        input2 (Tensor): the second operand.
        target (Tensor): the target.
        margin (float): the margin in the formula.
        size_average (bool | None): deprecated: use `reduction`.
        reduce (bool | None): deprecated: use `reduction`.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".

    Example:
        >>> F.cosine_embedding_loss(torch.ones(1, 2), torch.ones(1, 2), torch.ones(1))
        tensor(0.)
    """
    return aten.cosine_embedding_loss(input1, input2, target, margin, _code(size_average, reduce, reduction))


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin + distance(anchor, positive) - distance(anchor, negative)), distances being p-norms.

    Args:
        anchor (Tensor): the examples to compare with.
        positive (Tensor): examples of the same class.
        negative (Tensor): examples of other classes.
        margin (float): the margin in the formula.
        p (float): the exponent of the norm.
        eps (float): added to the differences.
        swap (bool): whether to use the distance from positive to negative where it is smaller.
        size_average (bool | None): deprecated: use `reduction`.
        reduce (bool | None): deprecated: use `reduction`.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".

    Example:
        >>> F.triplet_margin_loss(torch.zeros(1, 2), torch.zeros(1, 2), torch.ones(1, 2) * 9)
        tensor(0.)
    """
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    code = _code(size_average, reduce, reduction)
    return aten.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, code)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """triplet_margin_loss with the caller's distance function.

    Args:
        anchor (Tensor): the examples to compare with.
        positive (Tensor): examples of the same class.
        negative (Tensor): examples of other classes.
        distance_function (Callable[[Tensor, Tensor], Tensor] | None): a function of two tensors; the Euclidean
            distance by default.
        margin (float): the margin in the formula.
        swap (bool): whether to use the distance from positive to negative where it is smaller.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".

    Example:
        >>> F.triplet_margin_with_distance_loss(torch.zeros(1, 2), torch.zeros(1, 2), torch.ones(1, 2) * 9)
        tensor(0.)
    """
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    dims = anchor.dim(), positive.dim(), negative.dim()
    if len(set(dims)) > 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, "
            f"but got: anchor {dims[0]}D, positive {dims[1]}D, and negative {dims[2]}D inputs"
        )
    distance = distance_function or pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = aten.minimum.default(far, distance(positive, negative))
    excess = margin + near - far
    return reduced(excess.masked_fill(excess < 0, 0), reduction)


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over the other classes of max(0, margin - input[target] + input[other]) ** p.

    Args:
        input (Tensor): the input.
        target (Tensor): the target.
        p (int): the exponent, 1 or 2.
        margin (float): the margin in the formula.
        weight (Tensor | None): a weight per class.
        size_average (bool | None): deprecated: use `reduction`.
        reduce (bool | None): deprecated: use `reduction`.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".

    Example:
        >>> F.multi_margin_loss(torch.tensor([[1.0, 2.0]]), torch.tensor([0]))
        tensor(1.)
    """
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError(f"weight must be one-dimensional, got {weight.dim()} dimensions")
    return aten.multi_margin_loss(input, target, p, margin, weight, _code(size_average, reduce, reduction))


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over classes of max(0, 1 - input[label] + input[other]); a target row lists labels up to a -1.

    Args:
        input (Tensor): the input.
        target (Tensor): the target.
        size_average (bool | None): deprecated: use `reduction`.
        reduce (bool | None): deprecated: use `reduction`.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".

    Example:
        >>> F.multilabel_margin_loss(torch.tensor([[1.0, 2.0]]), torch.tensor([[0, -1]]))
        tensor(1.)
    """
    return aten.multilabel_margin_loss(input, target, _code(size_average, reduce, reduction))


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over classes of binary_cross_entropy_with_logits.

    Args:
        input (Tensor): the input.
        target (Tensor): the target.
        weight (Tensor | None): a weight per class.
        size_average (bool | None): deprecated: use `reduction`.
        reduce (bool | None): deprecated: use `reduction`.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".

    Example:
        >>> F.multilabel_soft_margin_loss(torch.zeros(1, 2), torch.ones(1, 2))
        tensor(0.6931)
    """
    reduction = reduction_name(size_average, reduce, reduction)
    loss = -(target * aten.log_sigmoid(input) + (1 - target) * aten.log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return reduced(loss.sum([-1]) / input.shape[-1], reduction)
