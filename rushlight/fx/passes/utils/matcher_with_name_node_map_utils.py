"""SubgraphMatcherWithNameNodeMap: patterns that name nodes of theirs, and matches that say which nodes these are."""

from __future__ import annotations

import copy

from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.fx.passes.utils.matcher_utils import InternalMatch, SubgraphMatcher
from rushlight.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["SubgraphMatcherWithNameNodeMap"]


class SubgraphMatcherWithNameNodeMap(SubgraphMatcher):
    """As `SubgraphMatcher`, for a module whose last result is a dict from names to values of the pattern.

    Each match's `name_node_map` has the graph's nodes by these names. RuntimeError where the last result is no such dict.
    """

    def __init__(
        self, pattern_gm: GraphModule, match_output: bool = False, match_placeholder: bool = False,
        remove_overlapping_matches: bool = True, ignore_literals: bool = False,
    ) -> None:  # fmt: skip
        pattern_gm, self.name_node_map = _split_to_graph_and_name_node_map(pattern_gm)
        super().__init__(pattern_gm.graph, match_output, match_placeholder, remove_overlapping_matches, ignore_literals)

    def match(self, graph: Graph) -> list[InternalMatch]:
        """Return the matches in a graph, with the nodes that the pattern names."""
        found = super().match(graph)
        for match in found:
            match.name_node_map = {name: match.nodes_map[node] for name, node in self.name_node_map.items()}
        return found


def _split_to_graph_and_name_node_map(gm: GraphModule) -> tuple[GraphModule, dict[str, Node]]:
    """Return the module without the dict that it returns last, and this dict."""
    made = copy.deepcopy(gm)
    output = made.graph.output_node()
    results, structure = output.args[0], getattr(made, "_out_spec", None)
    if structure is not None:  # the module of an exported program, whose graph returns the leaves
        results = tree_unflatten(list(results), structure)
    *kept, names = results if isinstance(results, list | tuple) and results else (None,)
    if not isinstance(names, dict) or not all(isinstance(node, Node) for node in names.values()):
        raise RuntimeError("the pattern's last result must be a dict from names to values that it calculates")
    kept_leaves, kept_structure = tree_flatten(tuple(kept))
    output.args = (tuple(kept_leaves) if structure is not None else tuple(kept),)
    if structure is not None:
        made._out_spec = kept_structure
    made.recompile()
    return made, dict(names)
