"""Lowering of adaptive pooling: along the rows of each window, then along its columns, unrolled or as a reduction.

Window lengths differ by at most one element, so only the last element of a window is conditional.
"""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.core.algebra import Expr
from rushlight.core.dtype import bool_, int32, int64
from rushlight.inductor.ir import Constant, Value
from rushlight.inductor.lowering.builder import GraphBuilder, call, cast, index_value, masked
from rushlight.inductor.lowering.normalization import in_full_precision
from rushlight.inductor.lowering.pooling import REDUCTIONS
from rushlight.inductor.lowering.reductions import reduce_box
from rushlight.inductor.lowering.registry import lowering
from rushlight.inductor.lowering.scatters import scatter_add
from rushlight.inductor.tensor_box import TensorBox
from rushlight.ops.meta.adaptive_pooling import longest_window

MAX_UNROLLED = 16  # windows of at most this many elements along a dimension are unrolled
ROWS, COLUMNS = -2, -1

Index = Sequence[Expr]


def _window_bounds(position: Expr, inputs: int, outputs: int) -> tuple[Expr, Expr]:
    """Return the start and end of an output's window."""
    return position * inputs // outputs, ((position + 1) * inputs + outputs - 1) // outputs


def _replace_position(index: Index, dim: int, position: Expr) -> list[Expr]:
    """Replace the position in dimension `dim`, which is negative, of an index."""
    at = list(index)
    at[dim] = position
    return at


