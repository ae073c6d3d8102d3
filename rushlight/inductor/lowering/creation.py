"""Lowering of tensors made from numbers."""

from __future__ import annotations

from rushlight.core.dtype import int64, of_number
from rushlight.core.symbolic import SymInt
from rushlight.inductor.lowering.builder import call, cast, index_value, number_value
from rushlight.inductor.lowering.registry import lowering
from rushlight.ops.meta.creation import arange_dtype, arange_length, arange_numbers


@lowering("full")
def full(graph, size, fill_value, *, dtype=None, layout=None, device=None, pin_memory=None):
    kind = dtype or (int64 if isinstance(fill_value, SymInt) else of_number(fill_value))
    return graph.pointwise(tuple(size), kind, lambda index: number_value(fill_value, kind))


@lowering("empty.memory_format")
def empty(graph, size, *, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
    """Return memory that native code overwrites before reading, or that nothing reads."""
    return full(graph, size, 0.0, dtype=dtype)


@lowering("empty_strided")
def empty_strided(graph, size, stride, *, dtype=None, layout=None, device=None, pin_memory=None):
    """Like `empty`, for dense strides in any order, as `inductor/support.py` has checked."""
    order = sorted(range(len(size)), key=lambda dim: (-stride[dim], dim))
    made = full(graph, [size[dim] for dim in order], 0.0, dtype=dtype)
    return made.view(size, lambda index: [index[dim] for dim in order])


@lowering("arange.start_step")
def arange(graph, start, end, step=1, *, dtype=None, layout=None, device=None, pin_memory=None):
    kind = arange_dtype((start, end, step), dtype)
    start, end, step = arange_numbers((start, end, step), kind)
    count = arange_length(start, end, step)

    def inner(index):
        if isinstance(start, int | SymInt) and isinstance(step, int | SymInt):
            return cast(index_value(index[0] * step + start, int64), kind)
        scaled = call("mul", kind, cast(index_value(index[0], int64), kind), number_value(step, kind))
        return call("add", kind, scaled, number_value(start, kind))

    return graph.pointwise((count,), kind, inner)
