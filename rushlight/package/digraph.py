"""DiGraph: the dependency graph of modules, with attributes.

In: nodes with attributes, and edges from a node to its dependencies. Out: neighbours, reachable nodes, paths.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any


class DiGraph:
    """A directed graph of names. `nodes` maps each to a dict of its attributes, in the order in which they were added."""

    def __init__(self) -> None:
        self.nodes: dict[str, dict[str, Any]] = {}
        self._successors: dict[str, dict[str, None]] = {}
        self._predecessors: dict[str, dict[str, None]] = {}

    def add_node(self, name: str, **attributes: Any) -> None:
        """Add a node, or add attributes to an existing one."""
        if name not in self.nodes:
            self.nodes[name], self._successors[name], self._predecessors[name] = {}, {}, {}
        self.nodes[name].update(attributes)

    def add_edge(self, source: str, target: str) -> None:
        """Add an edge, and missing nodes."""
        self.add_node(source)
        self.add_node(target)
        self._successors[source][target] = None
        self._predecessors[target][source] = None

    def __contains__(self, name: object) -> bool:
        return name in self.nodes

    def __iter__(self) -> Iterator[str]:
        return iter(self.nodes)

    @property
    def edges(self) -> Iterator[tuple[str, str]]:
        """Return all edges."""
        return ((source, target) for source, targets in self._successors.items() for target in targets)

    def successors(self, name: str) -> list[str]:
        """Return the dependencies of a node. ValueError for an unknown node."""
        return list(self._successors[self._check_node(name)])

    def predecessors(self, name: str) -> list[str]:
        """Return the dependents of a node. ValueError for an unknown node."""
        return list(self._predecessors[self._check_node(name)])

    def forward_transitive_closure(self, source: str) -> set[str]:
        """Return the node, and all its direct and indirect dependencies."""
        return self._closure(source, self.successors)

    def backward_transitive_closure(self, source: str) -> set[str]:
        """Return the node, and all its direct and indirect dependents."""
        return self._closure(source, self.predecessors)

    def all_paths(self, source: str, target: str) -> str:
        """Return the subgraph of all paths from one node to another, in the form of `to_dot`."""
        between = self.forward_transitive_closure(source) & self.backward_transitive_closure(target)
        part = DiGraph()
        for edge in self.edges:
            if between.issuperset(edge):
                part.add_edge(*edge)
        return part.to_dot()

    def first_path(self, target: str) -> list[str]:
        """Return a path to a node from one without dependents; in a cycle, from where the way back ends."""
        path, seen = [self._check_node(target)], {target}
        while before := [name for name in self._predecessors[path[0]] if name not in seen][:1]:
            path[:0] = before
            seen.add(before[0])
        return path

    def to_dot(self) -> str:
        """Return the graph in the language of Graphviz."""
        edges = "\n".join(f'"{source}" -> "{target}";' for source, target in self.edges)
        return f"digraph G {{\nrankdir = LR;\nnode [shape=box];\n{edges}\n}}\n"

    def _closure(self, source: str, neighbours: Callable[[str], list[str]]) -> set[str]:
        found, pending = {self._check_node(source)}, deque([source])
        while pending:
            for name in neighbours(pending.popleft()):
                if name not in found:
                    found.add(name)
                    pending.append(name)
        return found

    def _check_node(self, name: str) -> str:
        if name not in self.nodes:
            raise ValueError(f"The node {name} is not in the digraph.")
        return name
