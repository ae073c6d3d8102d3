"""torch's Python binding of graphs, over the IR's own objects.

In: the IR's objects, whose parts are attributes. Out: handles, whose parts are methods with torch's names. Two handles of one
object are equal. A handle forwards other attributes to its object.
"""

from __future__ import annotations

from rushlight.jit.graph_api.graphs import Block, Graph
from rushlight.jit.graph_api.nodes import Node
from rushlight.jit.graph_api.values import Use, Value
from rushlight.jit.ir.handles import Handle, unwrapped, wrapped
from rushlight.jit.ir.parser import parse_ir as parse_raw_ir

__all__ = ["Block", "Graph", "Handle", "Node", "Use", "Value", "parse_ir", "unwrapped", "wrapped"]


def parse_ir(input: str) -> Graph:
    """Parse a graph in the notation of `str(graph)`. RuntimeError names the line and the expected token."""
    return Graph(parse_raw_ir(input))
