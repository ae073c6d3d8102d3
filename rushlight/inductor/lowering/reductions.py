"""Lowering of reductions."""

from __future__ import annotations

import math

from rushlight.core.dtype import bfloat16, bool_, float16, float32, int64, uint8
from rushlight.core.strides import wrap_dim
from rushlight.core.symbolic import SymInt
from rushlight.inductor.lowering.layout import reads_along
from rushlight.inductor.lowering.pointwise import div, mul_boxes, power, sub, to_copy
from rushlight.inductor.lowering.registry import lowering
from rushlight.inductor.sizes import Size, as_sizes, hint, product, quotient
from rushlight.inductor.tensor_box import loop_variables
from rushlight.ops.meta.common import reduced_dims

# A reduction of at least SPLIT_VALUES values to few results takes two steps, so that all threads share it.
# Contiguous results are vectorized; each thread needs a run of them, so splitting pays off earlier.
SPLIT_VALUES = 32768
SPLIT_VALUES_SIDE_BY_SIDE = 4096
# Nonadjacent dimensions are reduced one run after the other if the last run has at least this many values.
MIN_LAST_RUN = 16
# The first of several dimensions is reduced last if it is innermost in memory and has at least this size.
MIN_SIDE_BY_SIDE = 4


def reduce_box(graph, self, dims, kind, dtype, keepdim):
    """Return `kind` over `dims` of a box, in several steps if that improves memory access or uses more threads."""
    dims = tuple(sorted(reduced_dims(len(self.size), dims)))
    if dtype in (float16, bfloat16):  # partial results stay in float32
        return to_copy(graph, reduce_box(graph, self, dims, kind, float32, keepdim), dtype=dtype)
    last = _last_run(dims)
    if len(last) > 1 and lies_side_by_side(self, last):  # first reduce to contiguous results, then reduce those
        inner = _reduce_to_contiguous(graph, self, last, kind, dtype)
        found = _reduce_run(graph, inner, dims[: -len(last) + 1], kind, dtype, True)
        return found.reshape(_sizes_after(self, dims, keepdim))
    if len(last) < len(dims) and math.prod(hint(self.size[dim]) for dim in last) >= MIN_LAST_RUN:
        inner = _reduce_run(graph, self, last, kind, dtype, True)
        found = reduce_box(graph, inner, tuple(dim for dim in dims if dim not in last), kind, dtype, True)
        return found.reshape(_sizes_after(self, dims, keepdim))
    return _reduce_run(graph, self, dims, kind, dtype, keepdim)


def _reduce_to_contiguous(graph, self, run, kind, dtype):
    """Reduce by `kind` over all but the first dimension of a run; the results are contiguous along that dimension and the one
    before."""
    first = run[0]
    if first == 0:
        return _reduce_run(graph, self, run[1:], kind, dtype, True)
    merged = (*self.size[: first - 1], self.size[first - 1] * self.size[first], *self.size[first + 1 :])
    found = _reduce_run(graph, self.reshape(merged), tuple(dim - 1 for dim in run[1:]), kind, dtype, True)
    return found.reshape([1 if dim in run[1:] else size for dim, size in enumerate(self.size)])


def _sizes_after(self, dims, keepdim):
    return [1 if dim in dims else size for dim, size in enumerate(self.size) if keepdim or dim not in dims]


def lies_side_by_side(self, dims):
    """Return whether the first of several dimensions is innermost in memory, unlike the last one: so are the channels of
    channels-last images."""
    if hint(self.size[dims[0]]) < MIN_SIDE_BY_SIDE or hint(self.size[dims[-1]]) == 1:
        return False
    variables = loop_variables(as_sizes(self.size))
    return reads_along(self.value(variables), variables[dims[0]], variables[dims[-1]])


def _last_run(dims: tuple[int, ...]) -> tuple[int, ...]:
    """Return the adjacent dimensions at the end of sorted ones."""
    start = len(dims) - 1
    while start > 0 and dims[start - 1] == dims[start] - 1:
        start -= 1
    return dims[max(start, 0) :]