def _combine_windows(graph: GraphBuilder, source: TensorBox, dim: int, outputs: int, combine: str) -> TensorBox:
    """Reduce by `combine` ("add" or "maximum") over the windows along one dimension."""
    inputs, kind = source.size[dim], source.dtype
    if inputs == outputs:
        return source
    graph.realize(source)
    longest, even = longest_window(inputs, outputs), inputs % outputs == 0
    size = _replace_position(source.size, dim, outputs)

    def last(index: Index) -> Value:
        """Return the last element of a window of the maximal length."""
        start, end = _window_bounds(index[dim], inputs, outputs)
        if even or combine == "maximum":
            return source.value(_replace_position(index, dim, end - 1))
        inside = call("ge", bool_, index_value(end - start - longest), Constant(int64, 0))
        return masked(kind, inside, source.value(_replace_position(index, dim, start + longest - 1)), Constant(kind, 0.0))

    def element(index: Index, tap: Expr | int) -> Value:
        return source.value(_replace_position(index, dim, index[dim] * inputs // outputs + tap))

    def written_out(index: Index) -> Value:
        result = last(index)
        for tap in range(longest - 1):
            result = call(combine, kind, result, element(index, tap))
        return result

    if type(longest) is int and longest <= MAX_UNROLLED:
        return graph.realize(graph.pointwise(size, kind, written_out))
    elements = graph.pointwise((*size, longest - 1), kind, lambda index: element(index[:-1], index[-1]))
    rest = reduce_box(graph, elements, (len(size),), REDUCTIONS[combine], kind, False)
    return graph.realize(graph.pointwise(size, kind, lambda index: call(combine, kind, last(index), rest.value(index))))


def _count_elements(index: Index, sizes: tuple, pooled: tuple) -> Value:
    """Return the number of elements in the window at `index`."""
    lengths = []
    for dim in (ROWS, COLUMNS):
        start, end = _window_bounds(index[dim], sizes[dim], pooled[dim])
        lengths.append(index_value(end - start))
    return call("mul", int64, *lengths)


@lowering("_adaptive_avg_pool2d")
def adaptive_avg_pool2d(graph, self, output_size):
    pooled = (*self.size[:-2], *output_size)
    total = in_full_precision(graph, self)
    for dim in (ROWS, COLUMNS):
        total = _combine_windows(graph, total, dim, pooled[dim], "add")

    def inner(index: Index) -> Value:
        return call("div", total.dtype, total.value(index), cast(_count_elements(index, self.size, pooled), total.dtype))

    return graph.pointwise(pooled, self.dtype, inner)


@lowering("_adaptive_avg_pool2d_backward")
def adaptive_avg_pool2d_backward(graph, grad_output, self):
    """Sum over windows: those that contain an input element are the windows of an adaptive pool in the other direction."""
    grad = in_full_precision(graph, grad_output)

    def share(index: Index) -> Value:
        return call("div", grad.dtype, grad.value(index), cast(_count_elements(index, self.size, grad.size), grad.dtype))

    shares = graph.pointwise(grad.size, grad.dtype, share)
    for dim in (COLUMNS, ROWS):
        shares = _combine_windows(graph, shares, dim, self.size[dim], "add")
    return graph.pointwise(self.size, self.dtype, shares.value)


# The largest elements


@lowering("adaptive_max_pool2d")
def adaptive_max_pool2d(graph, self, output_size):
    largest = _combine_windows(graph, graph.realize(self), ROWS, output_size[ROWS], "maximum")
    values = _combine_windows(graph, largest, COLUMNS, output_size[COLUMNS], "maximum")
    return values, _indices_of_largest(graph, self, largest, output_size)


def _positions_in_window(position: Expr, inputs: int, outputs: int) -> list[Expr]:
    """Return the positions in a window of maximal length; shorter windows repeat their last one."""
    start, end = _window_bounds(position, inputs, outputs)
    return [*(start + tap for tap in range(longest_window(inputs, outputs) - 1)), end - 1]


def _indices_of_largest(graph: GraphBuilder, self: TensorBox, largest: TensorBox, output_size: Sequence[int]) -> TensorBox:
    """Compute the index in its plane of each window's largest element: the first one, or the last NaN.

    `largest` holds the largest elements of each window's columns.
    """
    (height, width), (high, wide) = self.size[-2:], output_size

    def row_in_column(index: Index) -> Value:
        (best, place), *rest = (
            (self.value(_replace_position(index, ROWS, row)), _as_int32(row))
            for row in _positions_in_window(index[ROWS], height, high)
        )
        for value, row in rest:
            wins = call("logical_or", bool_, call("gt", bool_, value, best), call("isnan", bool_, value))
            best, place = _select_pairs(wins, (value, row), (best, place))
        return place

    rows = graph.realize(graph.pointwise(largest.size, int32, row_in_column))

    def inner(index: Index) -> Value:
        best = None
        for column in _positions_in_window(index[COLUMNS], width, wide):
            at = _replace_position(index, COLUMNS, column)
            place = call("add", int32, call("mul", int32, rows.value(at), Constant(int32, width)), _as_int32(column))
            candidate = largest.value(at), place
            best = candidate if best is None else _select_pairs(_comes_before(candidate, best), candidate, best)
        return cast(best[1], int64)

    return graph.pointwise((*largest.size[:-1], wide), int64, inner)


def _as_int32(position: Expr) -> Value:
    return cast(index_value(position), int32)


def _select_pairs(wins: Value, *pairs: tuple[Value, Value]) -> tuple[Value, ...]:
    return tuple(call("where", new.dtype, wins, new, old) for new, old in zip(*pairs, strict=True))


def _comes_before(candidate: tuple[Value, Value], best: tuple[Value, Value]) -> Value:
    """Return whether a value replaces the best one so far, which comes from columns further left."""
    (value, place), (largest, best_place) = candidate, best
    earlier = call("logical_and", bool_, call("eq", bool_, value, largest), call("lt", bool_, place, best_place))
    number = call("logical_not", bool_, call("isnan", bool_, largest))
    later = call("logical_or", bool_, number, call("gt", bool_, place, best_place))
    missing = call("logical_and", bool_, call("isnan", bool_, value), later)
    return call("logical_or", bool_, call("logical_or", bool_, call("gt", bool_, value, largest), earlier), missing)


@lowering("adaptive_max_pool2d_backward")
def adaptive_max_pool2d_backward(graph, grad_output, self, indices):
    (height, width), (high, wide) = self.size[-2:], grad_output.size[-2:]
    planes = self.size[:-2]
    nothing = graph.pointwise((*planes, height * width), self.dtype, lambda at: Constant(self.dtype, 0.0))
    found = (box.reshape((*planes, high * wide)) for box in (indices, grad_output))
    return scatter_add(graph, nothing, -1, *found).reshape(self.size)
