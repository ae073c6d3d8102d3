"""The IR: `graph.py` data, `printer.py` to text, `parser.py` from text, `lint.py` its invariants."""

from rushlight.jit.ir.graph import Block, Graph, Node, Use, Value

__all__ = ["Block", "Graph", "Node", "Use", "Value"]
