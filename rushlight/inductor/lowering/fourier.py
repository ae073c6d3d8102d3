"""Lowering of Fourier transforms to calls of fourier.h: rows of points, one dimension after the other."""

from __future__ import annotations

import math

from rushlight.core.dtype import dtype
from rushlight.core.strides import wrap_dim
from rushlight.core.symbolic import SymInt
from rushlight.inductor.lowering.complex_box import PARTS, ComplexBox, of_pairs, pairs_of
from rushlight.inductor.lowering.complex_numbers import complex_rule
from rushlight.inductor.lowering.library_calls import Function, library_call
from rushlight.inductor.tensor_box import TensorBox

SCRATCH = ("fourier_scratch_bytes", (1,))
COMPLEX_TO_COMPLEX = Function("fourier", "complex_transform<{type}>", *SCRATCH)
REAL_TO_COMPLEX = Function("fourier", "transform_of_reals<{type}>", *SCRATCH)
COMPLEX_TO_REAL = Function("fourier", "transform_to_reals<{type}>", *SCRATCH)
UNSCALED = 0
Size = int | SymInt


def _move_axis(box: TensorBox, axis: int, last: int) -> TensorBox:
    """Return the box with dimension `axis` moved to position `last`."""
    size = [*box.size[:axis], *box.size[axis + 1 :]]
    size.insert(last, box.size[axis])

    def reindex(index):
        index = list(index)
        moved = index.pop(last)
        return [*index[:axis], moved, *index[axis:]]

    return box.view(size, reindex)


def _move_axis_back(box: TensorBox, last: int, axis: int) -> TensorBox:
    size = list(box.size)
    size.insert(axis, size.pop(last))

    def reindex(index):
        index = list(index)
        moved = index.pop(axis)
        return [*index[:last], moved, *index[last:]]

    return box.view(size, reindex)


def _transform(
    graph, function: Function, box: TensorBox, kind: dtype, axis: int, rank: int, result: tuple[Size, ...], numbers: list
) -> TensorBox:  # fmt: skip
    """Transform along `axis` of the first `rank` dimensions; a dimension of real and imaginary parts may follow. `result` is
    the size of a row of results."""
    rows = _move_axis(box, axis, rank - 1)
    count = math.prod(rows.size[: rank - 1])
    work = 8 * math.prod(rows.size)
    (made,) = library_call(graph, function, kind, [rows], [((*rows.size[: rank - 1], *result), kind)], [count, *numbers], work)
    return _move_axis_back(made, rank - 1, axis)


def _transform_along(graph, self: ComplexBox, axes: list[int], forward: bool, points: Size, normalization: int) -> ComplexBox:
    """Compute complex transforms along several dimensions; the last one applies the normalization."""
    for position, axis in enumerate(axes):
        scaling = normalization if position == len(axes) - 1 else UNSCALED
        pairs, n = pairs_of(graph, self), self.size[axis]
        numbers = [n, forward, points, scaling]
        self = of_pairs(_transform(graph, COMPLEX_TO_COMPLEX, pairs, pairs.dtype, axis, len(self.size), (n, PARTS), numbers))
    return self


@complex_rule("_fft_c2c")
def c2c(graph, self, dim, normalization, forward):
    axes = [wrap_dim(axis, len(self.size)) for axis in dim]
    return _transform_along(graph, self, axes, bool(forward), math.prod(self.size[axis] for axis in axes), normalization)


@complex_rule("_fft_r2c")
def r2c(graph, self, dim, normalization, onesided):
    *others, last = (wrap_dim(axis, len(self.size)) for axis in dim)
    n = self.size[last]
    points, kept = math.prod(self.size[axis] for axis in (*others, last)), n // 2 + 1 if onesided else n
    numbers = [n, kept, points, UNSCALED if others else normalization]
    made = _transform(graph, REAL_TO_COMPLEX, self, self.dtype, last, len(self.size), (kept, PARTS), numbers)
    return _transform_along(graph, of_pairs(made), others, True, points, normalization)


@complex_rule("_fft_c2r")
def c2r(graph, self, dim, normalization, last_dim_size):
    *others, last = (wrap_dim(axis, len(self.size)) for axis in dim)
    points = math.prod(self.size[axis] for axis in others) * last_dim_size
    first = _transform_along(graph, self, others, False, points, UNSCALED)
    pairs, numbers = pairs_of(graph, first), [last_dim_size, self.size[last], points, normalization]
    return _transform(graph, COMPLEX_TO_REAL, pairs, pairs.dtype, last, len(self.size), (last_dim_size,), numbers)
