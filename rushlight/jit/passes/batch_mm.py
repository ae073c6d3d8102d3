"""BatchMM: batch several matrix products into one.

Requires: SSA, and types with sizes, as profiling or shape analysis finds them. Guarantees: a sum of at least four products of
matrices of the same sizes is one `prim::MMTreeReduce`; at least four products of matrices of the same sizes that share a
factor on the same side are one `prim::MMBatchSide`, if none depends on another and nothing between them writes.
"""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.core.tensor import Tensor
from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.operators.lookup import writes
from rushlight.jit.operators.registry import declare_operator
from rushlight.jit.passes.dead_code_elimination import eliminate_dead_code
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.runtime.primitives import PRIMITIVES
from rushlight.jit.types.kinds import TensorType
from rushlight.ops.packet import find_packet

_LOG = PassLog(__file__)
_MIN_BATCH = 4
"""Fewer products are not worth the concatenation."""


@graph_pass("BatchMM", "_jit_pass_batch_mm")
def batch_mm(graph: Graph) -> None:
    """Batch products, unless the graph writes to tensors."""
    if any(writes(node) for node in graph.all_nodes()):
        return
    _reduce_trees(graph.block)
    _batch_sides(graph.block)
    eliminate_dead_code(graph)


# Batch sums of products


def _reduce_trees(block: Block) -> None:
    for node in list(block.nodes):
        for inner in node.blocks:
            _reduce_trees(inner)
        if node.block is not None and _is_sum(node) and not _is_part_of_sum(node):
            products = _products_of(node.output)
            is_worthwhile = products is not None and len(products) >= _MIN_BATCH
            if is_worthwhile and _LOG.permits("{} sums {} products", node, len(products)):
                _reduce(node, products)


def _is_sum(node: Node) -> bool:
    if node.kind != "aten::add" or node.input_count not in (2, 3) or (node.input_count == 3 and node.input(2).constant() != 1):
        return False
    return all(isinstance(value.type, TensorType) for value in node.inputs[:2])


def _is_part_of_sum(node: Node) -> bool:
    uses = node.output.uses
    return len(uses) == 1 and _is_sum(uses[0].user) and uses[0].offset < 2 and _products_of(uses[0].user.output) is not None


def _products_of(value: Value) -> list[Node] | None:
    """Return the products whose sum a value is, with equal sizes of factors; None if it is a sum of anything else."""
    found: list[Node] = []
    pending = [value]
    while pending:
        node = pending.pop().node
        if len(node.outputs) != 1 or (node is not value.node and len(node.output.uses) != 1):
            return None
        if _is_sum(node):
            pending += reversed(node.inputs[:2])
        elif node.kind == "aten::mm":
            found.append(node)
        else:
            return None
    first = [_sizes(each) for each in found[0].inputs]
    return found if None not in first and all([_sizes(each) for each in node.inputs] == first for node in found) else None


def _sizes(value: Value) -> tuple[int, ...] | None:
    kind = value.type
    known = isinstance(kind, TensorType) and kind.sizes is not None and None not in kind.sizes
    return kind.sizes if known else None


def _reduce(node: Node, products: list[Node]) -> None:
    factors = [each.input(0) for each in products] + [each.input(1) for each in products]
    made = node.graph.create("prim::MMTreeReduce", factors).insert_before(node)
    made.source_range = node.source_range
    node.output.replace_all_uses_with(made.output.copy_metadata(node.output))


# Batch products that share a factor


def _batch_sides(block: Block) -> None:
    for node in block.nodes:
        for inner in node.blocks:
            _batch_sides(inner)
    for side in (0, 1):
        groups: dict[tuple, list[Node]] = {}
        for node in block.nodes:
            other = _sizes(node.input(1 - side)) if node.kind == "aten::mm" else None
            if other is not None:
                groups.setdefault((node.input(side), other), []).append(node)
        for (shared, _), nodes in groups.items():
            independent = _select_independent(nodes)
            if len(independent) >= _MIN_BATCH and _LOG.permits("{} products share %{}", len(independent), shared.debug_name):
                _batch(shared, independent, side)


def _select_independent(nodes: list[Node]) -> list[Node]:
    """Return the nodes whose factors are available before the first node."""
    if not nodes:
        return []
    first = nodes[0]
    return [
        node
        for node in nodes
        if all(value.node.kind == "prim::Param" or value.node.is_before(first) for value in node.inputs)
    ]


def _batch(shared: Value, nodes: list[Node], side: int) -> None:
    others = [node.input(1 - side) for node in nodes]
    made = nodes[0].graph.create("prim::MMBatchSide", [shared, *others], 0).insert_before(nodes[0])
    made.set("side", side)
    made.source_range = nodes[0].source_range
    for node in nodes:
        node.output.replace_all_uses_with(made.add_output().copy_metadata(node.output))


# Functions behind the operators that this pass inserts


def _tree_reduce(*factors: Tensor) -> Tensor:
    """Return the sum of products, as one product of the concatenated factors."""
    half = len(factors) // 2
    cat = find_packet("aten::cat")
    return cat(list(factors[:half]), 1).mm(cat(list(factors[half:]), 0))


def _batch_side(node: Node):
    side, cat = node["side"], find_packet("aten::cat")

    def batched(shared: Tensor, *others: Tensor) -> Sequence[Tensor]:
        if side == 0:
            return shared.mm(cat(list(others), 1)).chunk(len(others), 1)
        return cat(list(others), 0).mm(shared).chunk(len(others), 0)

    return batched


declare_operator("prim::MMTreeReduce(...) -> Tensor", _tree_reduce)
PRIMITIVES["prim::MMBatchSide"] = _batch_side
