"""Lowering of tensors made from numbers."""

from __future__ import annotations

from rushlight.core.dtype import int64, of_number
from rushlight.inductor.ir import Constant
from rushlight.inductor.lowering.builder import call, cast, convert_number, index_value
from rushlight.inductor.lowering.registry import lowering
from rushlight.ops.meta.creation import arange_dtype, arange_length


@lowering("full")
def full(graph, size, fill_value, *, dtype=None, layout=None, device=None, pin_memory=None):
    kind = dtype or of_number(fill_value)
    return graph.pointwise(tuple(size), kind, lambda index: Constant(kind, convert_number(fill_value, kind)))


@lowering("arange.start_step")
def arange(graph, start, end, step=1, *, dtype=None, layout=None, device=None, pin_memory=None):
    kind = arange_dtype((start, end, step), dtype)
    count = arange_length(start, end, step)

    def inner(index):
        if isinstance(start, int) and isinstance(step, int):
            return cast(index_value(index[0] * step + start, int64), kind)
        scaled = call("mul", kind, cast(index_value(index[0], int64), kind), Constant(kind, float(step)))
        return call("add", kind, scaled, Constant(kind, float(start)))

    return graph.pointwise((count,), kind, inner)
