"""UnrollLoops: unroll short loops fully, and others by a factor of eight.

Requires: SSA. Guarantees: a loop over a range (its condition is always true) with a small body (at most 32 nodes) is repeated
in place if its known trip count times its size is at most 64, and else becomes a loop over groups of eight rounds followed by
one over the rest. Other loops stay. `UnrollConstantLoops` only does the former, of any size.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.passes.dead_code_elimination import eliminate_dead_code
from rushlight.jit.passes.helpers import constant_before, insert_before
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.types.kinds import INT

_LOG = PassLog(__file__)
_FACTOR = 8
_MAX_BODY = 32
_MAX_REPEATED = 64


@graph_pass("UnrollLoops", "_jit_pass_loop_unrolling")
def unroll_loops(graph: Graph) -> bool:
    """Unroll loops over ranges; returns whether there were any."""
    return _unroll_block(graph.block, constant_only=False) and _clean_up(graph)


@graph_pass("UnrollConstantLoops", "_jit_pass_constant_loop_unrolling")
def unroll_constant_loops(graph: Graph) -> bool:
    """Unroll loops with known trip counts fully; returns whether there were any."""
    return _unroll_block(graph.block, constant_only=True) and _clean_up(graph)


def _clean_up(graph: Graph) -> bool:
    eliminate_dead_code(graph)
    return True


def is_for_loop(node: Node) -> bool:
    """Return whether a loop runs its full trip count: its condition is the constant true."""
    return node.kind == "prim::Loop" and node.input(1).constant() is True and node.blocks[0].outputs[0].constant() is True


def _unroll_block(block: Block, constant_only: bool) -> bool:
    changed = False
    for node in list(block.nodes):
        for inner in node.blocks:
            changed |= _unroll_block(inner, constant_only)
        if is_for_loop(node):
            changed |= _unroll(node, constant_only)
    return changed


def _body_size(block: Block) -> int:
    return sum(1 for node in block.all_nodes() if node.kind != "prim::Constant")


def _unroll(node: Node, constant_only: bool) -> bool:
    trips, size = node.input().constant(), _body_size(node.blocks[0])
    if type(trips) is int and (constant_only or trips * size <= _MAX_REPEATED):
        if not _LOG.permits("{} is repeated {} times", node, trips):
            return False
        repeat_in_place(node, trips)
        return True
    if constant_only or size > _MAX_BODY or not _LOG.permits("{} does {} rounds at a time", node, _FACTOR):
        return False
    _unroll_by_factor(node)
    return True


def _copy_body(body: Block, before: Node, values: list[Value]) -> list[Value]:
    """Insert copies of a body's nodes before a node; returns the body's outputs for these inputs."""
    copies = dict(zip(body.inputs, values, strict=True))
    for each in body.nodes:
        copy = before.graph.clone_node(each, lambda value: copies.get(value, value)).insert_before(before)
        copies.update(zip(each.outputs, copy.outputs, strict=True))
    return [copies.get(value, value) for value in body.outputs]


def repeat_in_place(node: Node, trips: int) -> None:
    """Replace a loop by its body, once per round."""
    carried = list(node.inputs[2:])
    for index in range(trips):
        carried = _copy_body(node.blocks[0], node, [constant_before(node, index), *carried])[1:]
    for value, last in zip(node.outputs, carried, strict=True):
        value.replace_all_uses_with(last)
    node.destroy()


def _unroll_by_factor(node: Node) -> None:
    """Insert a loop over groups of eight rounds before the loop; the loop itself runs the remaining rounds."""
    count_rounds(node)
    trips = node.input()
    factor = constant_before(node, _FACTOR)
    groups = insert_before(node, "aten::__round_to_zero_floordiv", [trips, factor], INT)
    done = insert_before(node, "aten::mul", [groups, factor], INT)
    left = insert_before(node, "aten::sub", [trips, done], INT)
    unrolled = node.graph.clone_node(node, lambda value: value).insert_before(node)
    unrolled.replace_input(0, groups)
    _repeat_body(unrolled.blocks[0])
    node.replace_input(0, left)
    for index, value in enumerate(unrolled.outputs):
        node.replace_input(index + 2, value)


def _repeat_body(block: Block) -> None:
    """Repeat a body's nodes eight times."""
    copied = Block(block.graph, block.owner)
    copied.clone_from(block, lambda value: value)
    carried = list(block.outputs[1:])
    for _ in range(_FACTOR - 1):
        carried = _copy_body(copied, block.result, [block.inputs[0], *carried])[1:]
    for index, value in enumerate(carried):
        block.replace_output(index + 1, value)
    copied.destroy()


def count_rounds(node: Node) -> None:
    """Count a body's rounds in a carried int, if it reads the round's number."""
    body = node.blocks[0]
    if not body.inputs[0].uses:
        return
    node.insert_input(2, constant_before(node, 0))
    counted = body.insert_input(1, None, INT)
    body.inputs[0].replace_all_uses_with(counted)
    node.insert_output(0, INT)
    one = constant_before(body.result, 1)
    body.insert_output(1, insert_before(body.result, "aten::add", [counted, one], INT))
