"""Losses as modules. `size_average` and `reduce` are deprecated spellings of `reduction`."""

from __future__ import annotations

from collections.abc import Callable

from rushlight.core.lazy_module import lazy_names
from rushlight.core.tensor import Tensor
from rushlight.nn import functional as F
from rushlight.nn.functional.common import reduction_name
from rushlight.nn.modules.distance import PairwiseDistance
from rushlight.nn.modules.module import Module


class _Loss(Module):
    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction_name(size_average, reduce, reduction)


class _WeightedLoss(_Loss):
    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class L1Loss(_Loss):
    """|input - target|.

    Args:
        size_average (bool | None): deprecated: use `reduction`.
        reduce (bool | None): deprecated: use `reduction`.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".

    Example:
        >>> torch.nn.L1Loss()(torch.tensor([0.5, 1.0]), torch.tensor([1.0, 1.0]))
        tensor(0.2500)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    """(input - target) ** 2.

    Args:
        size_average (bool | None): deprecated: use `reduction`.
        reduce (bool | None): deprecated: use `reduction`.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".

    Example:
        >>> torch.nn.MSELoss()(torch.tensor([0.5, 1.0]), torch.tensor([1.0, 1.0]))
        tensor(0.1250)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """Squared where |input - target| is below beta, absolute elsewhere.

    Args:
        size_average: deprecated: use `reduction`.
        reduce: deprecated: use `reduction`.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".
        beta (float): the difference at which the loss turns from quadratic to linear.

    Example:
        >>> torch.nn.SmoothL1Loss()(torch.tensor([0.5, 1.0]), torch.tensor([1.0, 1.0]))
        tensor(0.0625)
    """

    def __init__(self, size_average=None, reduce=None, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """SmoothL1Loss times delta.

    Args:
        reduction (str): how to reduce the losses: "mean", "sum" or "none".
        delta (float): the difference at which the loss turns from quadratic to linear.

    Example:
        >>> torch.nn.HuberLoss()(torch.tensor([0.5, 1.0]), torch.tensor([1.0, 1.0]))
        tensor(0.0625)
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        if not isinstance(delta, int | float):
            raise TypeError(f"delta must be a float or int, got: {type(delta)}")
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class NLLLoss(_WeightedLoss):
    """-input[target], for log-probabilities (N, C, ...).

    Args:
        weight (Tensor | None): a weight per class.
        size_average: deprecated: use `reduction`.
        ignore_index (int): targets of this class are ignored.
        reduce: deprecated: use `reduction`.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".

    Example:
        >>> torch.nn.NLLLoss()(torch.tensor([[-1.0, -2.0]]), torch.tensor([1]))
        tensor(2.)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average=None,
        ignore_index: int = -100,
        reduce=None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class NLLLoss2d(NLLLoss):
    """The old name of NLLLoss for images.

    Args:
        weight (Tensor | None): a weight per class.
        size_average: deprecated: use `reduction`.
        ignore_index (int): targets of this class are ignored.
        reduce: deprecated: use `reduction`.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".

    Example:
        >>> torch.nn.NLLLoss2d()(torch.zeros(1, 2, 1, 1), torch.zeros(1, 1, 1, dtype=torch.long))
        tensor(0.)
    """


class CrossEntropyLoss(_WeightedLoss):
    """-log softmax(input)[target], for scores (N, C, ...) and class numbers or probabilities.

    Args:
        weight (Tensor | None): a weight per class.
        size_average: deprecated: use `reduction`.
        ignore_index (int): targets of this class are ignored.
        reduce: deprecated: use `reduction`.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".
        label_smoothing (float): the share of the target that is spread over all classes.

    Example:
        >>> torch.nn.CrossEntropyLoss()(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
        tensor(0.6931)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average=None,
        ignore_index: int = -100,
        reduce=None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class BCELoss(_WeightedLoss):
    """-target * log(input) - (1 - target) * log(1 - input).

    Args:
        weight (Tensor | None): a weight per element.
        size_average (bool | None): deprecated: use `reduction`.
        reduce (bool | None): deprecated: use `reduction`.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".

    Example:
        >>> torch.nn.BCELoss()(torch.tensor([0.5, 1.0]), torch.tensor([1.0, 1.0]))
        tensor(0.3466)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_WeightedLoss):
    """BCELoss of sigmoid(input); `pos_weight` weighs the positive targets.

    Args:
        weight (Tensor | None): a weight per element.
        size_average: deprecated: use `reduction`.
        reduce: deprecated: use `reduction`.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".
        pos_weight (Tensor | None): a factor for the positive examples of each class.

    Example:
        >>> torch.nn.BCEWithLogitsLoss()(torch.tensor([0.5, 1.0]), torch.tensor([1.0, 1.0]))
        tensor(0.3937)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average=None,
        reduce=None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )


class KLDivLoss(_Loss):
    """target * (log(target) - input), for log-probabilities `input`.

    Args:
        size_average: deprecated: use `reduction`.
        reduce: deprecated: use `reduction`.
        reduction (str): how to reduce the losses: "mean", "batchmean", "sum" or "none".
        log_target (bool): whether the target holds logarithms.

    Example:
        >>> torch.nn.KLDivLoss(reduction='sum')(torch.zeros(1), torch.ones(1))
        tensor(0.)
    """

    def __init__(self, size_average=None, reduce=None, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class PoissonNLLLoss(_Loss):
    """The negative log-likelihood of counts under a Poisson distribution.

    Args:
        log_input (bool): whether the input is the logarithm of the rate.
        full (bool): whether the constant term is added.
        size_average: deprecated: use `reduction`.
        eps (float): added to the input before its logarithm is taken.
        reduce: deprecated: use `reduction`.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".

    Example:
        >>> torch.nn.PoissonNLLLoss()(torch.zeros(1), torch.ones(1))
        tensor(1.)
    """

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average=None,
        eps: float = 1e-8,
        reduce=None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(
            log_input, target, log_input=self.log_input, full=self.full, eps=self.eps, reduction=self.reduction
        )


class GaussianNLLLoss(_Loss):
    """The negative log-likelihood under a normal distribution of given variance.

    Args:
        full (bool): whether the constant term is added.
        eps (float): the lower bound of the variances.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".

    Example:
        >>> torch.nn.GaussianNLLLoss()(torch.zeros(2), torch.ones(2), torch.ones(2))
        tensor(0.5000)
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class SoftMarginLoss(_Loss):
    """log(1 + exp(-target * input)), for targets 1 and -1.

    Args:
        size_average (bool | None): deprecated: use `reduction`.
        reduce (bool | None): deprecated: use `reduction`.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".

    Example:
        >>> torch.nn.SoftMarginLoss()(torch.zeros(1), torch.ones(1))
        tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class HingeEmbeddingLoss(_Loss):
    """input where the target is 1, max(0, margin - input) where it is -1.

    Args:
        margin (float): the margin in the formula.
        size_average: deprecated: use `reduction`.
        reduce: deprecated: use `reduction`.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".

    Example:
        >>> torch.nn.HingeEmbeddingLoss()(torch.tensor([0.25]), torch.tensor([-1.0]))
        tensor(0.7500)
    """

    def __init__(self, margin: float = 1.0, size_average=None, reduce=None, reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(_Loss):
    """max(0, -target * (input1 - input2) + margin).

    Args:
        margin (float): the margin in the formula.
        size_average: deprecated: use `reduction`.
        reduce: deprecated: use `reduction`.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".

    Example:
        >>> torch.nn.MarginRankingLoss()(torch.ones(1), torch.ones(1) * 2, torch.ones(1))
        tensor(1.)
    """

    def __init__(self, margin: float = 0.0, size_average=None, reduce=None, reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(_Loss):
    """1 - cosine where the target is 1, max(0, cosine - margin) where it is -1.

    Args:
        margin (float): the margin in the formula.
        size_average: deprecated: use `reduction`.
        reduce: deprecated: use `reduction`.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".

    Example:
        >>> torch.nn.CosineEmbeddingLoss()(torch.ones(1, 2), torch.ones(1, 2), torch.ones(1))
        tensor(0.)
    """

    def __init__(self, margin: float = 0.0, size_average=None, reduce=None, reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class TripletMarginLoss(_Loss):
    """max(0, margin + distance(anchor, positive) - distance(anchor, negative)).

    Args:
        margin (float): the margin in the formula.
        p (float): the exponent of the norm.
        eps (float): added to the differences.
        swap (bool): whether to use the distance from positive to negative where it is smaller.
        size_average: deprecated: use `reduction`.
        reduce: deprecated: use `reduction`.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".

    Example:
        >>> torch.nn.TripletMarginLoss()(torch.zeros(1, 2), torch.zeros(1, 2), torch.ones(1, 2) * 9)
        tensor(0.)
    """

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average=None,
        reduce=None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead")
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(
            anchor, positive, negative, self.margin, self.p, self.eps, self.swap, reduction=self.reduction
        )


class TripletMarginWithDistanceLoss(_Loss):
    """TripletMarginLoss with the caller's distance function.

    Args:
        distance_function (Callable[[Tensor, Tensor], Tensor] | None): a function of two tensors; the Euclidean
            distance by default.
        margin (float): the margin in the formula.
        swap (bool): whether to use the distance from positive to negative where it is smaller.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".

    Example:
        >>> torch.nn.TripletMarginWithDistanceLoss()(torch.zeros(1, 2), torch.zeros(1, 2), torch.ones(1, 2) * 9)
        tensor(0.)
    """

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise ValueError(
                f"TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {margin} instead"
            )
        self.distance_function = PairwiseDistance() if distance_function is None else distance_function
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


class MultiMarginLoss(_WeightedLoss):
    """The mean over the other classes of max(0, margin - input[target] + input[other]) ** p.

    Args:
        p (int): the exponent, 1 or 2.
        margin (float): the margin in the formula.
        weight (Tensor | None): a weight per class.
        size_average: deprecated: use `reduction`.
        reduce: deprecated: use `reduction`.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".

    Example:
        >>> torch.nn.MultiMarginLoss()(torch.tensor([[1.0, 2.0]]), torch.tensor([0]))
        tensor(1.)
    """

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average=None,
        reduce=None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D instead")
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(
            input, target, p=self.p, margin=self.margin, weight=self.weight, reduction=self.reduction
        )


class MultiLabelMarginLoss(_Loss):
    """The mean over classes of max(0, 1 - input[label] + input[other]).

    Args:
        size_average (bool | None): deprecated: use `reduction`.
        reduce (bool | None): deprecated: use `reduction`.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".

    Example:
        >>> torch.nn.MultiLabelMarginLoss()(torch.tensor([[1.0, 2.0]]), torch.tensor([[0, -1]]))
        tensor(1.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """The mean over classes of BCEWithLogitsLoss.

    Args:
        weight (Tensor | None): a weight per class.
        size_average (bool | None): deprecated: use `reduction`.
        reduce (bool | None): deprecated: use `reduction`.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".

    Example:
        >>> torch.nn.MultiLabelSoftMarginLoss()(torch.zeros(1, 2), torch.ones(1, 2))
        tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, self.weight, reduction=self.reduction)


# PyTorch's module of this name also has these classes; they are imported lazily.
__getattr__, __dir__ = lazy_names(globals(), {
    "rushlight.nn.modules.sequence_loss": ("CTCLoss", "LinearCrossEntropyLoss"),
})  # fmt: skip
