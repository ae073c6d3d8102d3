"""In which order the elements of a loop are calculated and lie in memory.

In: a Pointwise loop in the order of the tensor's dimensions. Out: the same loop in the order of what it reads: images that
come from a convolution channels-last stay so through what follows elementwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rushlight.core.algebra import Expr, Var
from rushlight.inductor.ir import FixedLayout, IndexValue, Indirect, Load, Pointwise, Value, contiguous_layout, walk
from rushlight.inductor.sizes import Size, row_major, stride_along

CHANNELS_LAST = (0, 2, 3, 1)
IMAGE_RANK = 4


def in_memory_order(loop: Pointwise) -> tuple[Pointwise, FixedLayout]:
    """The loop with its variables in the order in which its results shall lie, and their layout."""
    if len(loop.ranges) != IMAGE_RANK or not _reads_channels_last(loop):
        return loop, contiguous_layout(loop.dtype, loop.ranges)
    ranges = tuple(loop.ranges[dim] for dim in CHANNELS_LAST)
    steps = row_major(ranges)
    stride = tuple(steps[CHANNELS_LAST.index(dim)] for dim in range(IMAGE_RANK))
    ordered = replace(loop, ranges=ranges, variables=tuple(loop.variables[dim] for dim in CHANNELS_LAST))
    return ordered, FixedLayout(loop.dtype, loop.ranges, stride)


def _reads_channels_last(loop: Pointwise) -> bool:
    """Whether more of the images that a loop reads lie channels-last than with their columns side by side."""
    _, channel, row, column = loop.variables
    looked_up = {node.variable: node.index for node in walk(loop.body) if isinstance(node, Indirect)}
    if loop.ranges[1] == 1 or (loop.ranges[2] == 1 and loop.ranges[3] == 1):
        return False
    last = first = 0
    for node in walk(loop.body):
        if isinstance(node, Load):
            found = [position for variable, position in looked_up.items() if node.index.contains(variable)]
            steps = [_step(node.index, found, variable) for variable in (channel, row, column)]
            whole = all(step != 0 for step in steps)  # None, where an index is divided or looked up, is a step too
            last += whole and steps[0] == 1
            first += whole and steps[2] == 1
    return last > first


def reads_along(body: Value, variable: Var, other: Var) -> bool:
    """Whether more of a body's reads have unit stride along a variable than along another one."""
    reads = [node.index for node in walk(body) if isinstance(node, Load)]
    along = sum(stride_along(index, variable) == 1 for index in reads)
    return along > sum(stride_along(index, other) == 1 for index in reads)


def _step(index: Expr, looked_up: Sequence[Value], variable: Var) -> Size | None:
    """The stride of a load along a variable, or None; it may come by positions that are looked up themselves."""
    return None if any(depends_on(position, variable) for position in looked_up) else stride_along(index, variable)


def depends_on(value: Value, variable: Var) -> bool:
    """Whether a value changes along a loop's variable."""
    return any(isinstance(node, Load | IndexValue) and node.index.contains(variable) for node in walk(value))
