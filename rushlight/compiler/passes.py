"""The list of graph passes that run between capture and backend, in order. A pass edits a GraphModule in place."""

from __future__ import annotations

from collections.abc import Callable

from rushlight.aot.decompose import decompose
from rushlight.aot.decompositions import TRAINING
from rushlight.aot.functionalize import functionalize
from rushlight.aot.memory import anchor_views
from rushlight.aot.negatives import compute_negatives
from rushlight.aot.random import seed_random
from rushlight.autograd.profiler import compile_stage
from rushlight.compiler.logs import StageLog
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.symbolic_sizes import name_symbols
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.registry import aten

Pass = Callable[[GraphModule], None]


@compile_stage("_recursive_joint_graph_passes")
def run(passes: list[Pass], module: GraphModule, log: StageLog) -> None:
    """Run passes in order. The log gets the graph before them, and after each pass that changed its text."""
    if not log.wants("passes"):
        for graph_pass in passes:
            graph_pass(module)
        return
    before = module.print_readable(print_output=False)
    log("passes", lambda: before, lambda: module, "traced")
    for graph_pass in passes:
        graph_pass(module)
        after = module.print_readable(print_output=False)
        if after != before:
            log("passes", lambda: after, lambda: module, f"after {graph_pass.__name__}")  # noqa: B023  (read at once)
        before = after


def eliminate_dead_code(module: GraphModule) -> None:
    """Remove nodes whose results nothing uses. Guarantees: every remaining node is used, or writes to memory."""
    module.graph.eliminate_dead_code()


def check(module: GraphModule) -> None:
    """Lint the graph. Its code is only generated when it runs as Python."""
    module.graph.lint()
    module.discard_code()


def depends_on_placement(module: GraphModule) -> bool:
    """Return whether the graph only holds for inputs that share memory in the same way, at the same offsets.

    That is so if it writes to memory or takes views by absolute offsets (`as_strided`).
    """
    calls = [node.target for node in module.graph.nodes if node.op == "call_function"]
    return any(isinstance(target, OpOverload) and (target.is_mutable or target is aten("as_strided")) for target in calls)


def name_open_sizes(module: GraphModule) -> None:
    """Replace symbolic integers in arguments by nodes. Guarantees: arguments are nodes and plain values."""
    name_symbols(module.graph)


def decompose_training(module: GraphModule) -> None:
    """Decompose operators of training into ones that a backend fuses. Guarantees: the same results, up to rounding."""
    decompose(module, TRAINING)


# Passes for graphs without gradients, and for joint graphs before partitioning. They keep random operators, so that an
# interpreting backend draws the same numbers as eager.
PIPELINE: list[Pass] = [functionalize, anchor_views, name_open_sizes, eliminate_dead_code, check]


def for_fusion(fallback_random: bool) -> list[Pass]:
    """Return passes for a backend that fuses operators; with `fallback_random`, random numbers are drawn as in eager."""
    functional = [functionalize, anchor_views, compute_negatives, name_open_sizes, eliminate_dead_code, check]
    return [decompose_training, *([] if fallback_random else [seed_random]), *functional]
