"""Batching rules of normalisation, pooling and losses: examples become rows or channels, or the operator is decomposed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from rushlight.core.tensor import Tensor
from rushlight.ops.batching.kernel import first_example, rule, rules
from rushlight.ops.batching.layout import (
    Levels,
    all_levels,
    aten,
    batch_sizes,
    folded,
    is_batched,
    levels_of,
    make_batched,
    spread,
    value_of,
)
from rushlight.ops.dispatcher import OpOverload

_RUNNING = (
    "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in place, were not "
    "batched.\nIf you are using a module and do not need eval mode, please set `track_running_stats` to be False."
)


@rule("native_layer_norm")
def _layer_norm_rule(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple:
    shape = list(normalized_shape)
    if not is_batched(weight) and not is_batched(bias):
        found = aten.native_layer_norm.default(value_of(input), shape, weight, bias, eps)
        return tuple(make_batched(one, levels_of(input)) for one in found)
    output, mean, rstd = aten.native_layer_norm.default(input, shape, None, None, eps)
    output = output if weight is None else output * weight
    return output if bias is None else output + bias, mean, rstd


@rule("native_layer_norm_backward")
def _layer_norm_backward_rule(
    grad_out: Tensor, input: Tensor, normalized_shape: Sequence[int], mean: Tensor, rstd: Tensor, weight: Tensor | None,
    bias: Tensor | None, output_mask: Sequence[bool],
) -> tuple:  # fmt: skip
    scaled = grad_out if weight is None else grad_out * weight
    levels = all_levels(scaled, input, mean, rstd)
    sizes = batch_sizes(levels, scaled, input, mean, rstd)
    grad_input = grad_weight = grad_bias = None
    if output_mask[0]:
        parts = [spread(part, levels, sizes) for part in (scaled, input)]
        kept = [spread(part, levels, sizes) for part in (mean, rstd)]
        found = aten.native_layer_norm_backward.default(
            *parts, list(normalized_shape), *kept, None, None, (True, False, False)
        )
        grad_input = make_batched(found[0], levels)
    rows = tuple(range(input.dim() - len(normalized_shape)))
    if output_mask[1]:
        products = grad_out * ((input - mean) * rstd)
        grad_weight = products.sum(rows) if rows else products
    if output_mask[2]:
        grad_bias = grad_out.sum(rows) if rows else grad_out
    return grad_input, grad_weight, grad_bias


# Batch normalisation treats channels separately, so the channels of all examples are concatenated.


def _merge_into_channels(tensor: Tensor, levels: Levels, sizes: Sequence[int]) -> Tensor:
    """Merge examples (N, C, ...) into (N, examples * C, ...)."""
    value = aten.transpose.int(folded(spread(tensor, levels, sizes), len(levels)), 0, 1)
    return aten.reshape.default(value, [value.size(0), value.size(1) * value.size(2), *value.shape[3:]])


def _merge_vectors(tensor: Tensor | None, levels: Levels, sizes: Sequence[int]) -> Tensor | None:
    """Merge examples (C) into (examples * C)."""
    return None if tensor is None else aten.reshape.default(spread(tensor, levels, sizes), [-1])


def _split_channels(value: Tensor, like: Tensor, levels: Levels, sizes: Sequence[int]) -> Tensor:
    """Split (N, examples * C, ...) into examples (N, C, ...)."""
    value = aten.view.default(value, [value.size(0), *sizes, like.size(1), *value.shape[2:]])
    count = len(sizes)
    return make_batched(aten.permute.default(value, [*range(1, 1 + count), 0, *range(1 + count, value.dim())]), levels)


def _split_vector(value: Tensor, like: Tensor, levels: Levels, sizes: Sequence[int]) -> Tensor:
    """Split a vector over all channels into examples; None stays None."""
    channels = like.size(1) if value.numel() else 0
    return make_batched(aten.reshape.default(value, [*sizes, channels]), levels)


@rule("native_batch_norm")
def _batch_norm_rule(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    training: bool, momentum: float, eps: float,
) -> tuple:  # fmt: skip
    running = [tensor for tensor in (running_mean, running_var) if tensor is not None]
    if training and any(not set(levels_of(input)) <= set(levels_of(tensor)) for tensor in running):
        raise RuntimeError(_RUNNING)
    parts = (input, weight, bias, running_mean, running_var)
    levels = all_levels(parts)
    sizes = batch_sizes(levels, parts)
    vectors = [_merge_vectors(part, levels, sizes) for part in parts[1:]]
    found = aten.native_batch_norm.default(_merge_into_channels(input, levels, sizes), *vectors, training, momentum, eps)
    if training:
        for tensor, updated in zip(parts[3:], vectors[2:], strict=True):
            if tensor is not None and updated._impl.storage is not value_of(tensor)._impl.storage:
                aten.copy_.default(tensor, make_batched(aten.view.default(updated, [*sizes, *tensor.shape]), levels))
    output, *statistics = found
    return (_split_channels(output, input, levels, sizes), *(_split_vector(one, input, levels, sizes) for one in statistics))


@rule("_native_batch_norm_legit_no_training")
def _batch_norm_without_training_rule(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor, running_var: Tensor, momentum: float,
    eps: float,
) -> tuple:  # fmt: skip
    return _batch_norm_rule(input, weight, bias, running_mean, running_var, False, momentum, eps)


@rule("native_batch_norm_backward")
def _batch_norm_backward_rule(
    grad_out: Tensor, input: Tensor, weight: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    save_mean: Tensor | None, save_invstd: Tensor | None, train: bool, eps: float, output_mask: Sequence[bool],
) -> tuple:  # fmt: skip
    vectors = (weight, running_mean, running_var, save_mean, save_invstd)
    levels = all_levels(grad_out, input, vectors)
    sizes = batch_sizes(levels, grad_out, input, vectors)
    images = [_merge_into_channels(part, levels, sizes) for part in (grad_out, input)]
    found = aten.native_batch_norm_backward.default(
        *images, *(_merge_vectors(part, levels, sizes) for part in vectors), train, eps, output_mask
    )
    image, *slopes = found
    return (
        None if image is None else _split_channels(image, input, levels, sizes),
        *(None if slope is None else _split_vector(slope, input, levels, sizes) for slope in slopes),
    )


def _make_image_rule(op: OpOverload) -> Callable:
    """Return the rule of pooling: examples are merged with the batch dimension, or with the channels of a single image."""

    def run(*args: object, **kwargs: object) -> object:
        stack = op.normalize(args, kwargs)
        levels = all_levels(stack)
        sizes = batch_sizes(levels, stack)
        rank = stack[0].dim()
        if rank not in (3, 4):
            return first_example(op, stack)
        found = op(*[_merge_into_planes(item, levels, sizes, rank) if isinstance(item, Tensor) else item for item in stack])
        several = found if isinstance(found, tuple) else (found,)
        made = tuple(make_batched(_restore_leading_dims(one, stack[0], sizes, rank), levels) for one in several)
        return made if isinstance(found, tuple) else made[0]

    return run


def _merge_into_planes(tensor: Tensor, levels: Levels, sizes: Sequence[int], rank: int) -> Tensor:
    value = spread(tensor, levels, sizes)
    leading = math.prod(value.shape[: len(sizes) + rank - 3])
    return aten.reshape.default(value, [leading, *value.shape[-3:]])


def _restore_leading_dims(value: Tensor, like: Tensor, sizes: Sequence[int], rank: int) -> Tensor:
    return aten.reshape.default(value, [*sizes, *like.shape[: rank - 3], *value.shape[1:]])


rules(
    (
        "max_pool2d_with_indices", "max_pool2d_with_indices_backward", "avg_pool2d", "avg_pool2d_backward",
        "_adaptive_avg_pool2d", "_adaptive_avg_pool2d_backward", "adaptive_max_pool2d", "adaptive_max_pool2d_backward",
    ),
    _make_image_rule,
)  # fmt: skip

# Negative log-likelihood of (N, C) or (C). `reduction` is 0 for none, 1 for the mean, 2 for the sum.


def _weights(self: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int) -> tuple[Tensor, Tensor]:
    """Return the class of each sample (0 where it is ignored), and its weight (0 there)."""
    counted = target != ignore_index
    classes = aten.where.self(counted, target, aten.zeros_like.default(target))
    if weight is None:
        return classes, counted.to(self.dtype)
    chosen = aten.gather.default(weight.detach(), 0, classes.reshape(-1)).reshape(classes.shape)
    return classes, aten.where.self(counted, chosen, aten.zeros_like.default(chosen))


@rule("nll_loss_forward")
def _nll_loss_rule(self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int) -> tuple:
    classes, weights = _weights(self, target, weight, ignore_index)
    picked = aten.gather.default(self, -1, classes.unsqueeze(-1)).squeeze(-1)
    losses = aten.where.self(weights == 0, aten.zeros_like.default(picked), -picked * weights)
    total = weights.sum()
    if reduction == 0:
        return losses, total
    return losses.sum() / total if reduction == 1 else losses.sum(), total


@rule("nll_loss_backward")
def _nll_loss_backward_rule(
    grad_output: Tensor, self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int,
    total_weight: Tensor,
) -> Tensor:  # fmt: skip
    classes, weights = _weights(self, target, weight, ignore_index)
    slopes = -(grad_output * weights)
    slopes = slopes / total_weight if reduction == 1 else slopes
    return aten.scatter.src(aten.zeros_like.default(self), -1, classes.unsqueeze(-1), slopes.to(self.dtype).unsqueeze(-1))
