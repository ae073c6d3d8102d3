"""CreateFunctionalGraphs: group nodes that write nothing into `prim::FunctionalGraph` nodes; InlineFunctionalGraphs undoes it.

Requires: SSA. CreateFunctionalGraphs guarantees that groups are maximal, and that nothing writes to a group's inputs or
results. InlineFunctionalGraphs guarantees that no group is left.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Graph, Node
from rushlight.jit.passes.alias_analysis import AliasDb
from rushlight.jit.passes.grouping import group_nodes, inline_group
from rushlight.jit.passes.helpers import is_pure
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass

_LOG = PassLog(__file__)
FUNCTIONAL = "prim::FunctionalGraph"
_STAYS = frozenset(("prim::Constant", "prim::GetAttr", "prim::CreateObject", "prim::Uninitialized", "prim::RaiseException"))


@graph_pass("CreateFunctionalGraphs", "_jit_pass_create_functional_graphs")
def create_functional_graphs(graph: Graph) -> list[Node]:
    """Group pure nodes; returns the new nodes."""
    aliases = AliasDb(graph)

    def may_join(node: Node) -> bool:
        return node.kind not in _STAYS and is_pure(node) and not aliases.node_has_writers(node)

    made = group_nodes(graph.block, FUNCTIONAL, may_join, 1)
    for node in made:
        _LOG.debug("made {}", node)
    return made


@graph_pass("InlineFunctionalGraphs", "_jit_pass_inline_functional_graphs")
def inline_functional_graphs(graph: Graph) -> None:
    """Inline the nodes of groups."""
    for node in graph.find_all_nodes(FUNCTIONAL):
        if _LOG.permits("{} is inlined", node):
            inline_group(node)
