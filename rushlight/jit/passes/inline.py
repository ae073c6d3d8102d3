"""Inline: calls of functions and methods become their bodies.

Requires: SSA. Guarantees: no `prim::CallFunction` or `prim::CallMethod` whose callee is known is left; forked bodies are
inlined too.
"""

from __future__ import annotations

from rushlight.jit.function import Function
from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.types.kinds import ClassType

_LOG = PassLog(__file__)


@graph_pass("Inline", "_jit_pass_inline")
def inline(graph: Graph) -> None:
    """Inline every call in a graph."""
    _inline_block(graph.block)


def _inline_block(block: Block) -> None:
    for node in block.nodes:
        for inner in node.blocks:
            _inline_block(inner)
        inner_graph = node.attributes.get("Subgraph")
        if isinstance(inner_graph, Graph) and node.kind == "prim::fork":
            inline(inner_graph)
        function = callee_of(node)
        if function is not None and _LOG.permits("the call of '{}' is inlined", function.name):
            inline_call(node, function)


def callee_of(node: Node) -> Function | None:
    """The function that a node calls, if it is known and has a graph."""
    if node.kind == "prim::CallFunction":
        found = node.input().constant()
        return found if isinstance(found, Function) else None
    if node.kind == "prim::CallMethod" and isinstance(node.input().type, ClassType):
        return node.input().type.find_method(node["name"])
    return None


def inline_call(node: Node, function: Function) -> None:
    """Replace a call by the function's body, which is inlined itself."""
    body = function.graph.copy()
    inline(body)
    skipped = 1 if node.kind == "prim::CallFunction" else 0
    outputs = insert_graph(node, body, list(node.inputs[skipped:]))
    for old, new in zip(node.outputs, outputs, strict=True):
        if old.has_debug_name and not new.has_debug_name and new.node.kind not in ("prim::Param", "prim::Constant"):
            name, _ = old.debug_name, node.graph.names.release(old)
            new.debug_name = name
        old.replace_all_uses_with(new)
    node.destroy()


def insert_graph(before: Node, body: Graph, inputs: list[Value]) -> list[Value]:
    """Copy a graph's nodes in front of a node, with `inputs` for its inputs; its outputs there."""
    graph = before.graph
    copies = dict(zip(body.inputs, inputs, strict=True))
    for node in body.nodes:
        copy = graph.clone_node(node, copies.__getitem__).insert_before(before)
        copies.update(zip(node.outputs, copy.outputs, strict=True))
    return [copies[value] for value in body.outputs]
