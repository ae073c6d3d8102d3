"""Lowering of 2-D pooling: windows are unrolled, over a padded copy if there is padding.

Large windows are pooled in two steps, along columns and then along rows. A step over many elements is a reduction.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from rushlight.core.algebra import Expr, as_expr
from rushlight.core.dtype import bool_, dtype, float32, iinfo, int32, int64
from rushlight.core.symbolic import SymInt
from rushlight.inductor.ir import Constant, Value
from rushlight.inductor.lowering.builder import GraphBuilder, call, cast, index_value, number_value
from rushlight.inductor.lowering.indexing import constant_pad_nd
from rushlight.inductor.lowering.reductions import reduce_box
from rushlight.inductor.lowering.registry import lowering
from rushlight.inductor.sizes import Size, as_size
from rushlight.inductor.tensor_box import TensorBox
from rushlight.ops.meta.pooling import Window, windows_over

MAX_UNROLLED = 32  # windows of at most this many elements are unrolled into one expression
REDUCTIONS = {"add": "sum", "maximum": "max"}
NO_OFFSET = (1 << 31) - 1  # sentinel greater than every offset, so that the minimum over a window ignores it

Windows = tuple[Window, Window]


def _pad(graph: GraphBuilder, box: TensorBox, windows: Windows, ceil_mode: bool, fill: float | int) -> TensorBox:
    """Return the box, padded with `fill` where windows reach beyond it."""
    high, wide = windows
    pad = (wide.padding, _padding_after(wide, ceil_mode), high.padding, _padding_after(high, ceil_mode))
    return graph.realize(constant_pad_nd(graph, box, pad, fill) if any(pad) else box)


def _is_large(windows: Windows) -> bool:
    return windows[0].size * windows[1].size > MAX_UNROLLED


def _is_wide_and_high(windows: Windows) -> bool:
    return min(window.size for window in windows) > 1


def _split_into_steps(windows: Windows, rows: int | SymInt) -> tuple[Windows, Windows]:
    """Split windows into two steps: along the columns of each padded row, then along the rows of that result."""
    high, wide = windows
    return (high._replace(size=1, stride=1, outputs=rows), wide), (high, wide._replace(size=1, stride=1))


def _pool(graph: GraphBuilder, source: TensorBox, windows: Windows, combine: str, kind: dtype,
            scale: float | None = None) -> TensorBox:  # fmt: skip
    """Return `combine` over each window of a padded box, times `scale`."""
    if _is_large(windows) and _is_wide_and_high(windows):
        along_columns, along_rows = _split_into_steps(windows, source.size[-2])
        across = graph.realize(_pool(graph, source, along_columns, combine, kind))
        return _pool(graph, across, along_rows, combine, kind, scale)
    if _is_large(windows):
        return _pool_by_reduction(graph, source, windows, combine, kind, scale)

    def inner(index) -> Value:
        result = None
        for i, j in _window_elements(windows):
            value = cast(source.value(_index_of_element(index, windows, i, j)), kind)
            result = value if result is None else call(combine, kind, result, value)
        return result if scale is None else call("mul", kind, result, Constant(kind, scale))

    return graph.pointwise(_pooled_size(source, windows), kind, inner)


def _pool_by_reduction(graph: GraphBuilder, source: TensorBox, windows: Windows, combine: str, kind: dtype,
             scale: float | None) -> TensorBox:  # fmt: skip
    """Do the same as `_pool` for windows of one row or one column, as a reduction over their elements."""
    size = (*_pooled_size(source, windows), windows[0].size * windows[1].size)
    elements = source.view(size, lambda index: _index_of_element(index[:-1], windows, *_element_along(windows, index[-1])))
    found = reduce_box(graph, elements, (len(size) - 1,), REDUCTIONS[combine], kind, False)
    return found if scale is None else graph.elementwise("mul", kind, kind, found, scale)


def _pooled_size(source: TensorBox, windows: Windows) -> tuple[int | SymInt, ...]:
    return (*source.size[:-2], *(window.outputs for window in windows))


def _window_elements(windows: Windows) -> Iterable[tuple[int, int]]:
    return itertools.product(*(range(window.size) for window in windows))


def _element_along(windows: Windows, position: Expr) -> tuple[Expr | int, Expr | int]:
    """Return the row and column of an element in a window of one row or one column."""
    return (position, 0) if windows[0].size > 1 else (0, position)


def _index_of_element(index: Sequence[Expr], windows: Windows, i: Expr | int, j: Expr | int) -> list[Expr]:
    """Return the index in the padded box of element (i, j) in the window at `index`."""
    high, wide = windows
    *lead, row, column = index
    return [*lead, row * high.stride + i * high.dilation, column * wide.stride + j * wide.dilation]


def _lowest(kind: dtype) -> float | int:
    """Return the least number of a dtype, with which maxima are padded."""
    return float("-inf") if kind.is_floating_point else iinfo(kind).min


def _padding_after(window: Window, ceil_mode: bool) -> int:
    """Return the padding after the input that windows reach into; for a symbolic size an upper bound."""
    if isinstance(window.inputs, SymInt):
        return window.padding + (window.stride - 1 if ceil_mode else 0)
    return window.padding_after


@lowering("max_pool2d_with_indices")
def max_pool2d(graph, self, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    windows = windows_over(self.size, kernel_size, stride, padding, dilation, ceil_mode, "max_pool2d")
    source = _pad(graph, self, windows, ceil_mode, _lowest(self.dtype))
    values = _pool(graph, source, windows, "maximum", self.dtype)
    return values, _indices_of_largest(graph, source, windows, values)


def _indices_of_largest(graph: GraphBuilder, source: TensorBox, windows: Windows, values: TensorBox) -> TensorBox:
    """Compute the index in its plane of each window's largest element in a padded box: the first one, or the last NaN."""
    width = as_size(windows[1].inputs)
    if _is_large(windows) and _is_wide_and_high(windows):
        found = _offsets_in_steps(graph, source, windows, values)
    else:
        found = _offsets_of_largest(graph, source, windows, values, partial(_offset, windows=windows, width=width), windows)

    def inner(index) -> Value:
        *_, row, column = index
        return _index_in_plane(row * windows[0].stride, column * windows[1].stride, windows, width, found(index))

    return graph.pointwise(values.size, int64, inner)


