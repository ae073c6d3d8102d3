"""Make the `Plan` of a compiled graph.

In: a lowered graph and its program. Out: a `Plan` (see `plan`). Stage: inductor, calling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.inductor.plan import Given, Plan
from rushlight.inductor.sizes import Size, as_size, product

if TYPE_CHECKING:
    from rushlight.inductor.codegen.cpp.program import Program
    from rushlight.inductor.graph import LoweredGraph
    from rushlight.inductor.ir import Buffer

# Release the GIL for kernels of at least this many iterations: releasing it costs as much as a few thousand.
LONG_WORK = 20_000


def plan_of(lowered: LoweredGraph, program: Program) -> Plan:
    """Return the plan of a graph."""
    buffers = {buffer.name: buffer for buffer in lowered.buffers}
    names = [buffer.name for buffer in lowered.inputs]
    return Plan(
        inputs=tuple(map(_describe_buffer, lowered.inputs)),
        constants=tuple(map(_describe_buffer, program.constants)),
        folded=tuple(map(_buffer_bytes, program.folded)),
        packed=tuple(operand.nbytes for operand in program.packed),
        passing_bytes=program.passing_bytes,
        panel_bytes=program.panel_bytes,
        outputs={name: _buffer_bytes(buffers[name]) for name in program.outputs},
        dtypes={view.buffer: buffers[view.buffer].layout.dtype for view in lowered.outputs if view.buffer},
        views=tuple(lowered.outputs),
        written=tuple(names.index(write.target) for write in lowered.writes),
        is_long=_is_long(program),
    )


def _describe_buffer(buffer: Buffer) -> Given:
    layout = buffer.layout
    return Given(buffer.name, tuple(layout.size), tuple(layout.stride), layout.dtype, getattr(buffer, "target", ""))


def _buffer_bytes(buffer: Buffer) -> Size:
    return as_size(buffer.layout.numel * buffer.layout.dtype.itemsize)


def work_of(program: Program) -> Size | None:
    """Return the number of loop iterations in a program; None if it has templates, which always count as long."""
    groups = [group for group in program.groups if not group.constant]
    if any(group.template is not None for group in groups):
        return None
    return as_size(sum(product(group.domain or (group.numel,)) * len(group.members) for group in groups))


def _is_long(program: Program) -> bool:
    """Return whether a program of known sizes runs long enough to release the GIL."""
    work = work_of(program)
    return not isinstance(work, int) or work > LONG_WORK
