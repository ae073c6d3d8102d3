"""Graphs as torch's Python binding shows them, over the IR's own objects.

In: the IR's objects, whose parts are attributes. Out: handles, whose parts are methods with torch's names. Two handles of one
object are equal; what a handle does not have it asks of its object, so that code of either style reads the same graph.
"""

from rushlight.jit.graph_api.graphs import Block, Graph
from rushlight.jit.graph_api.handles import Handle, unwrapped, wrapped
from rushlight.jit.graph_api.nodes import Node
from rushlight.jit.graph_api.values import Use, Value

__all__ = ["Block", "Graph", "Handle", "Node", "Use", "Value", "unwrapped", "wrapped"]
