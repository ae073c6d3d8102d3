"""Extracts parts of a jit graph as graphs.

In: consecutive nodes of a block, or a block. Out: a graph whose inputs are the outside values that the part reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rushlight.jit.ir.block import Copies
from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.passes.grouping import values_read
from rushlight.jit.types.kinds import ListType


@dataclass(frozen=True)
class Extract:
    """A graph that was copied out of another. `inputs` and `outputs` are the original values of its inputs and outputs,
    `originals` maps its nodes to the original ones."""

    graph: Graph
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    originals: dict[Node, Node]


def enclosing(node: Node, block: Block) -> Node:
    """Return the node of a block that is, or contains, a node."""
    while node.block is not block and node.block is not None and node.block.owner is not None:
        node = node.block.owner
    return node


def append_only(graph: Graph) -> frozenset[int]:
    """Return the positions of list inputs that a graph only appends to."""
    return frozenset(
        place for place, value in enumerate(graph.inputs)
        if isinstance(value.type, ListType) and value.uses and all(_is_append(*use, value) for use in value.uses)
    )  # fmt: skip


def _is_append(user: Node, offset: int, value: Value) -> bool:
    """Return whether a use of a list appends to it or returns it."""
    if user is value.node.block.result:  # the list is returned
        return True
    return user.kind == "aten::append" and offset == 0 and not any(output.uses for output in user.outputs)


def part_of_nodes(nodes: Sequence[Node], block: Block) -> Extract:
    """Extract nodes of a block as a graph. Its outputs are the values used outside."""
    own = set(nodes)
    inputs = _read_from_outside([value for node in nodes for value in values_read(node)], own, block)
    outputs = tuple(
        value for node in nodes for value in node.outputs if any(enclosing(use.user, block) not in own for use in value.uses)
    )
    return _extract_part(nodes, inputs, outputs)


def part_of_block(block: Block) -> Extract:
    """Extract a block inside a node as a graph: its own inputs come first, then the outside values it reads."""
    nodes = list(block.nodes)
    read = [value for node in nodes for value in values_read(node)] + list(block.outputs)
    outside = _read_from_outside(read, {*nodes, block.param}, block)
    return _extract_part(nodes, (*block.inputs, *outside), tuple(block.outputs))


def _read_from_outside(values: Iterable[Value], own: set[Node], block: Block) -> tuple[Value, ...]:
    found = dict.fromkeys(value for value in values if not value.is_constant and enclosing(value.node, block) not in own)
    return tuple(found)


def _extract_part(nodes: Sequence[Node], inputs: tuple[Value, ...], outputs: tuple[Value, ...]) -> Extract:
    """Copy nodes to a new graph with these inputs and outputs."""
    graph, originals = Graph(), {}

    def constant(value: Value) -> Value:
        copies[value] = graph.block.prepend(graph.clone_node(value.node, copies)).output
        return copies[value]

    copies = Copies(outside=constant)
    for value in inputs:
        copies[value] = graph.add_input(kind=value.type).copy_metadata(value)
    for node in nodes:
        if node.kind == "prim::Constant":
            continue
        copy = graph.block.append(graph.clone_node(node, copies))
        originals[copy] = node
        copies.update(zip(node.outputs, copy.outputs, strict=True))
    for value in outputs:
        graph.register_output(copies[value])
    return Extract(graph, inputs, outputs, originals)
