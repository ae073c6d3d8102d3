"""What a program says of all captures of the process, and how many there were.

`RULES` are read whenever a frame is captured; `counters` count what happened, under the names that PyTorch gives.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass


@dataclass
class Rules:
    """Settings of capture that are not those of one compiled function."""

    automatic_dynamic_shapes: bool = True
    """Leave sizes open that differ from those of an earlier capture, where `compile` was not told."""

    assume_static_by_default: bool = True
    """Fix sizes that are met for the first time; False opens all, as `dynamic=True` does."""

    capture_scalar_outputs: bool = False
    """Keep what `item()` and its like give in the graph, as numbers that are known when it runs."""

    capture_dynamic_output_shape_ops: bool = False
    """Keep operators in the graph whose results are as large as values say, such as `nonzero`."""

    trace_numpy: bool = True
    """Follow functions of NumPy, as operations on tensors."""

    suppress_errors: bool = False
    """Run a frame in eager, with a warning, where a backend fails; not with `fullgraph`."""

    error_on_recompile: bool = False
    """Raise RecompileError where a frame would be captured again."""

    disable: bool = False
    """Capture nothing; what was captured is used."""


RULES = Rules()

# stats: calls_captured, unique_graphs; frames: total, ok; graph_break: by reason.
counters: defaultdict[str, Counter] = defaultdict(Counter)
