"""ClearUndefinedness: drop from types whether a tensor is defined.

Requires: nothing. Guarantees: `undefined` is unknown in all types of the graph, so that no pass relies on specialisations for
other arguments.
"""

from __future__ import annotations

from dataclasses import replace

from rushlight.jit.ir.graph import Block, Graph, Value
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.types.kinds import TensorType, Type, UnionType


@graph_pass("ClearUndefinedness")
def clear_undefinedness(graph: Graph) -> None:
    """Drop definedness from all types."""
    _clear_block(graph.block)


def _clear_block(block: Block) -> None:
    for value in block.inputs:
        _clear(value)
    for node in block.nodes:
        for value in node.outputs:
            _clear(value)
        for inner in node.blocks:
            _clear_block(inner)


def _clear(value: Value) -> None:
    value.type = _clear_undefined(value.type)


def _clear_undefined(kind: Type) -> Type:
    if isinstance(kind, TensorType):
        return replace(kind, undefined=None) if kind.undefined is not None else kind
    parts = kind.contained()
    if not parts or isinstance(kind, UnionType):
        return kind
    changed = tuple(map(_clear_undefined, parts))
    return kind if changed == parts else kind.with_contained(changed)
