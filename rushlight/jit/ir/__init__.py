"""The IR: `graph.py` is the data structure, `printer.py` and `parser.py` convert to and from text, `lint.py` checks
invariants."""

from rushlight.jit.ir.graph import Block, Graph, Node, Use, Value

__all__ = ["Block", "Graph", "Node", "Use", "Value"]
