"""Lowering of pairwise p-norm distances and their gradients to reductions over differences.

Differences stay accurate for close points, unlike |a|^2 - 2ab + |b|^2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from rushlight.core.algebra import Expr
from rushlight.core.dtype import bool_, dtype, float64, int64
from rushlight.core.strides import broadcast_shapes
from rushlight.core.symbolic import SymInt
from rushlight.inductor.ir import Constant, Indirect, Value
from rushlight.inductor.lowering.builder import GraphBuilder, call, cast, index_value, masked, number_value
from rushlight.inductor.lowering.registry import lowering
from rushlight.inductor.sizes import as_size
from rushlight.inductor.tensor_box import TensorBox

Index = Sequence[Expr]


def _constant(number: float, kind: dtype) -> Constant:
    return Constant(kind, float(number))


def _contribution(difference: Value, p: float) -> Value:
    """Return a coordinate's term in a distance, before the root."""
    kind = difference.dtype
    if p == 0:
        different = call("ne", bool_, difference, _constant(0, kind))
        return call("where", kind, different, _constant(1, kind), _constant(0, kind))
    if p == 2:
        return call("mul", kind, difference, difference)
    size = call("abs", kind, difference)
    return size if p in (1, math.inf) else call("pow", kind, size, _constant(p, kind))


def _take_root(graph: GraphBuilder, total: TensorBox, p: float) -> TensorBox:
    if p in (0, 1, math.inf):
        return total
    if p == 2:
        return graph.elementwise("sqrt", total.dtype, total.dtype, total)
    return graph.elementwise("pow", total.dtype, total.dtype, total, 1 / p)


def _make_coordinate_reader(box: TensorBox, batch: tuple) -> Callable[[Index, Expr, Expr], Value]:
    """Return a function that reads a point's coordinate in a broadcast stack of matrices."""
    extra = len(batch) - (len(box.size) - 2)

    def value(at: Index, row: Expr, column: Expr) -> Value:
        own = [position * (0 if size == 1 else 1) for position, size in zip(at[extra:], box.size[:-2], strict=False)]
        return box.value([*own, row, column])

    return value


def _copy_transposed(graph: GraphBuilder, box: TensorBox) -> TensorBox:
    """Return a transposed copy, in which a coordinate's values for all points are adjacent."""
    return graph.copy(box.view((*box.size[:-2], box.size[-1], box.size[-2]), lambda at: [*at[:-2], at[-1], at[-2]]))


@lowering("_cdist_forward")
def cdist(graph, x1, x2, p, compute_mode):
    kind, width = x1.dtype, x1.size[-1]
    batch = broadcast_shapes(x1.size[:-2], x2.size[:-2])
    size = (*batch, x1.size[-2], x2.size[-2])
    if 0 in (*size, width):
        return graph.pointwise(size, kind, lambda at: _constant(0, kind))
    points = _make_coordinate_reader(graph.realize(x1), batch)
    others = _make_coordinate_reader(_copy_transposed(graph, x2), batch)

    def inner(at: Index) -> Value:
        *lead, row, column, coordinate = at
        return _contribution(call("sub", kind, points(lead, row, coordinate), others(lead, coordinate, column)), p)

    terms = graph.pointwise((*size, width), kind, inner)
    return _take_root(graph, graph.reduction(terms, (len(size),), "max" if p == math.inf else "sum", kind, False), p)


def _pair_factors(graph: GraphBuilder, grad: TensorBox, distance: TensorBox, p: float) -> TensorBox:
    """Return the factor of the gradient that a pair's coordinates share; 0 if the points coincide."""
    if p in (1, math.inf):
        return graph.realize(grad)
    kind = grad.dtype

    def inner(at: Index) -> Value:
        length = distance.value(at)
        power = length if p == 2 else call("pow", kind, length, _constant(p - 1, kind))
        apart = call("ne", bool_, length, _constant(0, kind))
        return call("where", kind, apart, call("div", kind, grad.value(at), power), _constant(0, kind))

    return graph.realize(graph.pointwise(grad.size, kind, inner))


def _coordinate_gradient(difference: Value, weight: Value, distance: Value, p: float) -> Value:
    """Return the gradient times the distance's derivative by a coordinate of the first point."""
    kind = difference.dtype
    if p == 2:
        return call("mul", kind, weight, difference)
    sign, size = call("sign", kind, difference), call("abs", kind, difference)
    if p == 1:
        return call("mul", kind, weight, sign)
    if p == math.inf:
        largest = call("eq", bool_, size, distance)
        return call("where", kind, largest, call("mul", kind, weight, sign), _constant(0, kind))
    power = call("mul", kind, sign, call("pow", kind, size, _constant(p - 1, kind)))
    apart = call("ne", bool_, difference, _constant(0, kind))
    return call("where", kind, apart, call("mul", kind, weight, power), _constant(0, kind))


