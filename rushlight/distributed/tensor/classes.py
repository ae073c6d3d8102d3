"""Cross entropy of logits that are cut along the classes: what `loss_parallel` lets operators do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.core.strides import wrap_dim
from rushlight.core.tensor import Tensor
from rushlight.distributed.collectives import all_reduce
from rushlight.distributed.engine.process_group import ProcessGroup
from rushlight.distributed.engine.reduce_op import RedOpType
from rushlight.distributed.tensor.layout import Spec, local_part
from rushlight.distributed.tensor.placement_types import Shard
from rushlight.distributed.tensor.special import special
from rushlight.ops import aten


def _groups(spec: Spec, dim: int) -> list[ProcessGroup]:
    """Return the groups of ranks among which a dimension is cut."""
    return [spec.mesh.get_group(number) for number, placement in enumerate(spec.placements) if placement == Shard(dim)]


def _reduced(values: Tensor, groups: list[ProcessGroup], operation: RedOpType) -> Tensor:
    values = values.contiguous()
    for group in groups:
        all_reduce(values, operation, group)
    return values


@special("_log_softmax")
def log_softmax(op: Any, args: tuple, kwargs: dict, specs: Sequence[Spec], outputs: Sequence[Spec]) -> Tensor:
    """Logarithms of the softmax, with the greatest logit and the sum of exponentials of all ranks."""
    logits, dim = args[0], wrap_dim(args[1], args[0].dim())
    groups = _groups(specs[0], dim)
    if not groups:
        return op(*args, **kwargs)
    shifted = logits - _reduced(_greatest(logits, dim), groups, RedOpType.MAX)
    return shifted - aten.log(_reduced(aten.sum(aten.exp(shifted), [dim], True), groups, RedOpType.SUM))


def _greatest(logits: Tensor, dim: int) -> Tensor:
    if logits.shape[dim]:
        return aten.amax(logits, [dim], True)
    sizes = [1 if place == dim else size for place, size in enumerate(logits.shape)]
    return aten.new_full(logits, sizes, float("-inf"))


@special("_log_softmax_backward_data")
def log_softmax_backward(op: Any, args: tuple, kwargs: dict, specs: Sequence[Spec], outputs: Sequence[Spec]) -> Tensor:
    """The gradient of the logits, with the sum of all classes' gradients."""
    grad, output, dim = args[0], args[1], wrap_dim(args[2], args[0].dim())
    groups = _groups(specs[1], dim)
    if not groups:
        return op(*args, **kwargs)
    return grad - aten.exp(output) * _reduced(aten.sum(grad, [dim], True), groups, RedOpType.SUM)


def _own_targets(target: Tensor, spec: Spec, dim: int, count: int, ignored: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the targets among this rank's classes, which of them are, and targets of all ranks without the ignored ones."""
    counts = target != ignored
    every = aten.where(counts, target, aten.zeros_like(target))
    first = local_part(spec.shape, spec.mesh, spec.placements)[1][dim]
    own = every - first
    inside = counts & (own >= 0) & (own < count)
    return own.masked_fill(~inside, 0), inside, every


def _weights(weight: Tensor | None, every: Tensor, counts: Tensor, like: Tensor) -> Tensor:
    """Return the weight of each sample: that of its class, 0 where it is ignored."""
    found = aten.ones_like(every, dtype=like.dtype) if weight is None else weight[every]
    return found.masked_fill(~counts, 0)


@special("nll_loss_forward")
def nll_loss(op: Any, args: tuple, kwargs: dict, specs: Sequence[Spec], outputs: Sequence[Spec]) -> tuple[Tensor, Tensor]:
    """Each sample's loss is on the rank that has its class."""
    log_probabilities, target, weight, reduction, ignored = args
    dim = log_probabilities.dim() - 1
    groups = _groups(specs[0], dim)
    if not groups:
        return op(*args, **kwargs)
    own, inside, every = _own_targets(target, specs[0], dim, log_probabilities.shape[dim], ignored)
    weights = _weights(weight, every, target != ignored, log_probabilities)
    picked = aten.zeros_like(weights)
    if log_probabilities.shape[dim]:
        picked = aten.gather(log_probabilities, dim, own.unsqueeze(dim)).squeeze(dim).masked_fill(~inside, 0)
    losses, total = _reduced(-picked * weights, groups, RedOpType.SUM), aten.sum(weights)
    if reduction == 0:
        return losses, total
    return (aten.sum(losses) / total if reduction == 1 else aten.sum(losses)), total


@special("nll_loss_backward")
def nll_loss_backward(op: Any, args: tuple, kwargs: dict, specs: Sequence[Spec], outputs: Sequence[Spec]) -> Tensor:
    """The gradient of the classes that this rank has."""
    grad, log_probabilities, target, weight, reduction, ignored, total = args
    dim = log_probabilities.dim() - 1
    groups = _groups(specs[1], dim)
    if not groups:
        return op(*args, **kwargs)
    own, inside, every = _own_targets(target, specs[1], dim, log_probabilities.shape[dim], ignored)
    each = -_weights(weight, every, inside, log_probabilities) * (grad / total if reduction == 1 else grad)
    made = aten.zeros_like(log_probabilities)
    return aten.scatter_add(made, dim, own.unsqueeze(dim), each.unsqueeze(dim)) if made.shape[dim] else made