def _reduce_run(graph, self, dims, kind, dtype, keepdim):
    kept = [dim for dim in range(len(self.size)) if dim not in dims]
    results, values = (math.prod(hint(self.size[dim]) for dim in group) for group in (kept, dims))
    side_by_side = bool(kept) and kept[-1] == len(self.size) - 1
    limit = graph.target.few_side_by_side if side_by_side else graph.target.few_results
    enough = SPLIT_VALUES_SIDE_BY_SIDE if side_by_side else SPLIT_VALUES
    most = min(graph.target.most_parts, graph.target.most_partial // max(results, 1))
    parts = _choose_parts(product(self.size[dim] for dim in dims), most)
    if kind in ("argmax", "argmin") or results > limit or values < enough or parts == 1:
        return graph.reduction(self, dims, kind, dtype, keepdim)
    order = [*dims, *kept]
    moved = self.view([self.size[dim] for dim in order], lambda index: _scatter(index, order))
    each = math.prod(self.size[dim] for dim in dims) // parts
    split = moved.reshape([parts, each, *(self.size[dim] for dim in kept)])
    partial = graph.reduction(split, (1,), kind, dtype, False)
    total = graph.reduction(partial, (0,), kind, dtype, False)
    if not keepdim:
        return total
    return total.reshape([1 if dim in dims else size for dim, size in enumerate(self.size)])


def _scatter(index, order):
    placed = [None] * len(order)
    for position, dim in enumerate(order):
        placed[dim] = index[position]
    return placed


def _choose_parts(values: Size, most: int) -> int:
    for parts in (1024, 768, 512, 384, 256, 192, 128, 96, 64, 48, 32, 24, 16, 12, 10, 8, 6, 4, 3, 2):
        if parts <= most and quotient(values, parts) is not None:
            return parts
    return 1


@lowering("sum.dim_IntList")
def sum_(graph, self, dim, keepdim=False, *, dtype=None):
    kind = dtype or (int64 if self.dtype.is_integral else self.dtype)
    return reduce_box(graph, self, dim, "sum", kind, keepdim)


@lowering("prod.dim_int")
def prod(graph, self, dim, keepdim=False, *, dtype=None):
    kind = dtype or (int64 if self.dtype.is_integral else self.dtype)
    return reduce_box(graph, self, (dim,), "prod", kind, keepdim)


@lowering("amax")
def amax(graph, self, dim=(), keepdim=False):
    return reduce_box(graph, self, dim, "any" if self.dtype is bool_ else "max", self.dtype, keepdim)


@lowering("amin")
def amin(graph, self, dim=(), keepdim=False):
    return reduce_box(graph, self, dim, "all" if self.dtype is bool_ else "min", self.dtype, keepdim)


def _reduce_truth(graph, self, dim, kind, keepdim):
    if dim is not None and not len(dim):  # torch treats an empty list of dimensions as no reduction
        found = to_copy(graph, self, dtype=bool_)
    else:
        found = reduce_box(graph, self, dim, kind, bool_, keepdim)
    return to_copy(graph, found, dtype=uint8) if self.dtype is uint8 else found  # torch returns uint8 for uint8


@lowering("any.dims")
def any_(graph, self, dim=None, keepdim=False):
    return _reduce_truth(graph, self, dim, "any", keepdim)


@lowering("all.dims")
def all_(graph, self, dim=None, keepdim=False):
    return _reduce_truth(graph, self, dim, "all", keepdim)


def _reduce_to_position(graph, self, dim, keepdim, kind):
    if self.dtype is bool_:
        self = to_copy(graph, self, dtype=uint8)
    if dim is None:
        flat = self.reshape((math.prod(self.size),))
        found = graph.reduction(flat, (0,), kind, int64, False)
        return found.reshape((1,) * len(self.size)) if keepdim else found
    return graph.reduction(self, reduced_dims(len(self.size), wrap_dim(dim, len(self.size))), kind, int64, keepdim)


@lowering("argmax")
def argmax(graph, self, dim=None, keepdim=False):
    return _reduce_to_position(graph, self, dim, keepdim, "argmax")


@lowering("argmin")
def argmin(graph, self, dim=None, keepdim=False):
    return _reduce_to_position(graph, self, dim, keepdim, "argmin")


@lowering("var.correction")
def var(graph, self, dim=None, *, correction=None, keepdim=False):
    if self.dtype in (float16, bfloat16):  # only the result is rounded, not the mean
        wide = to_copy(graph, self, dtype=float32)
        return to_copy(graph, var(graph, wide, dim, correction=correction, keepdim=keepdim), dtype=self.dtype)
    dims = reduced_dims(len(self.size), dim)
    count = math.prod(self.size[axis] for axis in dims)
    mean = div(graph, reduce_box(graph, self, dims, "sum", self.dtype, True), count)
    difference = sub(graph, self, mean)
    total = reduce_box(graph, power(graph, difference, 2), dims, "sum", self.dtype, keepdim)
    # the sum of differences corrects the rounding of the mean
    offset = reduce_box(graph, difference, dims, "sum", self.dtype, keepdim)
    exact = sub(graph, total, mul_boxes(graph, offset, div(graph, offset, count)))
    positive = graph.elementwise("maximum", self.dtype, self.dtype, exact, 0.0)
    return div(graph, positive, _degrees_of_freedom(count, 1 if correction is None else correction))


def _degrees_of_freedom(count: int | SymInt, correction: float) -> float | SymInt:
    if isinstance(count, SymInt) and correction == int(correction):
        return max(0, count - int(correction))
    return max(0.0, count - correction)

