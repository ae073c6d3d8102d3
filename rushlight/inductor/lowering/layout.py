"""Memory layout: the order in which a loop's elements are computed and stored.

In: a Pointwise loop in the order of the tensor's dimensions. Out: the same loop in the order of what it reads. Convolution
results (1-D, 2-D, 3-D) that are channels-last keep that order through elementwise operators.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rushlight.core.algebra import Expr, Var
from rushlight.inductor.ir import (
    Buffer,
    ComputedBuffer,
    FixedLayout,
    IndexValue,
    Indirect,
    Load,
    Pointwise,
    TemplateBuffer,
    Value,
    contiguous_layout,
    walk,
)
from rushlight.inductor.sizes import Size, row_major, stride_along

ROW_RANK, IMAGE_RANK, VOLUME_RANK = 3, 4, 5
# Templates with channels-last results; gemm computes 1 x 1 convolutions.
CONVOLUTIONS = frozenset({
    "gemm", "direct_convolution", "winograd", "depthwise", "grouped", "convolution_input", "depthwise_input", "grouped_input",
})  # fmt: skip


def in_memory_order(loop: Pointwise, buffers: Mapping[str, Buffer]) -> tuple[Pointwise, FixedLayout]:
    """Return the loop with its variables in memory order, and the layout of its results."""
    rank = len(loop.ranges)
    if rank not in (ROW_RANK, IMAGE_RANK, VOLUME_RANK) or not _reads_channels_last(loop, buffers):
        return loop, contiguous_layout(loop.dtype, loop.ranges)
    order = channels_last(rank)
    ranges = tuple(loop.ranges[dim] for dim in order)
    steps = row_major(ranges)
    stride = tuple(steps[order.index(dim)] for dim in range(rank))
    ordered = replace(loop, ranges=ranges, variables=tuple(loop.variables[dim] for dim in order))
    return ordered, FixedLayout(loop.dtype, loop.ranges, stride)


def channels_last(rank: int) -> tuple[int, ...]:
    """Return the dimensions of a channels-last tensor, the outermost first."""
    return (0, *range(2, rank), 1)


def _reads_channels_last(loop: Pointwise, buffers: Mapping[str, Buffer]) -> bool:
    """Return whether a loop reads more images that are channels-last than images with contiguous rows.

    Tensors of three or five dimensions may be something else, so for those a convolution's result must be among the inputs.
    """
    looked_up = {node.variable: node.index for node in walk(loop.body) if isinstance(node, Indirect)}
    moving = [variable for variable, extent in zip(loop.variables[2:], loop.ranges[2:], strict=True) if extent != 1]
    if loop.ranges[1] == 1 or not moving:
        return False
    last = first = 0
    known = len(loop.ranges) == IMAGE_RANK
    for node in walk(loop.body):
        if isinstance(node, Load):
            found = [position for variable, position in looked_up.items() if node.index.contains(variable)]
            steps = [_step(node.index, found, variable) for variable in (loop.variables[1], *moving)]
            if 0 not in steps:  # None (the stride of a divided or gathered index) also counts as a nonzero stride
                made = _is_made_by_convolution(buffers[node.buffer])
                is_last = steps[0] == 1 or (made and steps[-1] != 1 and (steps[0] is None) != (steps[-1] is None))
                last += is_last
                first += steps[-1] == 1
                known = known or (is_last and made)
    return known and last > first


def _is_made_by_convolution(buffer: Buffer) -> bool:
    """Return whether a buffer is a convolution's channels-last result, or a loop's result in such an order."""
    if isinstance(buffer, TemplateBuffer):
        return buffer.kind in CONVOLUTIONS and len(buffer.layout.size) == IMAGE_RANK
    return isinstance(buffer, ComputedBuffer) and buffer.layout != contiguous_layout(buffer.layout.dtype, buffer.layout.size)


def reads_along(body: Value, variable: Var, other: Var) -> bool:
    """Return whether more loads of a body have unit stride along a variable than along another one."""
    reads = [node.index for node in walk(body) if isinstance(node, Load)]
    along = sum(stride_along(index, variable) == 1 for index in reads)
    return along > sum(stride_along(index, other) == 1 for index in reads)


def _step(index: Expr, looked_up: Sequence[Value], variable: Var) -> Size | None:
    """Return a load's stride along a variable; None if its index contains positions that depend on the variable."""
    return None if any(depends_on(position, variable) for position in looked_up) else stride_along(index, variable)


def depends_on(value: Value, variable: Var) -> bool:
    """Return whether a value depends on a loop variable."""
    return any(isinstance(node, Load | IndexValue) and node.index.contains(variable) for node in walk(value))
