"""Names for inputs of exported graphs: the names of the user's parameters, even if Python has a builtin of that name."""

from __future__ import annotations

import re

from rushlight.fx.graph import Graph
from rushlight.fx.node import Node

# Builtins that generated code never calls, so that inputs may have their names.
_FREE = frozenset(("filter", "format", "hash", "id", "input", "map", "max", "min", "next", "sum", "vars"))


def identifier(name: str) -> str:
    """Return `encoder.weight` -> `encoder_weight`."""
    return re.sub(r"\W", "_", name)


def add_placeholder(graph: Graph, name: str) -> Node:
    """Add a placeholder with this name, made unique."""
    node = graph.placeholder(name)
    if node.name != name and name in _FREE and all(other.name != name for other in graph.nodes):
        graph._namespace.reserve(name)
        node.name = name
    return node
