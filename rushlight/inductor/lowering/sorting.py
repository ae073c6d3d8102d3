"""Lowering of sorts, top-k, medians, modes and binary search."""

from __future__ import annotations

import math

from rushlight.core.algebra import as_expr
from rushlight.core.dtype import bool_, int32, int64
from rushlight.core.strides import wrap_dim
from rushlight.core.symbolic import SymInt
from rushlight.inductor.ir import ComputedBuffer, Constant, Indirect, Load, Search, contiguous_layout
from rushlight.inductor.lowering.builder import GraphBuilder, call, cast
from rushlight.inductor.lowering.indexing import gather
from rushlight.inductor.lowering.library_calls import Function, library_call
from rushlight.inductor.lowering.pointwise import clone
from rushlight.inductor.lowering.reductions import reduce_box
from rushlight.inductor.lowering.registry import lowering
from rushlight.inductor.ordered_loops import Sort, SortedPlaces
from rushlight.inductor.sizes import as_size, as_sizes
from rushlight.inductor.tensor_box import StorageBox, TensorBox, loop_variables


def _sort(
    graph: GraphBuilder, self: TensorBox, kept: int | SymInt | None, dim: int, descending: bool
) -> tuple[TensorBox, TensorBox]:
    """Return the first `kept` sorted values along `dim` (all if None), and their indices, computed by one kernel."""
    if not self.size:
        return clone(graph, self), graph.pointwise((), int64, lambda at: Constant(int64, 0))
    axis = wrap_dim(dim, len(self.size))
    kept = self.size[axis] if kept is None else kept
    others = [size for position, size in enumerate(self.size) if position != axis]
    rows = self.view((*others, self.size[axis]), lambda at: [*at[:axis], at[-1], *at[axis:-1]])
    if axis != len(others):
        rows = graph.copy(rows)  # makes each row contiguous
    ranges, found = as_sizes(rows.size), as_sizes((*others, kept))
    variables = loop_variables(ranges)
    loop = Sort(self.dtype, ranges, variables, rows.value(variables), graph.origin, as_size(kept), descending)
    layout = contiguous_layout(self.dtype, found)
    values = graph.add(ComputedBuffer(graph.fresh_name(), layout, graph.lines, data=loop))
    result_variables = loop_variables(found)
    box = TensorBox(StorageBox(None, values), (*others, kept), self.dtype)
    body = box.value(result_variables)
    positions = SortedPlaces(int64, found, result_variables, body, graph.origin)
    buffer = graph.add(ComputedBuffer(graph.fresh_name(), contiguous_layout(int64, found), graph.lines, data=positions))
    size = (*others[:axis], kept, *others[axis:])
    made = (box, TensorBox(StorageBox(None, buffer), box.size, int64))
    return tuple(each.view(size, lambda at: [*at[:axis], *at[axis + 1 :], at[axis]]) for each in made)


@lowering("sort.stable")
def sort(graph, self, *, stable, dim=-1, descending=False):
    return _sort(graph, self, None, dim, bool(descending))


@lowering("topk")
def topk(graph, self, k, dim=-1, largest=True, sorted=True):
    return _sort(graph, self, k, dim, bool(largest))


def _flat_in_order(graph: GraphBuilder, self: TensorBox) -> TensorBox:
    return _sort(graph, self.reshape((math.prod(self.size),)), None, 0, False)[0]


@lowering("median")
def median(graph, self):
    """Return the lower of the two middle values of a nonempty tensor; NaN if there is one, because NaN sorts last."""
    ordered = _flat_in_order(graph, self)
    count = ordered.size[0]

    def inner(at):
        last, middle = ordered.value([as_expr(count - 1)]), ordered.value([as_expr((count - 1) // 2)])
        is_number = call("eq", bool_, last, last)
        return call("where", self.dtype, is_number, middle, last)

    return graph.pointwise((), self.dtype, inner)


@lowering("nanmedian")
def nanmedian(graph, self):
    """Return the lower of the two middle numbers, ignoring NaN, which sorts last; NaN if there are no numbers."""
    if self.dtype.is_integral:
        return median(graph, self)
    ordered = _flat_in_order(graph, self)
    is_number = graph.elementwise("eq", self.dtype, bool_, ordered, ordered)
    numbers = graph.realize(reduce_box(graph, is_number, (0,), "sum", int64, False))

    def inner(at):
        last = call("maximum", int64, call("sub", int64, numbers.value(()), Constant(int64, 1)), Constant(int64, 0))
        variable = graph.indirect_variable(ordered.size[0])
        middle = call("floor_div", int64, last, Constant(int64, 2))
        return Indirect(self.dtype, variable, middle, as_size(ordered.size[0]), ordered.value([variable]))

    return graph.pointwise((), self.dtype, inner)


MODE = Function("frequent", "mode<{type}>", "mode_scratch_bytes<{type}>", (1,), reports=True)


@lowering("mode")
def mode(graph, self, dim=-1, keepdim=False):
    """Return the smallest of each row's most frequent values, and its last index."""
    if not self.size:
        return clone(graph, self), graph.pointwise((), int64, lambda at: Constant(int64, 0))
    axis = wrap_dim(dim, len(self.size))
    others = [size for position, size in enumerate(self.size) if position != axis]
    count = self.size[axis]
    rows = self.view((*others, count), lambda at: [*at[:axis], at[-1], *at[axis:-1]])
    results, work = [(others, self.dtype), (others, int64)], 8 * math.prod(self.size)
    made = library_call(graph, MODE, self.dtype, [rows], results, [math.prod(others), count], work)
    size = [1 if position == axis else size for position, size in enumerate(self.size)] if keepdim else others
    return tuple(box.reshape(size) for box in made)


@lowering("searchsorted.Tensor")
def searchsorted(graph, sorted_sequence, self, *, out_int32=False, right=False, side=None, sorter=None):
    kind, row = int32 if out_int32 else int64, sorted_sequence
    if 0 in (*row.size, *self.size):
        return graph.pointwise(self.size, kind, lambda at: Constant(kind, 0))
    if sorter is not None:
        row = gather(graph, row, -1, sorter)
    found = graph.operand(row, row.size) or graph.operand(graph.copy(row), row.size)
    *steps, step = found.strides

    def inner(at):
        first = sum((position * stride for position, stride in zip(at, steps, strict=False)), start=as_expr(found.offset))
        position = Load(row.dtype, found.buffer, first)
        return cast(Search(int64, self.value(at), position, step, as_size(row.size[-1]), right or side == "right"), kind)

    return graph.realize(graph.pointwise(self.size, kind, inner))
