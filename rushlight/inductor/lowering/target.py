"""What lowering needs to know of the processor that runs the graph."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """`keeps_halves`: matrices of 16-bit floats are multiplied in their own type, with sums in float32. A reduction to at most
    `few_results` results is split into at most `most_parts` parts, which run at the same time."""

    keeps_halves: bool = False
    few_results: int = 8
    most_parts: int = 64


CPU = Target()
GPU = Target(keeps_halves=True, few_results=64, most_parts=1024)
