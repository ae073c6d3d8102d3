"""CanonicalizeOutputs: order the results of ifs and loops by use.

Requires: SSA. Guarantees: the results of every `prim::If` and `prim::Loop`, and with them what the loop carries, are ordered by
their first uses; those without uses come last, in the order that they had.
"""

from __future__ import annotations

from collections.abc import Iterator

from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.ir.node import Use
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass

_LOG = PassLog(__file__)


@graph_pass("CanonicalizeOutputs", "_jit_pass_canonicalize_graph_outputs")
def canonicalize_outputs(graph: Graph) -> None:
    """Order results by their uses."""
    _canonicalize_block(graph.block)


def _canonicalize_block(block: Block) -> None:
    """Process the last node first: an order depends on later uses, including inner blocks' outputs."""
    for node in block.reversed_nodes:
        if node.kind in ("prim::If", "prim::Loop"):
            order = _order(node)
            if order != sorted(order) and _LOG.permits("the results of {} are put in the order {}", node, order):
                _reorder(node, order)
        for inner in node.blocks:
            _canonicalize_block(inner)


def _order(node: Node) -> list[int]:
    first = [_first_use(value) for value in node.outputs]
    used = [index for index, use in enumerate(first) if use is not None]
    ordered: list[int] = []
    for index in used:  # insertion sort: results are few, and two uses can only be compared with each other
        place = next((at for at, other in enumerate(ordered) if _is_before(first[index], first[other])), len(ordered))
        ordered.insert(place, index)
    return ordered + [index for index, use in enumerate(first) if use is None]


def _first_use(value: Value) -> Use | None:
    found: Use | None = None
    for use in value.uses:
        if found is None or _is_before(use, found):
            found = use
    return found


def _is_before(first: Use, second: Use) -> bool:
    """Return whether one use comes before another; within one node, its own inputs come before its blocks, in their order."""
    if first.user is second.user:
        return first.offset < second.offset
    around = {block: node for node, block in _enclosing(first.user)}
    for node, block in _enclosing(second.user):
        mine = around.get(block)
        if mine is None:
            continue
        if mine is not node:
            return mine.position < node.position
        if node in (first.user, second.user):
            return node is first.user
        return next(inner for inner in node.blocks if inner in around or _holds(inner, second.user)) in around
    raise ValueError("the nodes are of different graphs")


def _holds(block: Block, node: Node) -> bool:
    return any(block is each for _, each in _enclosing(node))


def _enclosing(node: Node) -> Iterator[tuple[Node, Block]]:
    """Yield a node and its enclosing nodes, innermost first, with the blocks that contain them."""
    each: Node | None = node
    while each is not None:
        yield each, each.block
        each = each.block.owner


def _reorder(node: Node, order: list[int]) -> None:
    """Reorder results."""
    node.reorder_outputs(order)
    carried_from = 1 if node.kind == "prim::Loop" else 0
    for block in node.blocks:
        given = block.outputs
        for place, index in enumerate(order):
            block.replace_output(carried_from + place, given[carried_from + index])
    if node.kind == "prim::Loop":
        taken = node.inputs
        for place, index in enumerate(order):
            node.replace_input(2 + place, taken[2 + index])
        node.blocks[0].param.reorder_outputs([0, *(index + 1 for index in order)])