Offset = Callable[[Sequence[Expr], Expr | int, Expr | int], Value]  # offset of element (i, j) of the window at an index


def _offsets_in_steps(
    graph: GraphBuilder, source: TensorBox, windows: Windows, values: TensorBox
) -> Callable[[Sequence[Expr]], Value]:
    """Return `_offsets_of_largest` in two steps: first the largest element of each row of a window."""
    width = as_size(windows[1].inputs)
    along_columns, along_rows = _split_into_steps(windows, source.size[-2])
    largest = graph.realize(_pool(graph, source, along_columns, "maximum", source.dtype))
    in_row = partial(_offset, windows=along_columns, width=width)
    across = _offsets_of_largest(graph, source, along_columns, largest, in_row, along_columns)
    offsets = graph.realize(graph.pointwise(largest.size, int32, across))

    def offset(index: Sequence[Expr], i: Expr | int, j: Expr | int) -> Value:
        inner = offsets.value(_index_of_element(index, along_rows, i, j))
        return call("add", int32, _offset(index, i, j, windows, width), inner)

    return _offsets_of_largest(graph, largest, along_rows, values, offset, windows)


def _offsets_of_largest(
    graph: GraphBuilder, source: TensorBox, windows: Windows, values: TensorBox, offset: Offset, whole: Windows
) -> Callable[[Sequence[Expr]], Value]:
    """Return the offset of each window's largest element from the window's corner, in elements of a plane. `values` are the
    largest elements.

    `offset` grows from each element to the next. `whole` are the original windows, of which `windows` may be one step.
    """
    width = as_size(whole[1].inputs)

    def first(index: Sequence[Expr]) -> Value:
        *_, row, column = index
        return _first_inside(row * whole[0].stride, column * whole[1].stride, whole, width)

    def written_out(index: Sequence[Expr]) -> Value:
        taps = (
            (source.value(_index_of_element(index, windows, i, j)), offset(index, i, j))
            for i, j in _window_elements(windows)
        )
        return _offset_of_largest(taps, Constant(source.dtype, _lowest(source.dtype)), first(index))

    if not _is_large(windows):
        return written_out
    graph.realize(values)

    def key(index: Sequence[Expr]) -> Value:
        i, j = _element_along(windows, index[-1])
        value, place = source.value(_index_of_element(index[:-1], windows, i, j)), offset(index[:-1], i, j)
        missing = call("where", int32, call("eq", bool_, value, values.value(index[:-1])), place, Constant(int32, NO_OFFSET))
        return call("where", int32, call("isnan", bool_, value), call("bitwise_not", int32, place), missing)

    size = (*values.size, windows[0].size * windows[1].size)
    least = reduce_box(graph, graph.pointwise(size, int32, key), (len(size) - 1,), "min", int32, False)

    def decoded(index: Sequence[Expr]) -> Value:
        found = least.value(index)
        # A padding element may equal a largest value that is the least of all; then take the first element inside.
        place = call("maximum", int32, found, first(index))
        nan = call("lt", bool_, found, Constant(int32, 0))
        return call("where", int32, nan, call("bitwise_not", int32, found), place)

    return decoded