@lowering("_cdist_backward")
def cdist_backward(graph, grad, x1, x2, p, cdist):
    kind, width, columns = x1.dtype, x1.size[-1], x2.size[-2]
    batch = broadcast_shapes(x1.size[:-2], x2.size[:-2])
    size = (*batch, x1.size[-2], width)
    if 0 in (*size, columns) or p == 0:
        return graph.pointwise(size, kind, lambda at: _constant(0, kind))
    for box in (x1, x2, cdist):
        graph.realize(box)
    points, others, distances = (_make_coordinate_reader(box, batch) for box in (x1, x2, cdist))
    weights = _make_coordinate_reader(_pair_factors(graph, grad, cdist, p), batch)

    def inner(at: Index) -> Value:
        *lead, row, coordinate, column = at
        difference = call("sub", kind, points(lead, row, coordinate), others(lead, column, coordinate))
        return _coordinate_gradient(difference, weights(lead, row, column), distances(lead, row, column), p)

    return graph.reduction(graph.pointwise((*size, columns), kind, inner), (len(size),), "sum", kind, False)


# Pairs of points of one matrix, in the order of the rows of the upper triangle


def _first_of_row(row: Value, count: Value) -> Value:
    """Return the number of pairs whose first point comes before `row`."""
    product = call("mul", int64, row, call("sub", int64, call("sub", int64, call("add", int64, count, count), row), _ONE))
    return call("shift_right", int64, product, _ONE)


_ONE = Constant(int64, 1)


def _row_of_pair(pair: Value, count: Value) -> Value:
    """Return the first point of a pair: compute a square root, and correct it by one if rounding made it too high or too
    low."""
    middle = call("sub", float64, cast(count, float64), _constant(0.5, float64))
    square = call("sub", float64, call("mul", float64, middle, middle), cast(call("add", int64, pair, pair), float64))
    square = call("maximum", float64, square, _constant(0, float64))
    row = cast(call("sub", float64, middle, call("sqrt", float64, square)), int64)
    too_high = call("gt", bool_, _first_of_row(row, count), pair)
    row = call("where", int64, too_high, call("sub", int64, row, _ONE), row)
    following = call("add", int64, row, _ONE)
    return call("where", int64, call("le", bool_, _first_of_row(following, count), pair), following, row)


def _load_at(graph: GraphBuilder, box: TensorBox, position: Value) -> Value:
    """Load the element of a flat box at a computed position."""
    variable = graph.indirect_variable(box.size[0])
    return Indirect(box.dtype, variable, position, as_size(box.size[0]), box.value([variable]))


def _number_of_points(self: TensorBox) -> Value:
    return number_value(self.size[0], int64)


@lowering("_pdist_forward")
def pdist(graph, self, p=2):
    rows: int | SymInt = self.size[0]
    pairs = rows * (rows - 1) // 2
    if 0 in (pairs, self.size[1]):
        return graph.pointwise((pairs,), self.dtype, lambda at: _constant(0, self.dtype))
    whole = graph.realize(cdist(graph, self, self, p, None)).reshape((rows * rows,))
    count = _number_of_points(self)

    def inner(at: Index) -> Value:
        pair = index_value(at[0])
        row = _row_of_pair(pair, count)
        column = call("add", int64, call("sub", int64, pair, _first_of_row(row, count)), call("add", int64, row, _ONE))
        return _load_at(graph, whole, call("add", int64, call("mul", int64, row, count), column))

    return graph.pointwise((pairs,), self.dtype, inner)


@lowering("_pdist_backward")
def pdist_backward(graph, grad, self, p, pdist):
    kind, rows = self.dtype, self.size[0]
    if 0 in (grad.size[0], self.size[1]):
        return graph.pointwise(self.size, kind, lambda at: _constant(0, kind))
    count = _number_of_points(self)

    def matrix(values: TensorBox) -> TensorBox:
        """Return the symmetric matrix of the pairs' values, with 0 on the diagonal."""
        graph.realize(values)

        def inner(at: Index) -> Value:
            row, column = index_value(at[0]), index_value(at[1])
            low, high = call("minimum", int64, row, column), call("maximum", int64, row, column)
            position = call("sub", int64, call("sub", int64, call("add", int64, _first_of_row(low, count), high), low), _ONE)
            return masked(kind, call("ne", bool_, row, column), _load_at(graph, values, position), _constant(0, kind))

        return graph.realize(graph.pointwise((rows, rows), kind, inner))

    return cdist_backward(graph, matrix(grad), self, self, p, matrix(pdist))
