"""Lowering of two-dimensional pooling: the window written out, over a padded copy where there is padding.

Large windows go in two steps, along the columns and then along the rows.
"""

from __future__ import annotations

from collections.abc import Iterable

from rushlight.core.algebra import Expr, as_expr
from rushlight.core.dtype import bool_, dtype, float32, int32, int64
from rushlight.core.symbolic import SymInt
from rushlight.inductor.ir import Constant, Value
from rushlight.inductor.lowering.builder import GraphBuilder, call, cast, index_value, number_value
from rushlight.inductor.lowering.indexing import constant_pad_nd
from rushlight.inductor.lowering.registry import lowering
from rushlight.inductor.sizes import Size, as_size
from rushlight.inductor.tensor_box import TensorBox
from rushlight.ops.meta.pooling import Window, windows_over

WRITTEN_OUT = 32  # elements of a window in one expression


def _padded(graph: GraphBuilder, box: TensorBox, windows: tuple[Window, Window], ceil_mode: bool, fill: float) -> TensorBox:
    """The box with `fill` wherever a window reaches beyond it."""
    high, wide = windows
    pad = (wide.padding, _padding_after(wide, ceil_mode), high.padding, _padding_after(high, ceil_mode))
    return graph.realize(constant_pad_nd(graph, box, pad, fill) if any(pad) else box)


def _are_large(windows: tuple[Window, Window]) -> bool:
    high, wide = windows
    return high.size > 1 and high.size * wide.size > WRITTEN_OUT


def _pooled(graph: GraphBuilder, source: TensorBox, windows: tuple[Window, Window], combine: str, kind: dtype,
            scale: float | None = None) -> TensorBox:  # fmt: skip
    """`combine` over each window of a padded box; then times `scale`."""
    high, wide = windows
    if _are_large(windows):
        every_row = high._replace(size=1, stride=1, outputs=source.size[-2])
        across = graph.realize(_pooled(graph, source, (every_row, wide), combine, kind))
        every_column = wide._replace(size=1, stride=1, outputs=wide.outputs)
        return _pooled(graph, across, (high, every_column), combine, kind, scale)

    def inner(index) -> Value:
        *lead, row, column = index
        result = None
        for i in range(high.size):
            for j in range(wide.size):
                at = [*lead, row * high.stride + i * high.dilation, column * wide.stride + j * wide.dilation]
                value = cast(source.value(at), kind)
                result = value if result is None else call(combine, kind, result, value)
        return result if scale is None else call("mul", kind, result, Constant(kind, scale))

    return graph.pointwise((*source.size[:-2], high.outputs, wide.outputs), kind, inner)


def _padding_after(window: Window, ceil_mode: bool) -> int:
    """How many elements behind the input the windows reach; for a symbolic size, how many they reach at most."""
    if isinstance(window.inputs, SymInt):
        return window.padding + (window.stride - 1 if ceil_mode else 0)
    return window.padding_after


