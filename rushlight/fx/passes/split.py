"""split_by_support: cut a graph into pieces that a backend can run, and leave the rest as it is.

In: a `GraphModule` and a predicate over nodes. Out: a `GraphModule` in which runs of supported nodes are submodules
`compiled_0`, `compiled_1`, ..., called in turn with the unsupported nodes between them.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.fx.passes import overlap
from rushlight.ops.dispatcher import OpOverload

Predicate = Callable[[Node], bool]


@dataclass(slots=True)
class Segment:
    """Nodes that run one after another and are all supported, or all not."""

    supported: bool
    nodes: list[Node] = field(default_factory=list)


def split_by_support(graph_module: GraphModule, is_supported: Predicate) -> GraphModule:
    """Move the supported `call_function` nodes into submodules, as few as the dependencies allow.

    Requires: a graph that passes `lint`. Guarantees: the same results and effects. Nodes that change a value keep
    their place relative to all others; independent ones may move past each other. A piece with one output returns it
    bare, one with several returns a tuple. `graph_module` is not changed; weights are shared.
    """
    graph = graph_module.graph
    graph.lint()
    segments = plan_segments(graph, is_supported)
    owned = (node.target for node in graph.nodes if node.op in ("get_attr", "call_module"))
    root: dict[str, Any] = {target: operator.attrgetter(target)(graph_module) for target in owned}
    outer = Graph()
    new_nodes: dict[Node, Node] = {}
    for segment in segments:
        if segment.supported:
            name = next(name for name in map("compiled_{}".format, itertools.count()) if name not in root)
            root[name] = _move_out(segment, outer, new_nodes, name)
        else:
            for node in segment.nodes:
                new_nodes[node] = outer.node_copy(node, new_nodes.__getitem__)
    split = GraphModule(root, outer, type(graph_module).__name__)
    split.training = graph_module.training
    split.meta = dict(graph_module.meta)
    return split


def plan_segments(graph: Graph, is_supported: Predicate) -> list[Segment]:
    """Return an order of the nodes, cut into the fewest supported segments.

    Taking all runnable nodes of one kind before turning to the other kind is optimal, up to the choice of the kind to
    begin with; both are tried. With collectives the order is that of `overlap`, whose segments may be more.
    """
    nodes = list(graph.nodes)
    supported = _supported_nodes(nodes, is_supported)
    waits_for = _dependencies(nodes)
    if any(map(overlap.is_wait, nodes)):
        return [Segment(kind, segment) for kind, segment in overlap.order(nodes, supported, waits_for)]
    plans = [_alternate(nodes, supported, waits_for, begin) for begin in (False, True)]
    return min(plans, key=lambda plan: sum(segment.supported for segment in plan))


def _supported_nodes(nodes: list[Node], is_supported: Predicate) -> set[Node]:
    """Return the supported calls; `getitem` of a call's tuple goes with that call, so that no piece takes a tuple."""
    supported: set[Node] = set()
    for node in nodes:
        if node.op != "call_function":
            continue
        if node.target is operator.getitem and _has_several_results(node.args[0]):
            if node.args[0] in supported:
                supported.add(node)
        elif is_supported(node):
            supported.add(node)
    return supported


def _has_several_results(node: Any) -> bool:
    if not isinstance(node, Node):
        return False
    if isinstance(node.meta.get("val"), (tuple, list)):
        return True
    return isinstance(node.target, OpOverload) and len(node.target._schema.returns) > 1


def _dependencies(nodes: list[Node]) -> dict[Node, list[Node]]:
    """Return the nodes that must run before each node: its inputs, and for effects also their neighbours in the original
    order."""
    waits_for: dict[Node, list[Node]] = {}
    since_barrier: list[Node] = []
    barrier: Node | None = None
    last_impure: Node | None = None
    for node in nodes:
        if node.op in ("placeholder", "get_attr"):
            waits_for[node] = []
            continue
        needed = node.all_input_nodes + ([barrier] if barrier is not None else [])
        if node.op == "output" or node.mutates_state():
            needed += since_barrier
            since_barrier, barrier = [], node
        elif node.is_impure():
            # Random numbers must be drawn in the original order.
            needed += [last_impure] if last_impure is not None else []
            last_impure = node
        waits_for[node] = needed
        since_barrier.append(node)
    return waits_for


def _alternate(
    nodes: list[Node], supported: set[Node], waits_for: dict[Node, list[Node]], begin: bool
) -> list[Segment]:
    """Take all runnable nodes of one kind, then of the other, until nothing is left."""
    done: set[Node] = set()
    # Placeholders and attributes need no inputs, belong to neither kind, and go in front.
    start = [node for node in nodes if node.op in ("placeholder", "get_attr")]
    done.update(start)
    segments = [Segment(False, start)]
    remaining = [node for node in nodes if node not in done]
    kind = begin
    while remaining:
        segment, later = Segment(kind), []
        for node in remaining:
            if (node in supported) == kind and not _waits(waits_for[node], done):
                segment.nodes.append(node)
                done.add(node)
            else:
                later.append(node)
        if segment.nodes:
            segments.append(segment)
        remaining, kind = later, not kind
    return segments


def _waits(needed: list[Node], done: set[Node]) -> bool:
    return any(node not in done for node in needed)


def _move_out(segment: Segment, outer: Graph, new_nodes: dict[Node, Node], name: str) -> GraphModule:
    """Make a GraphModule of the segment, add its call to `outer`, and record the new nodes of its results."""
    inside = set(segment.nodes)
    inputs = list(dict.fromkeys(used for node in segment.nodes for used in node.all_input_nodes if used not in inside))
    outputs = [node for node in segment.nodes if any(user not in inside for user in node.users)]
    inner = Graph()
    moved: dict[Node, Node] = {}
    for node in inputs:
        moved[node] = inner.placeholder(node.name)
        moved[node].meta = dict(node.meta)
    for node in segment.nodes:
        moved[node] = inner.node_copy(node, moved.__getitem__)
    results = tuple(moved[node] for node in outputs)
    inner.output(results[0] if len(results) == 1 else results)
    call = outer.call_module(name, tuple(new_nodes[node] for node in inputs))
    _connect(outer, call, outputs, new_nodes)
    return GraphModule({}, inner, name)


def _connect(outer: Graph, call: Node, outputs: list[Node], new_nodes: dict[Node, Node]) -> None:
    if len(outputs) == 1:
        call.meta = dict(outputs[0].meta)
        new_nodes[outputs[0]] = call
        return
    for index, node in enumerate(outputs):
        element = outer.create_node("call_function", operator.getitem, (call, index), name=node.name)
        element.meta = dict(node.meta)
        new_nodes[node] = element
