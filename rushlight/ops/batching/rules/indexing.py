"""Batching rules of indexing by tensors. With batched indices, `arange` indexes the hidden dimensions, so that each index reads
its own example."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rushlight.core.dtype import bool_, int64, uint8
from rushlight.core.strides import broadcast_shapes, wrap_dim
from rushlight.core.tensor import Tensor
from rushlight.ops.batching.kernel import check_inplace, first_example, rule
from rushlight.ops.batching.layout import (
    Levels,
    aligned,
    all_levels,
    aten,
    batch_sizes,
    is_batched,
    levels_of,
    make_batched,
    spread,
    value_of,
)

_BY_MASK = (
    "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over indexing with a "
    "boolean mask."
)


class _IndexedDims:
    """The position of indexed elements: the indexed dimensions, the indices' common shape, and its position in the result.

    `dims` are the indexed dimensions of an example. If `front`, the indices' dimensions come first in the result, else at
    position `at`.
    """

    def __init__(self, self_: Tensor, indices: Sequence[Tensor | None]):
        self.rank = self_.dim()
        self.indices: list[Tensor] = []
        self.dims: list[int] = []
        dim = 0
        for index in indices:
            if index is None:
                dim += 1
                continue
            for one in _position_tensors(index):
                self.indices.append(one)
                self.dims.append(dim)
                dim += 1
        if dim > self.rank:
            raise IndexError(f"too many indices for tensor of dimension {self.rank} (got {dim})")
        adjacent = not self.dims or self.dims[-1] - self.dims[0] + 1 == len(self.dims)
        self.at = self.dims[0] if self.dims and adjacent else 0
        self.shape = broadcast_shapes(*(tuple(index.shape) for index in self.indices))
        self.others = [one for one in range(self.rank) if one not in self.dims]

    def order(self, count: int) -> list[int]:
        """Return the permutation of a value with `count` hidden dimensions to the order hidden, indexed, others."""
        return [*range(count), *(count + dim for dim in self.dims), *(count + dim for dim in self.others)]

    def to_result(self, count: int) -> list[int]:
        """Return the permutation from (hidden, indices, others) to the dimensions of the result."""
        hidden, wide = list(range(count)), len(self.shape)
        indexed = list(range(count, count + wide))
        others = list(range(count + wide, count + wide + len(self.others)))
        return [*hidden, *others[: self.at], *indexed, *others[self.at :]]


def _position_tensors(index: Tensor) -> tuple[Tensor, ...]:
    """Return an index as tensors of positions, one per dimension: a mask stands for as many dimensions as it has."""
    if index.dtype not in (bool_, uint8):
        return (index,)
    if is_batched(index):
        raise RuntimeError(_BY_MASK)
    return tuple(aten.unbind.int(aten.nonzero.default(index), 1))


def _positions(indexed: _IndexedDims, levels: Levels, sizes: Sequence[int]) -> list[Tensor]:
    """Return the indices of a value's leading dimensions: `arange` for hidden ones, then the example's own."""
    wide, device = len(indexed.shape), indexed.indices[0].device
    found = []
    for number, size in enumerate(sizes):
        counted = aten.arange.start_step(0, size, 1, dtype=int64, device=device)
        found.append(aten.view.default(counted, [size, *[1] * (len(sizes) - 1 - number + wide)]))
    return found + [aligned(index, levels, wide) if is_batched(index) else index for index in indexed.indices]


@rule("index.Tensor")
def _index_rule(self: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    indexed = _IndexedDims(self, indices)
    if not indexed.dims:
        return aten.alias.default(self)
    levels = all_levels(self, indexed.indices)
    sizes = batch_sizes(levels, self, indexed.indices)
    count = len(levels)
    if not any(is_batched(index) for index in indexed.indices):
        value = aten.permute.default(value_of(self), indexed.order(count))
        found = aten.index.Tensor(value, [*[None] * count, *indexed.indices])
    elif not is_batched(self):
        value = aten.permute.default(self, indexed.order(0))
        found = aten.index.Tensor(value, [aligned(index, levels, len(indexed.shape)) for index in indexed.indices])
    else:
        value = aten.permute.default(spread(self, levels, sizes), indexed.order(count))
        found = aten.index.Tensor(value, _positions(indexed, levels, sizes))
    return make_batched(aten.permute.default(found, indexed.to_result(count)), levels)


@rule("index_put_")
def _index_put_inplace_rule(
    self: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
) -> Tensor:
    levels = check_inplace(self, indices, values)
    _write_values(self, value_of(self), levels, indices, values, accumulate)
    return self


@rule("index_put")
def _index_put_rule(self: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False) -> Tensor:
    levels = all_levels(self, indices, values)
    target = aten.clone.default(spread(self, levels, batch_sizes(levels, self, indices, values)))
    _write_values(self, target, levels, indices, values, accumulate)
    return make_batched(target, levels)


def _write_values(
    self: Tensor, target: Tensor, levels: Levels, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool
) -> None:
    """Write values into a target, which is the value of `self` or a copy of it."""
    indexed, count = _IndexedDims(self, indices), len(levels)
    sizes = target.shape[:count]
    if not indexed.dims:
        aten.copy_.default(target, aligned(values, levels, self.dim()))
        return
    others = [self.size(dim) for dim in indexed.others]
    shape = [*others[: indexed.at], *indexed.shape, *others[indexed.at :]]
    wide = aten.expand.default(values, shape)
    order = indexed.to_result(count)
    value = spread(wide, levels, sizes)
    value = aten.permute.default(value, [order.index(dim) for dim in range(len(order))])
    aten.index_put_.default(
        aten.permute.default(target, indexed.order(count)), _positions(indexed, levels, sizes), value, accumulate
    )


@rule("index_select")
def _index_select_rule(self: Tensor, dim: int, index: Tensor) -> Tensor:
    if not self.dim() or index.dim() > 1 or self.size(dim) == 0:
        return first_example(aten.index_select.default, [self, dim, index]) if self.dim() else _select_of_number(self, index)
    dim = wrap_dim(dim, self.dim())
    if is_batched(index):
        return aten.index.Tensor(self, [*[None] * dim, aten.reshape.default(index, [-1])])
    levels = levels_of(self)
    return make_batched(aten.index_select.default(value_of(self), len(levels) + dim, index), levels)


def _select_of_number(self: Tensor, index: Tensor) -> Tensor:
    """Select from 0-dim examples."""
    return aten.reshape.default(aten.index.Tensor(aten.unsqueeze.default(self, 0), [aten.reshape.default(index, [-1])]), [])


@rule("embedding")
def _embedding_rule(
    weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Tensor:
    if not is_batched(weight):
        found = aten.embedding.default(weight, value_of(indices), padding_idx, scale_grad_by_freq, sparse)
        return make_batched(found, levels_of(indices))
    if weight.dim() != 2:
        return first_example(aten.embedding.default, [weight, indices, padding_idx, scale_grad_by_freq, sparse])
    rows = weight.size(0)
    if padding_idx >= 0:
        is_padding = aten.unsqueeze.default(aten.arange.start_step(0, rows, 1, device=weight.device) == padding_idx, 1)
        weight = aten.where.self(is_padding, weight.detach(), weight)
    levels = all_levels(weight, indices)
    sizes = batch_sizes(levels, weight, indices)
    table = aten.reshape.default(spread(weight, levels, sizes), [-1, weight.size(1)])
    found = aten.embedding.default(table, _offset_rows(indices, levels, sizes, rows), -1, scale_grad_by_freq, False)
    return make_batched(found, levels)


def _offset_rows(indices: Tensor, levels: Levels, sizes: Sequence[int], rows: int) -> Tensor:
    """Shift row numbers so that they address one table in which all examples' tables are concatenated."""
    start = aten.arange.start_step(0, math.prod(sizes), 1, dtype=int64, device=indices.device) * rows
    first = aten.view.default(start, [*sizes, *[1] * indices.dim()])
    return aligned(indices, levels) + first


@rule("embedding_dense_backward")
def _embedding_backward_rule(
    grad_output: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Tensor:
    levels = all_levels(grad_output, indices)
    sizes = batch_sizes(levels, grad_output, indices)
    numbered = _offset_rows(indices, levels, sizes, num_weights)
    grad = spread(grad_output, levels, sizes)
    found = aten.embedding_dense_backward.default(grad, numbered, num_weights * math.prod(sizes), -1, scale_grad_by_freq)
    table = make_batched(aten.view.default(found, [*sizes, num_weights, found.size(-1)]), levels)
    if padding_idx < 0:
        return table
    is_padding = aten.unsqueeze.default(aten.arange.start_step(0, num_weights, 1, device=indices.device) == padding_idx, 1)
    return aten.masked_fill.Scalar(table, is_padding, 0)
