"""AdaptiveLogSoftmaxWithLoss: a softmax over many classes in which rare classes share smaller layers (Grave et al. 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rushlight.core.tensor import Tensor
from rushlight.nn import functional as F
from rushlight.nn.modules.container import ModuleList, Sequential
from rushlight.nn.modules.linear import Linear
from rushlight.nn.modules.module import Module
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


class ASMoutput(NamedTuple):
    """The log-probability of each target, and the loss: minus their mean."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-probabilities of `n_classes` classes, which are numbered by decreasing frequency.

    Classes below cutoffs[0] have outputs of their own in the head; the others are in clusters that end at the next cutoffs,
    each with an output in the head and a layer of in_features / div_value ** (cluster + 1) hidden features. Raises
    ValueError unless the cutoffs are increasing integers between 1 and n_classes - 1.

    Args:
        in_features (int): the features of the input.
        n_classes (int): the number of classes.
        cutoffs (Sequence[int]): the first class of each cluster of rarer classes.
        div_value (float): the divisor of the hidden features from one cluster to the next.
        head_bias (bool): whether the head has a bias.
        device: the device of the parameters.
        dtype: the dtype of the parameters.

    Example:
        >>> torch.nn.AdaptiveLogSoftmaxWithLoss(4, 6, [2])(torch.ones(1, 4), torch.tensor([5])).output.shape
        torch.Size([1])
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device=None,
        dtype=None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        _check_cutoffs(cutoffs, n_classes)
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias, device, dtype)
        self.tail = ModuleList()
        for cluster in range(self.n_clusters):
            hidden = int(in_features // (div_value ** (cluster + 1)))
            size = self.cutoffs[cluster + 1] - self.cutoffs[cluster]
            layers = Linear(in_features, hidden, False, device, dtype), Linear(hidden, size, False, device, dtype)
            self.tail.append(Sequential(*layers))

    def reset_parameters(self) -> None:
        """Reset the linear layers."""
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> ASMoutput:
        """Output and loss for (N, in_features) and (N), or for a single sample without N.

        Raises RuntimeError for shapes that do not fit and for targets outside of [0, n_classes - 1].
        """
        _check_target_shape(input_, target_)
        batched = target_.dim() > 0
        input = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        if target.numel() and not 0 <= int(target.min()) <= int(target.max()) < self.n_classes:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], "
                f"but values in range [{int(target.min())}, {int(target.max())}] were found. "
            )
        output = self._target_log_prob(input, target)
        return ASMoutput(output if batched else output.squeeze(0), (-output).mean())

    def _target_log_prob(self, input: Tensor, target: Tensor) -> Tensor:
        head = F.log_softmax(self.head(input), 1)
        # The head's output for the target: its own, or that of its cluster.
        position = target
        correction = input.new_zeros([target.shape[0]])
        for cluster, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:], strict=False)):
            inside = target.ge(low).logical_and(target.lt(high))
            rows = inside.nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            within = F.log_softmax(self.tail[cluster](input.index_select(0, rows)), 1)
            chosen = within.gather(1, (target.index_select(0, rows) - low).unsqueeze(1)).squeeze(1)
            correction = correction.index_add(0, rows, chosen.to(correction.dtype))
            position = position.masked_fill(inside, self.shortlist_size + cluster)
        return head.gather(1, position.unsqueeze(1)).squeeze(1) + correction

    def log_prob(self, input: Tensor) -> Tensor:
        """Return the log-probabilities (N, n_classes) of all classes."""
        head = F.log_softmax(self.head(input), 1)
        parts = [head.narrow(1, 0, self.shortlist_size)]
        for cluster, layers in enumerate(self.tail):
            parts.append(F.log_softmax(layers(input), 1) + head.narrow(1, self.shortlist_size + cluster, 1))
        return aten.cat.default(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """Return the most likely class of each row: (N)."""
        return self.log_prob(input).argmax(1)


def _check_cutoffs(cutoffs: list[int], n_classes: int) -> None:
    if not cutoffs:
        raise ValueError("cutoffs should be a sequence of length larger than 0")
    if any(int(cutoff) != cutoff for cutoff in cutoffs):
        raise ValueError("cutoffs should be a sequence of unique, positive integers: some are no integers")
    increasing = all(low < high for low, high in zip(cutoffs, cutoffs[1:], strict=False))
    if not increasing or cutoffs[0] <= 0 or cutoffs[-1] > n_classes - 1:
        raise ValueError(
            "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value is "
            f"between 1 and n_classes-1; got {cutoffs} for n_classes={n_classes}"
        )


def _check_target_shape(input: Tensor, target: Tensor) -> None:
    if target.dim() > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if target.dim() == 0 and input.dim() != 1:
        raise RuntimeError("0D target tensor expects 1D input tensor")
    if target.dim() == 1 and input.dim() != 2:
        raise RuntimeError(f"1D target tensor expects 2D input tensors, but found inputs with size {tuple(input.shape)}")
    if target.dim() == 1 and input.shape[0] != target.shape[0]:
        raise RuntimeError("Input and target should have the same size in the batch dimension.")
