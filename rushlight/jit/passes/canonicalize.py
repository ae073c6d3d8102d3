"""Canonicalize: an equal graph whose values are numbered in order, so that graphs can be compared as text.

Requires: SSA. Guarantees: values are numbered from 0 in order of definition; names are dropped unless requested; the given
graph is unchanged.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Block, Graph, Value
from rushlight.jit.passes.registry import graph_pass


@graph_pass("Canonicalize", "_jit_pass_canonicalize")
def canonicalize(graph: Graph, keep_unique_names: bool = True) -> Graph:
    """Return a copy of the graph with renumbered values."""
    made = graph.copy()
    values = list(_values(made.block))
    if not keep_unique_names:
        for value in values:
            made.names.release(value)
    for number, value in enumerate(values):
        value.unique = number
    made.reserve_numbers()
    return made


def _values(block: Block) -> list[Value]:
    found = list(block.inputs)
    for node in block.nodes:
        found += node.outputs
        for inner in node.blocks:
            found += _values(inner)
    return found
