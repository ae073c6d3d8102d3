"""Losses with more than input and target: CTCLoss, and LinearCrossEntropyLoss with its own linear layer."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rushlight.core.tensor import Tensor
from rushlight.nn import functional as F
from rushlight.nn.functional.classification import LinearCrossEntropyOptions
from rushlight.nn.modules.linear import Linear
from rushlight.nn.modules.loss import _Loss, _WeightedLoss


class CTCLoss(_Loss):
    """Minus the log-probability of target sequences, summed over all alignments with the inputs (Graves et al. 2006).

    Args:
        blank (int): the number of the blank label.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".
        zero_infinity (bool): whether infinite losses count as zero.

    Example:
        >>> torch.nn.CTCLoss()(torch.zeros(2, 1, 2), torch.tensor([[1]]), [2], [1])
        tensor(-1.0986)
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(
        self,
        log_probs: Tensor,
        targets: Tensor,
        input_lengths: Tensor | Sequence[int],
        target_lengths: Tensor | Sequence[int],
    ) -> Tensor:
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )


class LinearCrossEntropyLoss(_WeightedLoss):
    """CrossEntropyLoss of a linear map of (N, in_features) or (in_features) to classes.

    The map has outputs (num_classes, *out_features), for targets (N, *out_features). Raises RuntimeError for a `weight`
    that is not (num_classes) and for label_smoothing outside of [0, 1].

    Args:
        in_features (int): the features of the input.
        num_classes (int): the number of classes; -1 for the largest label plus one.
        out_features (tuple[int, ...]): the features of the result.
        bias (bool): whether the layer has a learned bias.
        device: the device of the parameters.
        dtype: the dtype of the parameters.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".
        weight (Tensor | None): a weight per class.
        ignore_index (int | None): targets of this class are ignored.
        label_smoothing (float): the share of the target that is spread over all classes.
        options (LinearCrossEntropyOptions | None): how torch would chunk the batch; has no effect.

    Example:
        >>> torch.nn.LinearCrossEntropyLoss(4, 3)(torch.ones(1, 4), torch.tensor([1])).shape
        torch.Size([])
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device=None,
        dtype=None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__(weight, reduction=reduction)
        self.num_classes = num_classes
        self.out_features = tuple(out_features)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.linear = Linear(in_features, math.prod(out_features, start=num_classes), bias, device, dtype)
        self.options = options

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
            f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        outputs = [self.num_classes, *self.out_features]
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape([*outputs, self.linear.in_features]),
            target,
            linear_bias=None if bias is None else bias.reshape(outputs),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )
