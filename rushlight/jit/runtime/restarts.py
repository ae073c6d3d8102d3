"""Whether a run of a graph may be abandoned and restarted: it must have no effects before its end.

In: a graph. Out: a bool, decided from its nodes alone. The graph must not write to arguments, print, draw random numbers, set
attributes, or call functions that are not inlined.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Graph, Node
from rushlight.jit.operators.lookup import has_side_effects, operator_of
from rushlight.jit.operators.registry import RANDOM, Operator
from rushlight.jit.passes.alias_analysis import AliasDb

_RANDOM_ARGUMENTS = ("dropout", "dropout_p", "generator")


def may_restart(graph: Graph) -> bool:
    """Return whether running a prefix of the graph and then the whole graph is equivalent to running it once."""
    memory = AliasDb(graph)
    return all(_has_no_effect(node, memory) for node in graph.all_nodes())


def _has_no_effect(node: Node, memory: AliasDb) -> bool:
    if node.kind == "prim::RaiseException":  # a run that raises is not restarted, so prim::RaiseException does no harm
        return True
    if not node.kind.startswith(("aten::", "prim::")) or has_side_effects(node) or memory.writes_to_wildcard(node):
        return False
    operator = operator_of(node) if node.kind.startswith("aten::") else None
    return operator is None or not _may_draw(operator)


def _may_draw(operator: Operator) -> bool:
    """Return whether an operator may draw random numbers."""
    name = operator.schema.name.removeprefix("aten::").removesuffix("_")
    return name in RANDOM or any(argument.name in _RANDOM_ARGUMENTS for argument in operator.schema.arguments)
