"""Gradients of batched tensors (`rushlight.ops.batching`), calculated from the tensors' values.

Examples do not depend on one another. So one gradient of an output's value, which holds all examples, with respect to an
input's value is the stack of the per-example gradients.
"""

from __future__ import annotations

from collections.abc import Callable

from rushlight.core.tensor import Tensor
from rushlight.ops.batching.layout import Levels, all_levels, aten, batch_sizes, levels_of, make_batched, spread, value_of
from rushlight.ops.batching.levels import Mapping, add_batch_dim, remove_batch_dim

_NOT_MAPPED_INPUT = (
    "torch.autograd.grad inside vmap: the gradient with respect to a tensor that all examples share would be a sum over them. "
    "Use torch.func.grad, vjp, jacrev or hessian inside vmap, or call torch.autograd.grad outside of it."
)


def gradients_of_values(
    grad: Callable, outputs: tuple, inputs: tuple, starts: tuple, options: dict
) -> tuple[Tensor | None, ...]:
    """Return `grad` where some tensors are batched; `starts` are the gradients of the outputs, batched or not.

    RuntimeError for the gradient of an input that some level of the outputs does not map over.
    """
    levels = all_levels(outputs)
    facing = [_as_value_gradient(start, output) for start, output in zip(starts, outputs, strict=True)]
    found = grad(tuple(map(value_of, outputs)), tuple(map(value_of, inputs)), tuple(facing), **options)
    for tensor, value in zip(inputs, found, strict=True):
        if value is not None and not set(levels) <= set(levels_of(tensor)):
            raise RuntimeError(_NOT_MAPPED_INPUT)
    return tuple(
        None if value is None else _as_batched_gradient(value, levels_of(i)) for value, i in zip(found, inputs, strict=True)
    )


def _as_value_gradient(start: Tensor, output: Tensor) -> Tensor:
    """Return the output's gradient as a gradient of its value: levels of the output become plain dimensions, further levels
    stay batched."""
    shown = levels_of(output)
    every = all_levels(start, output)
    value = spread(start, every, batch_sizes(every, start, output))
    hidden = tuple(level for level in every if level not in shown)
    order = [every.index(level) for level in (*hidden, *shown)]
    if hidden and order != list(range(len(every))):
        value = aten.permute.default(value, [*order, *range(len(every), value.dim())])
    return make_batched(value, hidden)


def _as_batched_gradient(gradient: Tensor, shown: Levels) -> Tensor:
    """Return the gradient of a value, batched again over the levels `shown`."""
    hidden, value = levels_of(gradient), value_of(gradient)
    every = tuple(sorted((*hidden, *shown)))
    order = [(*hidden, *shown).index(level) for level in every]
    if order != list(range(len(every))):
        value = aten.permute.default(value, [*order, *range(len(every), value.dim())])
    return make_batched(value, every)


def gradients_of_rows(grad: Callable, outputs: tuple, inputs: tuple, rows: tuple) -> tuple[Tensor | None, ...]:
    """Return `grad` for each row of gradients, all rows at once, stacked. `grad` takes outputs, inputs and gradients."""
    count = next(row for row in rows if row is not None).shape[0]
    with Mapping(count, "same") as level:
        starts = tuple(None if row is None else add_batch_dim(row, 0, level) for row in rows)
        found = grad(outputs, inputs, starts)
        return tuple(None if value is None else remove_batch_dim(value, level, 0) for value in found)
