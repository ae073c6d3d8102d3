"""What each tangent of a backward graph takes part in, so that results of one program can be differentiated one by one.

In: a partition. Out: for each gradient, the tangents that it depends on; for each tangent, the saved values that its gradients
are calculated from, and the tangents that go through an operation with it that reads one: in eager, those share a node whose
saved values the first backward frees. Stage: aot, after the partition.
"""

from __future__ import annotations

from dataclasses import dataclass

from rushlight.aot.memory import is_size
from rushlight.aot.partition import Partition
from rushlight.fx.node import Node

Numbers = frozenset[int]


@dataclass(frozen=True)
class Tangents:
    """`reached` has an entry for each gradient, `read` and `met` have one for each tangent, which meets itself."""

    reached: list[Numbers]
    read: list[Numbers]
    met: list[Numbers]


def follow_tangents(partition: Partition) -> Tangents:
    """Which gradients, saved values and other tangents the tangents of a backward graph meet."""
    graph, count = partition.backward.graph, len(partition.saved)
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    reached = _origins(graph.nodes, placeholders[count:])
    kept = [None if is_size(node) else node for node in placeholders[:count]]
    sources = _origins([node for node in graph.nodes if node not in reached], kept)
    read = [set() for _ in placeholders[count:]]
    met = [{number} for number in range(len(read))]
    for node, numbers in reached.items():
        values = frozenset().union(*(sources.get(used, ()) for used in node.all_input_nodes)) if node.op != "output" else ()
        for number in numbers if values else ():
            read[number] |= values
            met[number] |= numbers
    gradients = [reached.get(node, frozenset()) for node in graph.output_node().args[0]]
    return Tangents(gradients, [frozenset(each) for each in read], [frozenset(each) for each in met])


def _origins(nodes: list[Node], starts: list[Node | None]) -> dict[Node, Numbers]:
    """For the nodes that depend on any of `starts`, the numbers of those."""
    origins = {node: frozenset([number]) for number, node in enumerate(starts) if node is not None}
    for node in nodes:
        if node.op == "call_function":
            found = frozenset().union(*(origins.get(used, ()) for used in node.all_input_nodes))
            if found:
                origins[node] = found
    return origins
