"""EliminateCommonSubexpression: merge nodes that compute the same into the first of them.

Requires: SSA. Guarantees: no two pure nodes, one of which can be seen from the other, have equal kind, inputs, attributes and
result types. Nodes whose inputs or results may be written to, and nodes with blocks, stay.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Block, Graph, Node
from rushlight.jit.operators.lookup import has_side_effects
from rushlight.jit.passes.alias_analysis import AliasDb
from rushlight.jit.passes.constant_pooling import frozen_constant
from rushlight.jit.passes.helpers import is_nondeterministic
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass

_LOG = PassLog(__file__)
_SKIPPED = frozenset(("prim::profile", "prim::Uninitialized", "prim::CreateObject", "prim::GetAttr"))


@graph_pass("EliminateCommonSubexpression", "_jit_pass_cse")
def eliminate_common_subexpression(graph: Graph) -> bool:
    """Merge equal nodes; returns whether there were any."""
    return _Eliminator(graph).block(graph.block, [])


class _Eliminator:
    def __init__(self, graph: Graph):
        self.aliases = AliasDb(graph)
        self.escaping = list(graph.outputs)

    def block(self, block: Block, outer: list[dict[tuple, Node]]) -> bool:
        """Merge the nodes of a block with equal ones before them there and in enclosing blocks."""
        known: dict[tuple, Node] = {}
        scopes = [*outer, known]
        changed = False
        for node in block.nodes:
            for inner in node.blocks:
                changed |= self.block(inner, scopes)
            key = self._key(node)
            if key is None:
                continue
            found = next((scope[key] for scope in scopes if key in scope), None)
            if found is None:
                known[key] = node
            elif self._may_share(node, found) and _LOG.permits("{} is replaced by {}", node, found):
                node.replace_all_uses_with(found)
                node.destroy()
                changed = True
        return changed

    def _key(self, node: Node) -> tuple | None:
        """Return the key that equal nodes share; None for a node that must stay."""
        if node.blocks or node.kind in _SKIPPED or not node.outputs or has_side_effects(node) or is_nondeterministic(node):
            return None
        if self.aliases.node_has_writers(node):
            return None
        try:
            attributes = tuple(sorted((name, frozen_constant(value)) for name, value in node.attributes.items()))
        except TypeError:
            return None
        return node.kind, node.inputs, tuple(value.type for value in node.outputs), attributes

    def _may_share(self, node: Node, found: Node) -> bool:
        """Return whether two results are interchangeable: not so for two lists that are both returned."""
        both_seen = self.aliases.may_contain_alias(node.outputs, self.escaping) and self.aliases.may_contain_alias(
            found.outputs, self.escaping
        )
        return not both_seen or node.kind == "prim::Constant"
