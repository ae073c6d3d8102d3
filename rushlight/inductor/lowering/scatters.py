"""Lowering of operators that write at computed indices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from rushlight.core.algebra import Expr, Var, as_expr, flatten_index
from rushlight.core.dtype import bfloat16, bool_, dtype, float16, float32, int64
from rushlight.core.strides import broadcast_shapes, wrap_dim
from rushlight.inductor.ir import ComputedBuffer, Constant, Pointwise, Value, contiguous_layout
from rushlight.inductor.lowering.builder import call, cast
from rushlight.inductor.lowering.convolutions import as_channels_first, as_channels_last, lies_channels_last
from rushlight.inductor.lowering.indexing import indexed_size
from rushlight.inductor.lowering.layout import IMAGE_RANK, channels_last
from rushlight.inductor.lowering.pointwise import add, where
from rushlight.inductor.lowering.products import in_type
from rushlight.inductor.lowering.registry import lowering
from rushlight.inductor.ordered_loops import Position, Scatter
from rushlight.inductor.sizes import as_size, as_sizes, row_major
from rushlight.inductor.tensor_box import StorageBox, TensorBox, loop_variables

Index = Sequence[Expr]
MODES = {"sum": "sum", "mean": "sum", "prod": "prod", "amax": "max", "amin": "min"}


def scatter_box(
    graph, base: TensorBox, size: tuple, places: Callable[[Index], dict[int, Value]],
    coordinates: Callable[[Index, dict[int, Var]], Index], body: Callable[[Index], Value], mode: str, wrap: bool,
    distinct: bool = False,
) -> TensorBox:  # fmt: skip
    """Scatter `body` at each point of `size` into `base`, combining by `mode`.

    For a point, `places` returns the coordinates that are read from memory, by dimension of the base. `coordinates` returns all
    coordinates, given the variables that stand for those. The other coordinates are loop variables: points that differ in them
    never collide. With `distinct` no points collide at all.
    """
    ranges = as_sizes(size)
    variables = loop_variables(ranges)
    positions = {
        dim: Position(graph.indirect_variable(base.size[dim]), cast(value, int64), as_size(base.size[dim]), wrap)
        for dim, value in places(variables).items()
    }
    whole = coordinates(variables, {dim: position.variable for dim, position in positions.items()})
    apart = tuple(variable for variable in variables if distinct or any(variable is each for each in whole))
    base_ranges = as_sizes(base.size)
    base_variables = loop_variables(base_ranges)
    start = Pointwise(base.dtype, base_ranges, base_variables, base.value(base_variables), graph.origin)
    place = flatten_index(whole, row_major(base_ranges))
    value = cast(body(variables), base.dtype)
    loop = Scatter(
        base.dtype, ranges, variables, value, graph.origin, start, place, tuple(positions.values()), mode, apart
    )  # fmt: skip
    buffer = ComputedBuffer(graph.fresh_name(), contiguous_layout(base.dtype, base_ranges), graph.lines, data=loop)
    return TensorBox(StorageBox(None, graph.add(buffer)), base.size, base.dtype)


def _sum_in_float32(graph, base: TensorBox, make: Callable[[TensorBox], TensorBox]) -> TensorBox:
    """Run `make` with sums of 16-bit floats kept in float32."""
    if base.dtype not in (bfloat16, float16):
        return make(base)
    return in_type(graph, make(in_type(graph, base, float32)), base.dtype)


# Along a dimension


def _scatter_along(graph, self: TensorBox, dim: int, index: TensorBox, value: Callable[[Index], Value], mode: str) -> TensorBox:
    """Scatter `value` at each point of `index` to the position that the index gives in `dim`."""
    if not self.size:
        return _scatter_along(graph, self.reshape((1,)), 0, index, value, mode).reshape(())
    index = _scalar_to_vector(index)
    if 0 in index.size:
        return graph.pointwise(self.size, self.dtype, self.value)
    axis = wrap_dim(dim, len(self.size))
    return scatter_box(
        graph, self, index.size, lambda at: {axis: index.value(at)},
        lambda at, known: [*at[:axis], known[axis], *at[axis + 1 :]], value, mode, wrap=False,
    )  # fmt: skip


def _scalar_to_vector(box: TensorBox) -> TensorBox:
    return box if box.size else box.reshape((1,))


@lowering("scatter.src")
def scatter(graph, self, dim, index, src):
    return _scatter_along(graph, self, dim, index, _scalar_to_vector(src).value, "store")


@lowering("scatter_add")
def scatter_add(graph, self, dim, index, src):
    if len(self.size) == IMAGE_RANK and lies_channels_last(graph, src):
        moved = (as_channels_last(box) for box in (self, index, src))
        return as_channels_first(_scatter_add(graph, channels_last(IMAGE_RANK).index(wrap_dim(dim, IMAGE_RANK)), *moved))
    return _scatter_add(graph, dim, self, index, src)


def _scatter_add(graph, dim: int, self: TensorBox, index: TensorBox, src: TensorBox) -> TensorBox:
    def make(base: TensorBox) -> TensorBox:
        return _scatter_along(graph, base, dim, index, lambda at: cast(_scalar_to_vector(src).value(at), base.dtype), "sum")

    return _sum_in_float32(graph, self, make)


@lowering("scatter_reduce.two")
def scatter_reduce(graph, self, dim, index, src, reduce, *, include_self=True):
    base, touched = self, None
    if not include_self:
        touched = _mark_written(graph, self, dim, index)
        base = where(graph, touched, _constant_box(graph, _identity_of(reduce, self.dtype), self.dtype), self)
    made = _scatter_along(graph, base, dim, index, _scalar_to_vector(src).value, MODES[reduce])
    return _divide_by_count(graph, made, self, dim, index, include_self) if reduce == "mean" else made


def _constant_box(graph, number: float, kind: dtype) -> TensorBox:
    return graph.pointwise((), kind, lambda at: Constant(kind, number))


def _mark_written(graph, self: TensorBox, dim: int, index: TensorBox) -> TensorBox:
    """Return a mask of the positions written to."""
    nothing = graph.pointwise(self.size, bool_, lambda at: Constant(bool_, False))
    return _scatter_along(graph, nothing, dim, index, lambda at: Constant(bool_, True), "store")


def _divide_by_count(graph, total: TensorBox, self: TensorBox, dim: int, index: TensorBox, include_self: bool) -> TensorBox:
    none = graph.pointwise(self.size, int64, lambda at: Constant(int64, 0))
    count = _scatter_along(graph, none, dim, index, lambda at: Constant(int64, 1), "sum")

    def inner(at: Index) -> Value:
        touched = call("gt", bool_, count.value(at), Constant(int64, 0))
        number = call("add", int64, count.value(at), Constant(int64, int(include_self)))
        name = "div" if self.dtype.is_floating_point else "floor_div"
        mean = call(name, self.dtype, total.value(at), cast(number, self.dtype))
        return call("where", self.dtype, touched, mean, total.value(at))

    return graph.pointwise(self.size, self.dtype, inner)


def _identity_of(reduce: str, kind: dtype) -> float:
    """Return the identity element of a reduction."""
    if reduce not in ("amax", "amin"):
        return int(reduce == "prod")
    if kind is bool_:
        return reduce == "amin"
    if kind.is_floating_point:
        return float("inf") if reduce == "amin" else -float("inf")
    bits = 8 * kind.itemsize - (0 if kind.name == "uint8" else 1)
    least = 0 if kind.name == "uint8" else -(1 << bits)
    return (1 << bits) - 1 if reduce == "amin" else least


# By several indices


@lowering("index_put")
def index_put(graph, self, indices, values, accumulate=False):
    """Scatter self[i, j, ...] = values, or +=, for integer indices, with None for whole dimensions; or a number written under a
    mask."""
    taken = [dim for dim, box in enumerate(indices) if box is not None]
    if indices[taken[0]].dtype is bool_:
        return _write_where_masked(graph, self, indices[taken[0]], taken[0], values, accumulate)
    wide = broadcast_shapes(*[indices[dim].size for dim in taken])
    size, lead, kept = indexed_size(self, taken, wide)
    given = values.reshape(values.size[max(len(values.size) - len(size), 0) :])
    if 0 in size:
        return graph.pointwise(self.size, self.dtype, self.value)

    def places(at: Index) -> dict[int, Value]:
        own = at[lead : lead + len(wide)]
        return {dim: graph.load(indices[dim], own, wide, int64) for dim in taken}

    def coordinates(at: Index, known: dict[int, Var]) -> Index:
        own = dict(zip(kept, [*at[:lead], *at[lead + len(wide) :]], strict=True)) | known
        return [own[dim] for dim in range(len(self.size))]

    def make(base: TensorBox) -> TensorBox:
        def body(at: Index) -> Value:
            return graph.load(given, at, size, base.dtype)

        return scatter_box(graph, base, size, places, coordinates, body, "sum" if accumulate else "store", wrap=True)

    return _sum_in_float32(graph, self, make) if accumulate else make(self)


def _write_where_masked(graph, self: TensorBox, mask: TensorBox, first: int, value: TensorBox, accumulate: bool) -> TensorBox:
    rest = len(self.size) - first - len(mask.size)
    whole = mask.reshape((*mask.size, *[1] * rest))
    new = in_type(graph, value.reshape(()), self.dtype)
    return where(graph, whole, add(graph, self, new) if accumulate else new, self)


# Into a view


@lowering("as_strided_scatter")
def as_strided_scatter(graph, self, src, size, stride, storage_offset=None):
    """Scatter into a view of a row-major tensor without overlap; see `support.py`."""
    flat = self.reshape((math.prod(self.size),))

    def place(at: Index, known: dict[int, Var]) -> Index:
        return [sum((index * step for index, step in zip(at, stride, strict=True)), start=as_expr(storage_offset or 0))]

    made = scatter_box(graph, flat, tuple(size), lambda at: {}, place, src.value, "store", wrap=False, distinct=True)
    return made.reshape(self.size)


# The gradient of an embedding table


@lowering("embedding_dense_backward")
def embedding_dense_backward(graph, grad_output, indices, num_weights, padding_idx, scale_grad_by_freq):
    columns, rank = grad_output.size[-1], len(indices.size)

    def make(base: TensorBox) -> TensorBox:
        def body(at: Index) -> Value:
            value = cast(grad_output.value(at), base.dtype)
            if padding_idx < 0:
                return value
            left_out = call("eq", bool_, cast(indices.value(at[:rank]), int64), Constant(int64, padding_idx))
            return call("where", base.dtype, left_out, Constant(base.dtype, 0.0), value)

        return scatter_box(
            graph, base, grad_output.size, lambda at: {0: indices.value(at[:rank])},
            lambda at, known: [known[0], at[rank]], body, "sum", wrap=False,
        )  # fmt: skip

    kind = grad_output.dtype
    nothing = graph.pointwise((num_weights, columns), kind, lambda at: Constant(kind, 0.0))
    return _sum_in_float32(graph, nothing, make)
