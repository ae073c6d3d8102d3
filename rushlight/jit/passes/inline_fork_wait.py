"""InlineForkWait: run forked code at the fork.

Requires: SSA, lifted closures. Guarantees: no `prim::fork` is left, nor an `aten::wait` for one of them.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Block, Graph, Value
from rushlight.jit.passes.inline import insert_graph
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass

_LOG = PassLog(__file__)


@graph_pass("InlineForkWait", "_jit_pass_inline_fork_wait")
def inline_fork_wait(graph: Graph) -> None:
    """Inline forked graphs."""
    _inline(graph.block, {})


def _inline(block: Block, results: dict[Value, Value]) -> None:
    for node in block.nodes:
        for inner in node.blocks:
            _inline(inner, results)
        if node.kind == "prim::fork" and _LOG.permits("the fork {} is inlined", node):
            body: Graph = node["Subgraph"]
            inline_fork_wait(body)
            results[node.output] = insert_graph(node, body, list(node.inputs))[0]
        elif node.kind == "aten::wait" and node.input() in results and _LOG.permits("{} need not wait", node):
            node.output.replace_all_uses_with(results[node.input()])
            node.destroy()
    for future in results:
        if not future.uses and future.node.block is block:
            future.node.destroy()
