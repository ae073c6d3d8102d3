"""The IR: `graph.py` data, `printer.py` to text, `parser.py` from text, `lint.py` its invariants."""

from rushlight.jit.ir.graph import Block, Graph, Node, Use, Value
from rushlight.jit.ir.lint import lint
from rushlight.jit.ir.printer import graph_text, node_text

__all__ = ["Block", "Graph", "Node", "Use", "Value", "graph_text", "lint", "node_text"]
