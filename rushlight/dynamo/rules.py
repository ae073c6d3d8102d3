"""Process-wide rules of capture, and counters of what happened.

`RULES` are read whenever a frame is captured; `counters` have PyTorch's names.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass


@dataclass
class Rules:
    """Settings for all captures of the process."""

    automatic_dynamic_shapes: bool = True
    """Open sizes that changed since an earlier capture, unless `compile` was told otherwise."""

    assume_static_by_default: bool = True
    """Fix sizes that are met for the first time; False opens all, like `dynamic=True`."""

    capture_scalar_outputs: bool = False
    """Keep the results of `item()` and the like in the graph, as numbers that are known when it runs."""

    capture_dynamic_output_shape_ops: bool = False
    """Keep operators in the graph whose result sizes depend on data, such as `nonzero`."""

    trace_numpy: bool = True
    """Capture NumPy functions as tensor operations."""

    suppress_errors: bool = False
    """Run a frame in eager, with a warning, if the backend fails. `fullgraph` ignores this."""

    error_on_recompile: bool = False
    """Raise RecompileError instead of capturing a frame again."""

    disable: bool = False
    """Capture nothing new; existing captures are still used."""


RULES = Rules()

# stats: calls_captured, unique_graphs; frames: total, ok; graph_break: by reason.
counters: defaultdict[str, Counter] = defaultdict(Counter)
