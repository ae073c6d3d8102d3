"""Composite scatters with a reduction: along a dimension, by segments, and through masks."""

from __future__ import annotations

import math

import numpy as np

from rushlight.core.dtype import bool_
from rushlight.core.strides import wrap_dim
from rushlight.core.tensor import Tensor
from rushlight.ops.composite.index_along import check_index_add, spread_index
from rushlight.ops.composite.network.common import checked_later, values_of
from rushlight.ops.composite.pointwise import with_inplace
from rushlight.ops.packet import namespaces
from rushlight.ops.registry import composite

aten = namespaces.namespace("aten")
_START = {"sum": 0, "mean": 0, "prod": 1, "max": -math.inf, "min": math.inf}


@with_inplace(
    "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor"
)
def index_reduce(self, dim, index, source, reduce, *, include_self=True):
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    axis = check_index_add("index_reduce", self, dim, index, source)
    spread = spread_index(self, axis, index, source.shape)
    return aten.scatter_reduce.two(self, axis, spread, source, reduce, include_self=include_self)


@with_inplace("scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor")
def scatter_by(self, dim, index, src, *, reduce):
    if reduce not in ("add", "multiply"):
        raise RuntimeError(f"reduce argument must be either add or multiply. Got {reduce}")
    if reduce == "add":
        return aten.scatter_add.default(self, dim, index, src)
    return aten.scatter_reduce.two(self, dim, index, src, "prod")


@with_inplace("scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor")
def scatter_value_by(self, dim, index, value, *, reduce):
    source = aten.full.default(index.shape, value, dtype=self.dtype, device=self.device)
    return scatter_by(self, dim, index, source, reduce=reduce)


@composite(
    "segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, int axis=0, "
    "bool unsafe=False, Scalar? initial=None) -> Tensor"
)
def segment_reduce(data, reduce, *, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, initial=None):
    if reduce not in _START:
        raise RuntimeError(f"segment_reduce(): reduce must be one of sum, mean, prod, max and min, but got {reduce}")
    if (lengths is None) == (offsets is None) or indices is not None:
        raise RuntimeError("segment_reduce(): exactly one of lengths and offsets must be given, and indices must not be")
    axis = wrap_dim(axis, data.dim())
    offsets = _offsets_of(data, lengths, axis, unsafe) if offsets is None else offsets
    count = offsets.size(-1) - 1
    if tuple(offsets.shape[:-1]) != tuple(data.shape[:axis]):
        raise RuntimeError(
            f"segment_reduce(): expected lengths or offsets for the {axis} dimensions of data before axis {axis}, "
            f"{list(data.shape[:axis])}, but got {list(offsets.shape[:-1])}"
        )
    # Elements before the first or behind the last segment go into an extra row, which is dropped.
    index = _segments(data, offsets, axis)
    start = _START[reduce] if initial is None else initial
    shape = (*data.shape[:axis], count + 1, *data.shape[axis + 1 :])
    target = aten.full.default(shape, start, dtype=data.dtype, device=data.device)
    kind = {"mean": "sum", "max": "amax", "min": "amin"}.get(reduce, reduce)
    result = aten.scatter_reduce.two(target, axis, index, data, kind).narrow(axis, 0, count)
    return _divide_by_lengths(result, offsets, axis, initial) if reduce == "mean" else result


def _offsets_of(data: Tensor, lengths: Tensor, axis: int, unsafe: bool) -> Tensor:
    """Return the start of each segment, and the end of the last."""
    if not unsafe:
        given = values_of(lengths)
        if given is not None and (given < 0).any():
            raise RuntimeError(f"lengths contains negative value: segment_reduce got {given.min()}")
        if given is not None and (given.sum(-1) != data.size(axis)).any():
            raise RuntimeError(
                "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe. "
                f"Got lengths that differ from {data.size(axis)}"
            )
    return aten.constant_pad_nd.default(aten.cumsum.default(lengths, -1), [1, 0], 0)


def _segments(data: Tensor, offsets: Tensor, axis: int) -> Tensor:
    """Return the segment number of each element of `data`."""
    count = offsets.size(-1) - 1
    steps = aten.arange.default(data.size(axis), dtype=offsets.dtype, device=data.device)
    steps = aten.expand.default(steps, (*data.shape[:axis], data.size(axis))).contiguous()
    segment = aten.searchsorted.Tensor(offsets.contiguous(), steps, right=True) - 1
    segment = aten.where.self(segment < 0, count, segment)
    trailing = [1] * (data.dim() - axis - 1)
    return aten.expand.default(aten.reshape.default(segment, (*segment.shape, *trailing)), data.shape)


def _divide_by_lengths(total: Tensor, offsets: Tensor, axis: int, initial: float | None) -> Tensor:
    lengths = aten.diff(offsets)
    lengths = aten.reshape.default(lengths, (*lengths.shape, *[1] * (total.dim() - axis - 1)))
    means = total / aten.clamp.default(lengths, 1)
    return aten.where.self(lengths == 0, math.nan if initial is None else initial, means).to(total.dtype)


@with_inplace("masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor")
def masked_scatter(self, mask, source):
    if self.dtype is not source.dtype:
        raise RuntimeError(
            "masked_scatter: expected self and source to have same dtypes but got "
            f"{self.dtype.scalar_name} and {source.dtype.scalar_name}"
        )
    if mask.dtype is not bool_:
        raise RuntimeError(f"masked_scatter_ only supports boolean masks, but got mask with dtype {mask.dtype}")
    target, chosen = aten.broadcast_tensors.default([self, mask])
    values = aten.reshape.default(source, (-1,))
    position = aten.reshape.default(aten.cumsum.default(aten.reshape.default(chosen, (-1,)), 0) - 1, chosen.shape)
    marked = values_of(chosen)
    if marked is not None and values.numel() < np.count_nonzero(marked):
        raise RuntimeError("Number of elements of source < number of ones in mask (masked_scatter)")
    if not values.numel():
        return aten.clone.default(target)
    position = aten.where.self(chosen, position, aten.zeros_like.default(position))
    too_few = "Number of elements of source < number of ones in mask (masked_scatter)"
    position = checked_later(position, lambda x: x < values.numel(), RuntimeError, too_few)
    taken = aten.index.Tensor(values, [position])
    return aten.where.self(chosen, taken, target)


def _inside(self: Tensor, indices: list) -> list:
    """Return indices clamped to the valid range; IndexError for too many dimensions."""
    if len(indices) > self.dim():
        raise IndexError(f"too many indices for tensor of dimension {self.dim()} (got {len(indices)})")
    return [
        None if index is None else aten.clamp.default(index, -self.size(dim), self.size(dim) - 1)
        for dim, index in enumerate(indices)
    ]


@composite("_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor")
def unsafe_masked_index(self, mask, indices, fill):
    if not self.numel():
        return aten.full.default(mask.shape, fill, dtype=self.dtype, device=self.device)
    found = aten.index.Tensor(self, _inside(self, indices))
    return aten.masked_fill(found, aten.logical_not.default(mask), fill)


@composite("_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> Tensor")
def unsafe_masked_index_put_accumulate(self, mask, indices, values):
    if not self.numel():
        return aten.clone.default(self)
    kept = aten.masked_fill(values, aten.logical_not.default(mask), 0)
    return aten.index_put.default(self, _inside(self, indices), kept, True)
