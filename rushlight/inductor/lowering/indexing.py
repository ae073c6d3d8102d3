"""Lowering of operators that read by computed indices, and of concatenation and padding."""

from __future__ import annotations

from rushlight.core.dtype import bool_, int64
from rushlight.core.strides import broadcast_shapes, wrap_dim
from rushlight.core.symbolic import SymInt
from rushlight.inductor.ir import Constant, Indirect, Value
from rushlight.inductor.lowering.builder import call, cast, index_value, masked, number_value
from rushlight.inductor.lowering.positions import position_of
from rushlight.inductor.lowering.registry import lowering
from rushlight.inductor.lowering.slices import slice_bounds
from rushlight.inductor.sizes import as_size, as_sizes
from rushlight.inductor.tensor_box import loop_variables


def _load_at(graph, source, index, position, dim, wrap=False):
    """Load source[index], where the value `position` replaces the coordinate in `dim`."""
    size = source.size[dim]
    variable = graph.indirect_variable(size)
    body = source.value([*index[:dim], variable, *index[dim + 1 :]])
    return Indirect(source.dtype, variable, cast(position, int64), as_size(size), body, wrap)


@lowering("embedding")
def embedding(graph, weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    graph.realize(weight)
    rank = len(indices.size)

    def inner(index):
        return _load_at(graph, weight, [index[rank], index[rank]], indices.value(index[:rank]), 0)

    return graph.pointwise((*indices.size, weight.size[1]), weight.dtype, inner)


@lowering("index_select")
def index_select(graph, self, dim, index):
    if not self.size:
        return index_select(graph, self.reshape((1,)), dim, index).reshape(())
    dim = wrap_dim(dim, len(self.size))
    positions = index.reshape((index.size[0],)) if index.size else index.reshape((1,))
    size = (*self.size[:dim], positions.size[0], *self.size[dim + 1 :])
    (variable,) = loop_variables(as_sizes(positions.size), "place")
    place = position_of(positions.value([variable]), as_size(self.size[dim]), graph.by_name)
    if place is not None:
        graph.prepare(self, size)
        return self.view(size, lambda at: [*at[:dim], place.substitute({variable: at[dim]}), *at[dim + 1 :]])
    graph.realize(self)
    graph.prepare(positions, size)
    return graph.pointwise(
        size, self.dtype, lambda at: _load_at(graph, self, list(at), positions.value([at[dim]]), dim)
    )


@lowering("gather")
def gather(graph, self, dim, index, *, sparse_grad=False):
    if not (self.size and index.size):
        given = [box if box.size else box.reshape((1,)) for box in (self, index)]
        return gather(graph, given[0], dim, given[1]).reshape(index.size)
    graph.realize(self)
    dim = wrap_dim(dim, len(self.size))
    return graph.pointwise(
        index.size, self.dtype, lambda at: _load_at(graph, self, list(at), index.value(at), dim)
    )


@lowering("index.Tensor")
def index(graph, self, indices):
    """Load self[i, j, ...] for integer tensors, with None for whole dimensions; negative positions count from the end."""
    graph.realize(self)
    taken = [dim for dim, box in enumerate(indices) if box is not None]
    wide = broadcast_shapes(*[indices[dim].size for dim in taken])
    size, lead, kept = indexed_size(self, taken, wide)
    for dim in taken:
        graph.prepare(indices[dim], size)

    def inner(at):
        own = at[lead : lead + len(wide)]
        places = dict(zip(kept, [*at[:lead], *at[lead + len(wide) :]], strict=True))
        return _read_at(graph, self, places, {dim: graph.load(indices[dim], own, wide, int64) for dim in taken})

    return graph.pointwise(size, self.dtype, inner)


def indexed_size(source, taken: list[int], wide: tuple) -> tuple[tuple, int, list[int]]:
    """Return the size of source[...] with indices of size `wide` in the dimensions `taken`, the number of dimensions before the
    indices' dimensions in the result, and the dimensions without an index.

    The indices' dimensions go to the position of the first one, or to the front if they are not adjacent.
    """
    start = taken[0] if taken[-1] - taken[0] == len(taken) - 1 else 0
    kept = [dim for dim in range(len(source.size)) if dim not in taken]
    lead = sum(dim < start for dim in kept)
    size = (*(source.size[dim] for dim in kept[:lead]), *wide, *(source.size[dim] for dim in kept[lead:]))
    return size, lead, kept


def _read_at(graph, source, places, positions):
    """Load source[...]: `places` gives known coordinates by dimension, `positions` gives computed ones."""
    variables = {dim: graph.indirect_variable(source.size[dim]) for dim in positions}
    known = places | variables
    value = source.value([known[dim] for dim in range(len(source.size))])
    for dim, position in positions.items():
        value = Indirect(source.dtype, variables[dim], position, as_size(source.size[dim]), value, True)
    return value


@lowering("cat")
def cat(graph, tensors, dim=0):
    kind = graph.promote(*tensors)
    tensors = [box for box in tensors if box.size != (0,)] or tensors[:1]
    dim = 0 if tensors[0].size == (0,) else wrap_dim(dim, len(tensors[0].size))
    tensors = [box for box in tensors if not _is_empty(box.size[dim])] or tensors[:1]
    for box in tensors:
        graph.realize(box)
    starts = [0]
    for box in tensors:
        starts.append(starts[-1] + box.size[dim])
    size = (*tensors[0].size[:dim], starts[-1], *tensors[0].size[dim + 1 :])

    def part(index, first: int, end: int) -> Value:
        """Return the element at `index` from the tensors `first` to `end` - 1, by binary search."""
        if end - first == 1:
            moved = [*index[:dim], index[dim] - starts[first], *index[dim + 1 :]]
            return cast(tensors[first].value(moved), kind)
        middle = (first + end) // 2
        return masked(kind, _is_below(index[dim], starts[middle]), part(index, first, middle), part(index, middle, end))

    def inner(index):
        return part(index, 0, len(tensors))

    return graph.realize(graph.pointwise(size, kind, inner))


def _is_empty(size: int | SymInt) -> bool:
    return type(size) is int and size == 0


def _is_below(position, bound: int | SymInt) -> Value:
    return call("lt", bool_, index_value(position, int64), number_value(bound, int64))


@lowering("select_scatter")
def select_scatter(graph, self, src, dim, index):
    dim = wrap_dim(dim, len(self.size))
    place = index + self.size[dim] if index < 0 else index
    return slice_scatter(graph, self, _unsqueeze(src, dim), dim, place, place + 1)


@lowering("slice_scatter")
def slice_scatter(graph, self, src, dim=0, start=None, end=None, step=1):
    dim = wrap_dim(dim, len(self.size))
    first, last = slice_bounds(start, end, self.size[dim])
    graph.realize(self)
    graph.realize(src)

    def inner(index):
        moved = index[dim] - first
        body = cast(src.value([*index[:dim], moved // step, *index[dim + 1 :]]), self.dtype)
        return masked(self.dtype, is_within(moved, last - first, step), body, self.value(index))

    return graph.pointwise(self.size, self.dtype, inner)


def _unsqueeze(box, dim: int):
    return box.view((*box.size[:dim], 1, *box.size[dim:]), lambda index: [*index[:dim], *index[dim + 1 :]])


def is_within(position, length: int | SymInt, step: int) -> Value:
    """Return whether 0 <= position < length and position is a multiple of `step`."""
    at = index_value(position, int64)
    inside = call("logical_and", bool_, call("ge", bool_, at, Constant(int64, 0)), _is_below(position, length))
    if step == 1:
        return inside
    return call("logical_and", bool_, inside, call("eq", bool_, index_value(position % step), Constant(int64, 0)))


@lowering("constant_pad_nd")
def constant_pad_nd(graph, self, pad, value=0):
    graph.realize(self)
    rank = len(self.size)
    before, after = [0] * rank, [0] * rank
    for position in range(len(pad) // 2):
        before[rank - 1 - position], after[rank - 1 - position] = pad[2 * position], pad[2 * position + 1]
    size = tuple(extent + low + high for extent, low, high in zip(self.size, before, after, strict=True))
    other = number_value(value, self.dtype)

    def inner(index):
        mask = None
        for dim in range(rank):
            moved = index_value(index[dim] - before[dim], int64)
            tests = []
            if before[dim] > 0:
                tests.append(call("ge", bool_, moved, Constant(int64, 0)))
            if after[dim] > 0:
                tests.append(call("lt", bool_, moved, number_value(self.size[dim], int64)))
            for test in tests:
                mask = test if mask is None else call("logical_and", bool_, mask, test)
        body = self.value([index[dim] - before[dim] for dim in range(rank)])
        return body if mask is None else masked(self.dtype, mask, body, other)

    return graph.pointwise(size, self.dtype, inner)
