"""What lowering needs to know of the processor that runs the graph."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """`keeps_halves`: matrices of 16-bit floats are multiplied in their own type, with sums in float32. `reads_blocks`: loads
    of a convolution's channels are fast only where these lie side by side. A reduction to at most `few_results` results, or
    `few_side_by_side` contiguous ones, is split into at most `most_parts` parts, which run at the same time and have at most
    `most_partial` results in all."""

    keeps_halves: bool = False
    reads_blocks: bool = False
    few_results: int = 8
    few_side_by_side: int = 256
    most_parts: int = 64
    most_partial: int = 1 << 62


CPU = Target()
GPU = Target(
    keeps_halves=True, reads_blocks=True, few_results=64, few_side_by_side=16384, most_parts=1024, most_partial=1 << 15,
)  # fmt: skip
