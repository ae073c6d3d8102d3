"""Subgraphs of functions that a program passes to others: built while the whole graph is built, and reading its nodes.

In: nodes of the whole graph, wherever the function reads outside values. Out: a graph over the function's own inputs and those
values.
"""

from __future__ import annotations

from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.graph_builder import GraphBuilder
from rushlight.fx.graph import Graph
from rushlight.fx.node import Node, map_arg

_VALUES = ("example_value", "val")
_ZEROS = frozenset({"zeros", "zeros_like", "new_zeros"})
_READS_ONLY_SIZE = _ZEROS | {"ones_like", "full_like", "rand_like", "randn_like", "randint_like", "empty_like",
                         "new_ones", "new_full", "new_empty", "new_tensor"}  # fmt: skip


class GraphApart(Graph):
    """A subgraph whose nodes may take nodes of another graph as arguments: these become placeholders behind the graph's own
    inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.outer: dict[Node, Node] = {}
        self._last: Node | None = None
        self._parameters = 0
        self._inputs: set[Node] = set()

    def input(self, name: str, fake: Tensor) -> Node:
        """Add a placeholder for an input of the function."""
        made = self._add_parameter(name, {"example_value": fake, "val": fake})
        self._inputs.add(made)
        return made

    def create_node(self, op: str, target: Any, args: tuple | None = None, kwargs: dict | None = None, **options: Any) -> Node:
        """Create a node as usual; arguments may belong to another graph."""
        args, kwargs = map_arg(args or (), self._own_node), map_arg(kwargs or {}, self._own_node)
        return super().create_node(op, target, args, kwargs, **options)

    def _own_node(self, node: Node) -> Node:
        """Return the node of this graph for an argument. A node of another graph becomes a parameter."""
        if node.graph is self:
            return node
        if node not in self.outer:
            self.outer[node] = self._add_parameter(node.name, {name: node.meta[name] for name in _VALUES if name in node.meta})
        return self.outer[node]

    def _add_parameter(self, name: str, meta: dict[str, Any]) -> Node:
        """Add a placeholder for a value of another graph."""
        with self.inserting_before(None if self._last is None else self._last.next):
            self._last = self.placeholder(f"{name}_{self._parameters}")
        self._parameters += 1
        self._last.meta.update(meta)
        return self._last

    def finish(self, results: tuple[Node | None, ...]) -> list[Node]:
        """Set the results, and return the outer nodes that the graph reads."""
        self.output(results)
        self.eliminate_dead_code()
        for placeholder in self.outer.values():
            if not placeholder.users:
                self.erase_node(placeholder)
        self.lint()
        outer, self.outer = self.outer, {}
        return [node for node, placeholder in outer.items() if placeholder.users]

    def is_constant(self) -> bool:
        """Return whether any nonzero result depends on no input of the function, or only on an input's size."""
        found = set(self._inputs)
        for node in self.nodes:
            if _name(node) not in _READS_ONLY_SIZE and any(used in found for used in node.all_input_nodes):
                found.update((node, *(node.all_input_nodes if node.mutates_state() else ())))
        results = [node for node in self.output_node().args[0] if node is not None]
        return any(node not in found and _name(node) not in _ZEROS for node in results)


def _name(node: Node) -> str:
    return node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")


def versions_of(builder: GraphBuilder) -> dict[Node, int]:
    """Return the version counter of each tensor in the whole graph."""
    values = ((node, node.meta.get("example_value")) for node in builder.whole.nodes)
    return {node: value._impl.version.value for node, value in values if isinstance(value, Tensor)}


def check_writes(nodes: list[Node], versions: dict[Node, int]) -> None:
    """Break the graph if a node's tensor was written to since `versions` was taken."""
    for node in nodes:
        value = node.meta["example_value"]
        if isinstance(value, Tensor) and value._impl.version.value != versions.get(node, 0):
            raise GraphBreak("it writes to a tensor that it did not make")
