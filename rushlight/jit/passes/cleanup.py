"""The passes that follow emission.

Requires: SSA. Guarantees: forked calls are graphs, operators have one name each, no dead code, no tuples that are only taken
apart, what is known of numbers and strings is a constant, and equal constants are one, at the beginning.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Graph
from rushlight.jit.passes.constant_pooling import constant_pooling
from rushlight.jit.passes.constant_propagation import constant_propagation_immutable_types
from rushlight.jit.passes.dead_code_elimination import eliminate_dead_code
from rushlight.jit.passes.lift_closures import lift_closures
from rushlight.jit.passes.lower_tuples import forward_elements
from rushlight.jit.passes.normalize_ops import normalize_ops
from rushlight.jit.passes.registry import graph_pass


@graph_pass("RunCleanupPasses")
def run_cleanup_passes(graph: Graph) -> None:
    """Tidy up a graph that was just emitted."""
    lift_closures(graph)
    normalize_ops(graph)
    eliminate_dead_code(graph)
    forward_elements(graph)
    constant_propagation_immutable_types(graph)
    constant_pooling(graph)