def _offset_of_largest(taps: Iterable[tuple[Value, Value]], best: Value, place: Value) -> Value:
    """Return the offset of the largest value: the first one, or the last NaN."""
    for value, offset in taps:
        wins = call("logical_or", bool_, call("gt", bool_, value, best), call("isnan", bool_, value))
        place = call("where", int32, wins, offset, place)
        best = call("maximum", value.dtype, best, value)
    return place


def _index_in_plane(top: Expr, left: Expr, windows: Windows, width: Size, place: Value) -> Value:
    """Return the index in its plane for an offset from a window's corner."""
    high, wide = windows
    corner = index_value((top - high.padding) * width + left - wide.padding)
    return call("add", int64, corner, cast(place, int64))


def _offset(index: Sequence[Expr], i: Expr | int, j: Expr | int, windows: Windows, width: Size) -> Value:
    """Return the offset of element (i, j) from the corner of its window, in elements of a plane."""
    return number_value(as_expr(i * windows[0].dilation * width + j * windows[1].dilation), int32)


def _first_inside(top: Expr, left: Expr, windows: Windows, width: Size) -> Value:
    """Return the offset of a window's first element that is not padding."""
    return call("add", int32, _first_along(top, windows, width, False), _first_along(left, windows, width, True))


def _first_along(start: Expr, windows: Windows, width: Size, across: bool) -> Value:
    """Return the part of `_first_inside` along columns (`across`) or rows, for a window that starts at `start`."""
    window, found = windows[across], None
    taps = min(window.size, -(-window.padding // window.dilation) + 1)
    if taps > MAX_UNROLLED:
        return _first_by_division(start, window, 1 if across else width)
    for tap in reversed(range(taps)):
        offset = _offset((), 0, tap, windows, width) if across else _offset((), tap, 0, windows, width)
        inside = call("ge", bool_, index_value(start + tap * window.dilation), Constant(int64, window.padding))
        found = offset if found is None else call("where", int32, inside, offset, found)
    return found


def _first_by_division(start: Expr, window: Window, step: Size) -> Value:
    """Do the same as `_first_along` for large paddings, by division; elements of the dimension are `step` apart."""
    before = call("maximum", int64, index_value(window.padding + window.dilation - 1 - start), Constant(int64, 0))
    tap = call("floor_div", int64, before, Constant(int64, window.dilation)) if window.dilation > 1 else before
    return call("mul", int32, cast(tap, int32), number_value(as_expr(window.dilation * step), int32))


@lowering("avg_pool2d")
def avg_pool2d(graph, self, kernel_size, stride=(), padding=0, ceil_mode=False, count_include_pad=True,
               divisor_override=None):  # fmt: skip
    windows = windows_over(self.size, kernel_size, stride, padding, 1, ceil_mode, "avg_pool2d")
    count = divisor_override or windows[0].size * windows[1].size
    uneven = ceil_mode or (any(window.padding for window in windows) and not count_include_pad)
    source = _pad(graph, self, windows, ceil_mode, 0.0)
    if divisor_override or not uneven:
        return _pool(graph, source, windows, "add", self.dtype, 1.0 / count)
    total = _pool(graph, source, windows, "add", float32 if self.dtype.itemsize < 4 else self.dtype)

    def inner(index) -> Value:
        counts = (counted_elements(window, position, count_include_pad)
                  for window, position in zip(windows, index[-2:], strict=True))  # fmt: skip
        return call("div", total.dtype, total.value(index), cast(call("mul", int64, *counts), total.dtype))

    return graph.pointwise(total.size, self.dtype, inner)


def counted_elements(window: Window, position: Expr, count_include_pad: bool) -> Value:
    """Return the number of elements along one dimension that the window at `position` counts."""
    start = index_value(position * window.stride - window.padding)
    room = window.padding if count_include_pad else 0
    end = call("minimum", int64, index_value(position * window.stride - window.padding + window.size),
               index_value(as_size(window.inputs) + room))  # fmt: skip
    begin = start if count_include_pad else call("maximum", int64, start, Constant(int64, 0))
    return call("sub", int64, end, begin)