@lowering("max_pool2d_with_indices")
def max_pool2d(graph, self, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    windows = windows_over(self.size, kernel_size, stride, padding, dilation, ceil_mode, "max_pool2d")
    source = _padded(graph, self, windows, ceil_mode, float("-inf"))
    return _pooled(graph, source, windows, "maximum", self.dtype), _places_of_largest(graph, source, windows)


def _places_of_largest(graph: GraphBuilder, source: TensorBox, windows: tuple[Window, Window]) -> TensorBox:
    """Where in its plane the largest element of each window of a padded box lies: the first one, or the last NaN."""
    high, wide = windows
    width = as_size(wide.inputs)
    if _are_large(windows):
        return _places_by_rows(graph, source, windows)

    def inner(index) -> Value:
        *lead, row, column = index
        top, left = row * high.stride, column * wide.stride  # of the window, in the source
        taps = ((source.value([*lead, top + i * high.dilation, left + j * wide.dilation]), _offset(i, j, windows, width))
                for i in range(high.size) for j in range(wide.size))  # fmt: skip
        _, place = _largest(taps, Constant(source.dtype, float("-inf")), _first_inside(top, left, windows, width))
        return _in_plane(top, left, windows, width, place)

    return graph.pointwise((*source.size[:-2], high.outputs, wide.outputs), int64, inner)


def _places_by_rows(graph: GraphBuilder, source: TensorBox, windows: tuple[Window, Window]) -> TensorBox:
    """The same by way of the largest element of each row of a window, and how far it lies from the window's left end."""
    high, wide = windows
    width, rows = as_size(wide.inputs), (*source.size[:-1], wide.outputs)

    def across(index) -> tuple[Value, Value]:
        *lead, row, column = index
        left = column * wide.stride
        taps = ((source.value([*lead, row, left + j * wide.dilation]), _offset(0, j, windows, width)) for j in range(wide.size))
        return _largest(taps, Constant(source.dtype, float("-inf")), _first_along(left, windows, width, True))

    largest, places = (
        graph.realize(graph.pointwise(rows, kind, lambda index, part=part: across(index)[part]))
        for part, kind in enumerate((source.dtype, int32))
    )

    def inner(index) -> Value:
        *lead, row, column = index
        top, left = row * high.stride, column * wide.stride
        found = [[*lead, top + i * high.dilation, column] for i in range(high.size)]
        taps = ((largest.value(at), call("add", int32, _offset(i, 0, windows, width), places.value(at)))
                for i, at in enumerate(found))  # fmt: skip
        _, place = _largest(taps, Constant(source.dtype, float("-inf")), _first_inside(top, left, windows, width))
        return _in_plane(top, left, windows, width, place)

    return graph.pointwise((*rows[:-2], high.outputs, wide.outputs), int64, inner)


def _largest(taps: Iterable[tuple[Value, Value]], best: Value, place: Value) -> tuple[Value, Value]:
    """The largest of some values and its place: the first one, or the last NaN."""
    for value, offset in taps:
        wins = call("logical_or", bool_, call("gt", bool_, value, best), call("isnan", bool_, value))
        place = call("where", int32, wins, offset, place)
        best = call("maximum", value.dtype, best, value)
    return best, place


def _in_plane(top: Expr, left: Expr, windows: tuple[Window, Window], width: Size, place: Value) -> Value:
    """The place in its plane of what lies `place` from the corner of a window."""
    high, wide = windows
    corner = index_value((top - high.padding) * width + left - wide.padding)
    return call("add", int64, corner, cast(place, int64))


def _offset(i: int, j: int, windows: tuple[Window, Window], width: Size) -> Value:
    """How far element (i, j) of a window lies from its corner, in elements of a plane."""
    return number_value(as_expr(i * windows[0].dilation * width + j * windows[1].dilation), int32)


def _first_inside(top: Expr, left: Expr, windows: tuple[Window, Window], width: Size) -> Value:
    """The offset of the first element of a window that is not padding."""
    return call("add", int32, _first_along(top, windows, width, False), _first_along(left, windows, width, True))


def _first_along(start: Expr, windows: tuple[Window, Window], width: Size, across: bool) -> Value:
    """The part of that offset along the columns (`across`) or the rows, where the window's begin at `start`."""
    window, found = windows[across], None
    for tap in reversed(range(min(window.size, -(-window.padding // window.dilation) + 1))):
        offset = _offset(0, tap, windows, width) if across else _offset(tap, 0, windows, width)
        inside = call("ge", bool_, index_value(start + tap * window.dilation), Constant(int64, window.padding))
        found = offset if found is None else call("where", int32, inside, offset, found)
    return found


@lowering("avg_pool2d")
def avg_pool2d(graph, self, kernel_size, stride=(), padding=0, ceil_mode=False, count_include_pad=True,
               divisor_override=None):  # fmt: skip
    windows = windows_over(self.size, kernel_size, stride, padding, 1, ceil_mode, "avg_pool2d")
    count = divisor_override or windows[0].size * windows[1].size
    uneven = ceil_mode or (any(window.padding for window in windows) and not count_include_pad)
    source = _padded(graph, self, windows, ceil_mode, 0.0)
    if divisor_override or not uneven:
        return _pooled(graph, source, windows, "add", self.dtype, 1.0 / count)
    total = _pooled(graph, source, windows, "add", float32 if self.dtype.itemsize < 4 else self.dtype)

    def inner(index) -> Value:
        counts = (counted_elements(window, position, count_include_pad)
                  for window, position in zip(windows, index[-2:], strict=True))  # fmt: skip
        return call("div", total.dtype, total.value(index), cast(call("mul", int64, *counts), total.dtype))

    return graph.pointwise(total.size, self.dtype, inner)


def counted_elements(window: Window, position: Expr, count_include_pad: bool) -> Value:
    """How many elements along one dimension the window at `position` counts."""
    start = index_value(position * window.stride - window.padding)
    room = window.padding if count_include_pad else 0
    end = call("minimum", int64, index_value(position * window.stride - window.padding + window.size),
               index_value(as_size(window.inputs) + room))  # fmt: skip
    begin = start if count_include_pad else call("maximum", int64, start, Constant(int64, 0))
    return call("sub", int64, end, begin)
