"""Group nodes into one node with a graph of its own, for autodiff and fusion.

In: a block, and which nodes may join. Out: nodes of a kind such as `prim::DifferentiableGraph`, whose attribute `Subgraph` is
the group. Grouped nodes need not be adjacent: no node between may both depend on the group and feed the new member. Users of
the group move behind it. Nothing moves across a node that writes or has another effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.operators.lookup import has_side_effects, writes


def group_nodes(block: Block, kind: str, may_join: Callable[[Node], bool], fewest: int) -> list[Node]:
    """Group the nodes of a block and of inner blocks; smaller groups are not created. Returns the new nodes."""
    made = []
    for nodes in _find_groups(block, may_join, lambda inner: made.extend(group_nodes(inner, kind, may_join, fewest))):
        if len(nodes) >= fewest:
            made.append(make_group(nodes, kind))
    return made


def _find_groups(block: Block, may_join: Callable[[Node], bool], inside: Callable[[Block], None]) -> list[list[Node]]:
    found: list[list[Node]] = []
    group: list[Node] = []
    readers: list[Node] = []
    for node in list(block.nodes):
        for inner in node.blocks:
            inside(inner)
        if node.kind == "prim::Constant":
            continue
        if may_join(node):
            if group and _depends_on(node, readers):
                found.append(group)
                group, readers = [], []
            after = node
            for each in readers:
                each.move_after(after)
                after = each
            group.append(node)
        elif _is_barrier(node):
            found.append(group)
            group, readers = [], []
        elif _depends_on(node, group) or _depends_on(node, readers):
            readers.append(node)
    found.append(group)
    return found


def _is_barrier(node: Node) -> bool:
    if has_side_effects(node) or writes(node):
        return True
    return any(_is_barrier(each) for block in node.blocks for each in block.nodes)


def _depends_on(node: Node, makers: Iterable[Node]) -> bool:
    makers = set(makers)
    return bool(makers) and any(value.node in makers for value in values_read(node))


def values_read(node: Node) -> list[Value]:
    """Return the values that a node, or one inside it, reads."""
    found = list(node.inputs)
    for block in node.blocks:
        for each in block.nodes:
            found += values_read(each)
        found += block.outputs
    return found


def make_group(nodes: list[Node], kind: str) -> Node:
    """Move nodes of one block, in order, into a new node at the last one's position."""
    graph, own = nodes[0].graph, set(nodes)
    body = Graph()
    made = graph.create(kind, (), 0).insert_before(nodes[-1])
    made.source_range = nodes[-1].source_range
    made.set("Subgraph", body)
    copies: dict[Value, Value] = {}

    def inside(value: Value) -> Value:
        if value not in copies:
            if value.is_constant:
                copies[value] = body.block.prepend(body.clone_node(value.node, inside)).output
            else:
                made.add_input(value)
                copies[value] = body.add_input(None, value.type).copy_metadata(value)
        return copies[value]

    for node in nodes:
        copy = body.block.append(body.clone_node(node, inside))
        copies.update(zip(node.outputs, copy.outputs, strict=True))
    for node in nodes:
        for value in node.outputs:
            if any(use.user not in own for use in value.uses):
                body.register_output(copies[value])
                value.replace_all_uses_with(made.add_output().copy_metadata(value))
    for node in reversed(nodes):
        node.destroy()
    return made


def inline_group(node: Node) -> None:
    """Replace a group by its nodes."""
    body: Graph = node["Subgraph"]
    copies = dict(zip(body.inputs, node.inputs, strict=True))
    for each in body.nodes:
        copy = node.graph.clone_node(each, copies.__getitem__).insert_before(node)
        copies.update(zip(each.outputs, copy.outputs, strict=True))
    for value, inner in zip(node.outputs, body.outputs, strict=True):
        value.replace_all_uses_with(copies[inner])
    node.destroy()
