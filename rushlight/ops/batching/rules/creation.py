"""Batching rules of `empty_like` and its kin: each example gets its own new tensor, so that it can be written to."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rushlight.core.tensor import Tensor
from rushlight.ops.batching.kernel import rule, rules
from rushlight.ops.batching.layout import aten, levels_of, make_batched, value_of
from rushlight.ops.batching.rules.pointwise import without_order
from rushlight.ops.dispatcher import OpOverload


def _make_like_rule(op: OpOverload) -> Callable:
    def run(self: Tensor, *args: object, memory_format: object = None, **options: object) -> Tensor:
        made = op(value_of(self), *args, memory_format=without_order(memory_format), **options)
        return make_batched(made, levels_of(self))

    return run


def _make_new_rule(op: OpOverload) -> Callable:
    def run(self: Tensor, size: Sequence[int], *args: object, **options: object) -> Tensor:
        value, levels = value_of(self), levels_of(self)
        return make_batched(op(value, [*value.shape[: len(levels)], *size], *args, **options), levels)

    return run


rules(("empty_like", "zeros_like", "ones_like", "full_like"), _make_like_rule)
rules(("new_empty", "new_zeros", "new_ones", "new_full"), _make_new_rule)


@rule("new_empty_strided")
def _new_empty_strided_rule(self: Tensor, size: Sequence[int], stride: Sequence[int], **options: object) -> Tensor:
    value, levels = value_of(self), levels_of(self)
    step = 1 + sum((extent - 1) * step for extent, step in zip(size, stride, strict=True)) if 0 not in size else 0
    strides: list[int] = []
    batch = value.shape[: len(levels)]
    for extent in reversed(batch):
        strides.insert(0, step)
        step = step * extent
    made = aten.new_empty_strided.default(value, [*batch, *size], [*strides, *stride], **options)
    return make_batched(made, levels)
