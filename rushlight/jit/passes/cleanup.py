"""The passes that follow emission.

Requires: SSA. Guarantees: loops have one reason to end, forked calls are graphs, operators have one name each, there is no dead
code and no tuple that is only unpacked, computations on known numbers and strings are folded, equal constants are merged at the
beginning, and the results of ifs and loops are in order of use.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Graph
from rushlight.jit.passes.canonicalize_modified_loops import canonicalize_modified_loops
from rushlight.jit.passes.canonicalize_outputs import canonicalize_outputs
from rushlight.jit.passes.constant_pooling import constant_pooling
from rushlight.jit.passes.constant_propagation import constant_propagation_immutable_types
from rushlight.jit.passes.lift_closures import lift_closures
from rushlight.jit.passes.lower_tuples import forward_elements
from rushlight.jit.passes.normalize_ops import normalize_ops
from rushlight.jit.passes.registry import graph_pass


@graph_pass("RunCleanupPasses")
def run_cleanup_passes(graph: Graph) -> None:
    """Tidy up a graph that was just emitted."""
    canonicalize_modified_loops(graph)
    lift_closures(graph)
    normalize_ops(graph)
    forward_elements(graph)
    constant_propagation_immutable_types(graph)
    constant_pooling(graph)
    canonicalize_outputs(graph)
