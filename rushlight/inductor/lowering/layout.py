"""In which order the elements of a loop are calculated and lie in memory.

In: a Pointwise loop in the order of the tensor's dimensions. Out: the same loop in the order of what it reads: images that
come from a convolution channels-last stay so through what follows elementwise.
"""

from __future__ import annotations

from dataclasses import replace

from rushlight.inductor.ir import FixedLayout, Load, Pointwise, contiguous_layout, walk
from rushlight.inductor.sizes import row_major, stride_along

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
    if loop.ranges[1] == 1 or (loop.ranges[2] == 1 and loop.ranges[3] == 1):
        return False
    last = first = 0
    for node in walk(loop.body):
        if isinstance(node, Load):
            steps = [stride_along(node.index, variable) for variable in (channel, row, column)]
            whole = all(step != 0 for step in steps)  # None, where an index is divided, is a step too
            last += whole and steps[0] == 1
            first += whole and steps[2] == 1
    return last > first
