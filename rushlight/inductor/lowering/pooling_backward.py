"""Lowering of 2-D pooling gradients.

Each input element collects from the few windows that contain it, so nothing is scattered. Max pooling's gradients are scattered
if images are channels-first, because windows then prevent vectorization.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from rushlight.core.algebra import Expr
from rushlight.core.dtype import bool_, int32, int64
from rushlight.core.symbolic import SymInt
from rushlight.inductor.ir import Constant, Value
from rushlight.inductor.lowering.builder import GraphBuilder, call, cast, index_value, masked
from rushlight.inductor.lowering.convolutions import lies_channels_last
from rushlight.inductor.lowering.indexing import constant_pad_nd, is_within
from rushlight.inductor.lowering.layout import IMAGE_RANK
from rushlight.inductor.lowering.pooling import MAX_UNROLLED, Windows, counted_elements
from rushlight.inductor.lowering.reductions import reduce_box
from rushlight.inductor.lowering.registry import lowering
from rushlight.inductor.lowering.scatters import scatter_add
from rushlight.inductor.sizes import as_size
from rushlight.inductor.tensor_box import TensorBox
from rushlight.ops.meta.pooling import Window, windows_over

MAX_WINDOWS = 9  # max pooling's gradient is scattered if more windows than this overlap at an element

Share = Callable[[Sequence[Expr], tuple[Expr, Expr]], Value]


def _sum_over_windows(
    graph: GraphBuilder, grad: TensorBox, size: tuple[int | SymInt, ...], windows: Windows, share: Share
) -> TensorBox:
    """Sum `share(index of a window, index of the element)` over the windows that may contain each element."""
    reaches = [range(_max_windows_of_element(window)) for window in windows]

    def inner(index: Sequence[Expr]) -> Value:
        *lead, row, column = index
        total = None
        for back_rows in reaches[0]:
            for back_columns in reaches[1]:
                positions = zip((row, column), windows, (back_rows, back_columns), strict=True)
                at = [(position + window.padding) // window.stride - back for position, window, back in positions]
                inside = [is_within(position, window.outputs, 1) for position, window in zip(at, windows, strict=True)]
                value = masked(
                    grad.dtype, call("logical_and", bool_, *inside), share([*lead, *at], (row, column)),
                    Constant(grad.dtype, 0.0),
                )  # fmt: skip
                total = value if total is None else call("add", grad.dtype, total, value)
        return total

    return graph.pointwise(size, grad.dtype, inner)


def _max_windows_of_element(window: Window) -> int:
    """Return the maximal number of windows that contain an element, along one dimension."""
    return window.dilation * (window.size - 1) // window.stride + 1


@lowering("max_pool2d_with_indices_backward")
def max_pool2d_backward(graph, grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices):
    windows = windows_over(self.size, kernel_size, stride, padding, dilation, ceil_mode, "max_pool2d_backward")
    overlapping = math.prod(map(_max_windows_of_element, windows))
    if len(self.size) == IMAGE_RANK and lies_channels_last(graph, grad_output) and overlapping <= MAX_WINDOWS:
        return _collect_from_windows(graph, grad_output, self, windows, indices)
    planes, (height, width) = self.size[:-2], self.size[-2:]
    rows, columns = grad_output.size[-2:]
    nothing = graph.pointwise((*planes, height * width), self.dtype, lambda at: Constant(self.dtype, 0.0))
    found = (box.reshape((*planes, rows * columns)) for box in (indices, grad_output))
    return scatter_add(graph, nothing, -1, *found).reshape(self.size)


def _collect_from_windows(
    graph, grad: TensorBox, self: TensorBox, windows: Windows, indices: TensorBox
) -> TensorBox:
    """For each element, sum the gradients of the windows whose largest element it was; vectors run along channels."""
    graph.realize(grad)
    graph.realize(indices)
    plane = as_size(self.size[-2] * self.size[-1])
    narrow = int32 if isinstance(plane, int) and plane < 1 << 31 else int64  # int32 vectors have as many lanes as float vectors

    def share(window: Sequence[Expr], element: tuple[Expr, Expr]) -> Value:
        position = index_value(element[0] * as_size(self.size[-1]) + element[1])
        chosen = call("eq", bool_, cast(indices.value(window), narrow), cast(position, narrow))
        return call("where", grad.dtype, chosen, grad.value(window), Constant(grad.dtype, 0.0))

    return _sum_over_windows(graph, grad, self.size, windows, share)


@lowering("avg_pool2d_backward")
def avg_pool2d_backward(graph, grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad,
                        divisor_override):  # fmt: skip
    windows = windows_over(self.size, kernel_size, stride, padding, 1, ceil_mode, "avg_pool2d_backward")
    kind = grad_output.dtype

    def divided(index: Sequence[Expr]) -> Value:
        pairs = zip(windows, index[-2:], strict=True)
        counts = [counted_elements(window, position, count_include_pad) for window, position in pairs]
        count = Constant(int64, divisor_override) if divisor_override else call("mul", int64, *counts)
        return call("div", kind, grad_output.value(index), cast(count, kind))

    return _spread(graph, graph.realize(graph.pointwise(grad_output.size, kind, divided)), windows)


def _spread(graph: GraphBuilder, shares: TensorBox, windows: Windows) -> TensorBox:
    """For each element, sum the shares of the windows that contain it."""
    high, wide = windows
    if math.prod(map(_max_windows_of_element, windows)) > MAX_UNROLLED:
        if any(window.size == window.stride == 1 for window in windows):
            return _spread_by_reduction(graph, shares, windows)
        across = graph.realize(_spread(graph, shares, (_single_element_windows(high.outputs), wide)))
        return _spread(graph, across, (high, _single_element_windows(wide.inputs)))

    def share(window: Sequence[Expr], element: tuple[Expr, Expr]) -> Value:
        value = shares.value(window)
        for position, part, at in zip(element, windows, window[-2:], strict=True):
            distance = index_value(position + part.padding - at * part.stride)
            near = call("lt", bool_, distance, Constant(int64, part.size))
            value = call("where", shares.dtype, near, value, Constant(shares.dtype, 0.0))
        return value

    return _sum_over_windows(graph, shares, (*shares.size[:-2], high.inputs, wide.inputs), windows, share)


def _single_element_windows(inputs: int | SymInt) -> Window:
    """Return windows of one element each."""
    return Window(size=1, stride=1, padding=0, dilation=1, inputs=inputs, outputs=inputs)


def _spread_by_reduction(graph: GraphBuilder, shares: TensorBox, windows: Windows) -> TensorBox:
    """Do the same as `_spread` by a reduction, if many windows contain an element along one dimension and one along the
    other."""
    across = windows[0].size == 1
    window, reach = windows[across], _max_windows_of_element(windows[across])
    pad = (reach, reach) if across else (0, 0, reach, reach)
    source = graph.realize(constant_pad_nd(graph, shares, pad, 0.0))

    def share(index: Sequence[Expr]) -> Value:
        *at, position = index
        place = at[across - 2] + window.padding
        at[across - 2] = place // window.stride + position + 1  # index in the padded shares
        value = source.value(at)
        if window.size % window.stride == 0:
            return value
        distance = index_value(place - (place // window.stride + position + 1 - reach) * window.stride)
        near = call("lt", bool_, distance, Constant(int64, window.size))
        return call("where", shares.dtype, near, value, Constant(shares.dtype, 0.0))

    size = (*shares.size[:-2], *(each.inputs for each in windows))
    found = graph.pointwise((*size, reach), shares.dtype, share)
    return reduce_box(graph, found, (len(size),), "sum", shares.dtype, False)
