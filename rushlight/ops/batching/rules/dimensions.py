"""Batching rules along dimensions of an example: reductions, scans, sorting, gathering, transforms.

Dimensions are shifted past the hidden ones. All tensors are expanded to the same hidden dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rushlight.core.strides import wrap_dim, wrap_dims
from rushlight.core.tensor import Tensor
from rushlight.ops.batching.kernel import invoke, loop_over_examples, rule, rules, wrapped
from rushlight.ops.batching.layout import (
    all_levels,
    aten,
    batch_sizes,
    is_batched,
    levels_of,
    make_batched,
    spread,
    value_of,
)
from rushlight.ops.dispatcher import OpOverload

ALL_OR_SOME = ("sum.dim_IntList", "amax", "amin", "any.dims", "all.dims", "var.correction")
ALONG_DIM = (
    "prod.dim_int", "cumsum", "sort.stable", "topk", "_softmax", "_log_softmax", "_softmax_backward_data",
    "_log_softmax_backward_data", "cumprod", "cummax", "cummin", "logcumsumexp", "mode", "gather", "scatter.src", "scatter_add",
    "scatter_reduce.two", "_fft_c2c", "_fft_r2c", "_fft_c2r",
)  # fmt: skip


def _dims(dim: int | Sequence[int], rank: int, count: int) -> int | list[int]:
    """Return the value's dimensions for the given dimensions of an example."""
    if isinstance(dim, int):
        return count + wrap_dim(dim, rank)
    return [count + one for one in wrap_dims(dim, rank)]


def along_dim(op: OpOverload) -> Callable:
    """Return the rule of an operator whose argument `dim` is one dimension or several."""
    positions = op._schema.positions
    position, followed = positions["dim"], positions["index"] if op._opname == "gather" else 0

    def run(*args: object, **kwargs: object) -> object:
        stack = op.normalize(args, kwargs)
        levels = all_levels(stack)
        sizes = batch_sizes(levels, stack) if len(levels) > 1 or len(args) > 1 else value_of(stack[0]).shape[: len(levels)]
        stack[position] = _dims(stack[position], stack[0].dim(), len(levels))
        shaped = stack[followed].dim()
        stack = [spread(item, levels, sizes, 1) if isinstance(item, Tensor) else item for item in stack]
        result = invoke(op, stack)
        return wrapped(result if shaped else _without_dims(result, len(levels)), levels)

    return run


def _without_dims(result: object, count: int) -> object:
    """Remove the size-1 dimension that 0-dim examples were given."""
    if isinstance(result, Tensor):
        return aten.squeeze.dims(result, [count]) if result.dim() > count else result
    return tuple(_without_dims(item, count) for item in result)


def over_all_or_some(op: OpOverload) -> Callable:
    """Return the rule of a reduction over `dim`; an empty `dim` means all dimensions of an example."""
    position = op._schema.positions["dim"]

    def run(*args: object, **kwargs: object) -> object:
        stack = op.normalize(args, kwargs)
        self, dim = stack[0], stack[position]
        value, levels = value_of(self), levels_of(self)
        count, rank = len(levels), self.dim()
        dim = [dim] if isinstance(dim, int) else dim
        chosen = _dims(dim, rank, count) if dim else range(count, count + max(rank, 1))
        stack[0] = value if rank else aten.unsqueeze.default(value, count)
        stack[position] = list(chosen)
        result = invoke(op, stack)
        return make_batched(result if rank else _without_dims(result, count), levels)

    return run


def over_one_or_all(op: OpOverload) -> Callable:
    """Return the rule of argmax and argmin: without `dim`, positions in the flattened example."""

    def run(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
        value, levels = value_of(self), levels_of(self)
        count, rank = len(levels), self.dim()
        if dim is not None and rank:
            return make_batched(op(value, _dims(dim, rank, count), keepdim), levels)
        flat = aten.reshape.default(value, [*value.shape[:count], self.numel()])
        found = op(flat, count)
        return make_batched(aten.view.default(found, [*found.shape, *[1] * rank]) if keepdim else found, levels)

    return run


rules(ALONG_DIM, along_dim)
rules(ALL_OR_SOME, over_all_or_some)
rules(("argmax", "argmin"), over_one_or_all)


def _over_all_elements(op: OpOverload) -> Callable:
    """Return the rule of a median over all elements."""

    def run(self: Tensor) -> Tensor:
        value, levels = value_of(self), levels_of(self)
        flat = aten.reshape.default(value, [*value.shape[: len(levels)], self.numel()])
        return make_batched(getattr(aten, op._opname).dim(flat, -1)[0], levels)

    return run


rules(("median", "nanmedian"), _over_all_elements)


rules(("histc",), loop_over_examples)  # its range depends on the values


@rule("cat")
def _cat_rule(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    levels = all_levels(tensors)
    sizes = batch_sizes(levels, tensors)
    # cat skips empty 1-dimensional tensors, with or without batches.
    kept = [tensor for tensor in tensors if tensor.shape != (0,)] or list(tensors)
    rank = kept[0].dim()
    values = [spread(tensor, levels, sizes) for tensor in kept]
    if any(tensor.dim() != rank for tensor in kept) or not rank:
        return aten.cat.default([value[(0,) * len(levels)] for value in values], dim)
    return make_batched(aten.cat.default(values, len(levels) + (0 if kept[0].shape == (0,) else wrap_dim(dim, rank))), levels)


@rule("constant_pad_nd")
def _pad_rule(self: Tensor, pad: Sequence[int], value: object = 0) -> Tensor:
    if len(pad) > 2 * self.dim():
        raise RuntimeError(
            f"Length of pad should be no more than twice the number of dimensions of the input. Pad length is {len(pad)} while "
            f"the input has {self.dim()} dimensions."
        )
    return make_batched(aten.constant_pad_nd.default(value_of(self), pad, value), levels_of(self))


@rule("searchsorted.Tensor")
def _searchsorted_rule(sorted_sequence: Tensor, self: Tensor, *, sorter: Tensor | None = None, **options: object) -> Tensor:
    levels = all_levels(sorted_sequence, self, sorter)
    sizes = batch_sizes(levels, sorted_sequence, self, sorter)
    boundaries = spread(sorted_sequence, levels, sizes)
    order = None if sorter is None else spread(sorter, levels, sizes)
    wanted = spread(self, levels, sizes)
    shape = wanted.shape
    if sorted_sequence.dim() == 1:
        if not any(is_batched(tensor) for tensor in (sorted_sequence, sorter)):
            found = aten.searchsorted.Tensor(sorted_sequence, value_of(self), sorter=sorter, **options)
            return make_batched(found, levels)
        wanted = aten.reshape.default(wanted, [*sizes, self.numel()])
    found = aten.searchsorted.Tensor(boundaries, wanted, sorter=order, **options)
    return make_batched(aten.view.default(found, shape), levels)
