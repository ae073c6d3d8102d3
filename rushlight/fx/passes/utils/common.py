"""Compare graphs, and make a module of a part of one."""

from __future__ import annotations

import operator
from collections.abc import Mapping

from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, map_arg
from rushlight.nn.modules.module import Module

__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module"]


class HolderModule(Module):
    """Make a module that holds the modules of `d` by name."""

    def __init__(self, d: Mapping[str, Module]) -> None:
        super().__init__()
        for name, module in d.items():
            self.add_module(name, module)


def lift_subgraph_as_module(
    gm: GraphModule, subgraph: Graph, comp_name: str = "", class_name: str = "GraphModule"
) -> tuple[GraphModule, dict[str, str]]:
    """Make a GraphModule of `subgraph`, with the modules and attributes of `gm` that it names, and a table of their names.

    The table has the new dotted names, which begin with `comp_name`, by the old ones; the names in the graph stay.
    """
    targets = [node.target for node in subgraph.nodes if node.op in ("call_module", "get_attr")]
    made = GraphModule({target: operator.attrgetter(target)(gm) for target in targets}, subgraph, class_name)
    return made, {target: f"{comp_name}.{target}" if comp_name else target for target in targets}


def compare_graphs(left: Graph, right: Graph) -> bool:
    """Return whether two graphs have the same nodes in the same order: opcodes, targets and arguments."""
    if len(left.nodes) != len(right.nodes):
        return False
    match: dict[Node, Node] = {}
    for one, other in zip(left.nodes, right.nodes, strict=True):
        same_target = one.target == other.target or one.op in ("placeholder", "output")
        args, kwargs = map_arg((one.args, one.kwargs), lambda used: match.get(used, used))
        if one.op != other.op or not same_target or args != other.args or kwargs != other.kwargs:
            return False
        match[one] = other
    return True
