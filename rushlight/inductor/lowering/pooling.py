"""Lowering of two-dimensional pooling: the window written out, over a padded copy where there is padding."""

from __future__ import annotations

from rushlight.core.dtype import dtype
from rushlight.core.symbolic import SymInt
from rushlight.inductor.ir import Constant, Value
from rushlight.inductor.lowering.builder import GraphBuilder, call, cast
from rushlight.inductor.lowering.indexing import constant_pad_nd
from rushlight.inductor.lowering.registry import lowering
from rushlight.inductor.tensor_box import TensorBox
from rushlight.ops.meta.pooling import Window, windows_over


def _pooled(graph: GraphBuilder, box: TensorBox, windows: tuple[Window, Window], ceil_mode: bool, combine: str, fill: float,
            kind: dtype, scale: float | None = None) -> TensorBox:  # fmt: skip
    """`combine` over each window of a box, elements outside counting as `fill`; then times `scale`."""
    high, wide = windows
    pad = (wide.padding, _padding_after(wide, ceil_mode), high.padding, _padding_after(high, ceil_mode))
    source = graph.realize(constant_pad_nd(graph, box, pad, fill) if any(pad) else box)

    def inner(index) -> Value:
        *lead, row, column = index
        result = None
        for i in range(high.size):
            for j in range(wide.size):
                at = [*lead, row * high.stride + i * high.dilation, column * wide.stride + j * wide.dilation]
                value = cast(source.value(at), kind)
                result = value if result is None else call(combine, kind, result, value)
        return result if scale is None else call("mul", kind, result, Constant(kind, scale))

    return graph.pointwise((*box.size[:-2], high.outputs, wide.outputs), kind, inner)


def _padding_after(window: Window, ceil_mode: bool) -> int:
    """How many elements behind the input the windows reach; for a symbolic size, how many they reach at most."""
    if isinstance(window.inputs, SymInt):
        return window.padding + (window.stride - 1 if ceil_mode else 0)
    return window.padding_after


@lowering("max_pool2d_with_indices")
def max_pool2d(graph, self, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    windows = windows_over(self.size, kernel_size, stride, padding, dilation, ceil_mode, "max_pool2d")
    return _pooled(graph, self, windows, ceil_mode, "maximum", float("-inf"), self.dtype), None


@lowering("avg_pool2d")
def avg_pool2d(graph, self, kernel_size, stride=(), padding=0, ceil_mode=False, count_include_pad=True,
               divisor_override=None):  # fmt: skip
    windows = windows_over(self.size, kernel_size, stride, padding, 1, ceil_mode, "avg_pool2d")
    count = divisor_override or windows[0].size * windows[1].size
    return _pooled(graph, self, windows, ceil_mode, "add", 0.0, self.dtype, 1.0 / count)
