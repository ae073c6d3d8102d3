"""Losses of sequences without alignment (ctc_loss) and of a last linear layer (linear_cross_entropy)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rushlight.core.dtype import dtype
from rushlight.core.tensor import Tensor
from rushlight.nn.functional.common import aten, reduction_code
from rushlight.nn.functional.losses import cross_entropy

_ACCUMULATION_POLICIES = ("auto", "accurate", "balanced", "compact")


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Minus the log-probability of the targets, summed over all alignments with the inputs (Graves et al. 2006).

    log_probs: (time, batch, classes) or (time, classes). targets: (batch, longest), or all of them in one row. "mean"
    divides by the target lengths, then takes the mean over the batch.

    Args:
        log_probs (Tensor): logarithms of probabilities, `(T, N, C)`.
        targets (Tensor): the labels.
        input_lengths (Tensor | Sequence[int]): the length of each input.
        target_lengths (Tensor | Sequence[int]): the length of each target.
        blank (int): the number of the blank label.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".
        zero_infinity (bool): whether infinite losses count as zero.

    Example:
        >>> F.ctc_loss(torch.zeros(2, 1, 2), torch.tensor([[1]]), [2], [1])
        tensor(-1.0986)
    """
    lengths = [value if isinstance(value, Tensor) else list(value) for value in (input_lengths, target_lengths)]
    return aten.ctc_loss(log_probs, targets, *lengths, blank, reduction_code(reduction), zero_infinity)


@dataclass(frozen=True, slots=True)
class LinearCrossEntropyOptions:
    """Options of how torch splits linear_cross_entropy into chunks of the batch.

    The options are checked but have no effect: the loss is computed in one piece here.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: dtype | None = None

    def __post_init__(self) -> None:
        if self.acc_policy not in _ACCUMULATION_POLICIES:
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}, expected one of {_ACCUMULATION_POLICIES}")
        if self.chunking_method not in (None, "auto"):
            name, colon, factor = self.chunking_method.partition(":")
            if name != "aspect_ratio" or (colon and not (factor.isdigit() and int(factor) > 0)):
                raise ValueError(
                    f"invalid chunking_method: {self.chunking_method!r}, expected None, 'auto', 'aspect_ratio' or "
                    "'aspect_ratio:N'"
                )
        size = self.batch_chunk_size
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size!r}")
        if self.acc_dtype is not None and not self.acc_dtype.is_floating_point:
            raise ValueError(f"acc_dtype must be a floating dtype or None, got {self.acc_dtype!r}")


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: LinearCrossEntropyOptions | None = None,
) -> Tensor:
    """cross_entropy of `input` (N, features) or (features) after a linear map to classes.

    linear_weight is (C, features), or (C, d1, ..., features) for targets (N, d1, ...); linear_bias is the same without
    features. `weight` (C) weighs the classes.

    Args:
        input (Tensor): the input.
        linear_weight (Tensor): the weights of the linear layer.
        target (Tensor): the target.
        linear_bias (Tensor | None): the bias of the linear layer.
        weight (Tensor | None): a weight per class.
        reduction (str): how to reduce the losses: "mean", "sum" or "none".
        ignore_index (int | None): targets of this class are ignored.
        label_smoothing (float): the share of the target that is spread over all classes.
        options (LinearCrossEntropyOptions | None): how torch would chunk the batch; has no effect.

    Example:
        >>> F.linear_cross_entropy(torch.ones(1, 2), torch.zeros(3, 2), torch.tensor([1]))
        tensor(1.0986)
    """
    *outputs, features = linear_weight.shape
    _check_linear(input, linear_weight, linear_bias, target, outputs)
    bias = None if linear_bias is None else linear_bias.reshape([-1])
    scores = aten.linear.default(input, linear_weight.reshape([-1, features]), bias)
    if len(outputs) > 1:
        scores = scores.view([*scores.shape[:-1], *outputs])
    if ignore_index is not None and target.is_floating_point():
        raise RuntimeError("linear_cross_entropy: ignore_index cannot be specified when target contains probabilities")
    ignored = -100 if ignore_index is None else ignore_index
    return cross_entropy(
        scores, target, weight, ignore_index=ignored, reduction=reduction, label_smoothing=label_smoothing
    )


def _check_linear(
    input: Tensor, linear_weight: Tensor, linear_bias: Tensor | None, target: Tensor, outputs: list[int]
) -> None:
    if input.dim() not in (1, 2):
        raise RuntimeError(f"linear_cross_entropy: expected input with dimensionality 1 or 2, got {input.dim()}")
    if not outputs:
        raise RuntimeError("linear_cross_entropy: expected linear_weight with dimensionality at least 2, got 1")
    if input.shape[-1] != linear_weight.shape[-1]:
        raise RuntimeError(
            "linear_cross_entropy: expected equal input and linear_weight last dimensions (in_features), got "
            f"{input.shape[-1]} and {linear_weight.shape[-1]}, respectively"
        )
    if len(outputs) > 1 and input.dim() == 1:
        raise RuntimeError(
            f"linear_cross_entropy: K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires "
            f"batched input, (N, {input.shape[-1]}), got unbatched input with shape {tuple(input.shape)}"
        )
    if linear_bias is not None and list(linear_bias.shape) != outputs:
        raise RuntimeError(
            f"linear_cross_entropy: expected linear_bias shape {tuple(outputs)}, got {tuple(linear_bias.shape)}"
        )
