"""Guard a node that is valid only for tensors of certain types: a check, a branch, and a fallback.

In: a node that holds a graph. Out: the node in the first branch of an if on the check; in the second, a `prim::FallbackGraph`
with the same graph without assumptions.
"""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.jit.ir.graph import Graph, Node
from rushlight.jit.passes.clear_profiling import erase_shape_information
from rushlight.jit.types.kinds import BOOL, TensorType
from rushlight.jit.types.relations import unshaped

FALLBACK = "prim::FallbackGraph"


def guard_node(node: Node, check_kind: str, checked: Sequence[int], types: Sequence[TensorType], passed_on: bool) -> Node:
    """Run a node only where a check holds for its inputs `checked`; returns the check. `passed_on`: it passes the inputs on,
    with the types that the node's graph expects."""
    graph = node.graph
    with graph.inserting(before=node), graph.source(node.source_range):
        check = graph.insert(check_kind, [node.input(index) for index in checked], 0).set("types", list(types))
        expected = node["Subgraph"].inputs
        typed = [check.add_output(expected[index].type) for index in checked] if passed_on else []
        choice = graph.insert("prim::If", [check.add_output(BOOL)], 0)
    taken, other = choice.add_block(), choice.add_block()
    _add_fallback(node, other)
    for value in node.outputs:
        value.replace_all_uses_with(choice.add_output(unshaped(value.type)))
    node.remove_from_list()
    node.insert_before(taken.result)
    for value in node.outputs:
        taken.add_output(value)
    for index, value in zip(checked, typed, strict=False):
        node.replace_input(index, value)
    return check


def _add_fallback(node: Node, block) -> None:
    body: Graph = node["Subgraph"].copy()
    erase_shape_information(body)
    fallback = block.append(node.graph.create(FALLBACK, node.inputs, 0)).set("Subgraph", body)
    fallback.source_range = node.source_range
    for value in node.outputs:
        block.add_output(fallback.add_output(unshaped(value.type)))
