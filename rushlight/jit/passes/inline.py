"""Inline: replace calls of functions and methods by their bodies.

Requires: SSA. Guarantees: of `prim::CallFunction` and `prim::CallMethod` whose callee is known, only recursive calls are left,
and those beyond a depth and a size that no reasonable program reaches; forked bodies are inlined too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rushlight.jit.function import Function
from rushlight.jit.ir.block import Copies
from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.source import SourceRange
from rushlight.jit.types.kinds import ClassType

_LOG = PassLog(__file__)


_MAX_CALL_DEPTH = 64  # calls nested more deeply than this are not inlined
_MAX_NODES = 200_000  # a graph that has grown to this size inlines no further calls


@graph_pass("Inline", "_jit_pass_inline")
def inline(graph: Graph) -> None:
    """Inline every call in a graph."""
    _Inliner().block(graph.block)


class _Inliner:
    """Inlines calls; `inside` holds the functions that are being inlined, which must not be inlined into themselves."""

    def __init__(self) -> None:
        self.inside: list[Function] = []
        self.room = _MAX_NODES

    def block(self, block: Block) -> None:
        """Inline the calls of a block and of the blocks inside."""
        self._inline_in(block.nodes)

    def _inline_in(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            for inner in node.blocks:
                self.block(inner)
            inner_graph = node.attributes.get("Subgraph")
            if isinstance(inner_graph, Graph) and node.kind == "prim::fork":
                self.block(inner_graph.block)
            function = callee_of(node)
            if function is not None and self._may_inline(function):
                if _LOG.permits("the call of '{}' is inlined", function.name):
                    self._inline_call(node, function)

    def _may_inline(self, function: Function) -> bool:
        return self.room > 0 and len(self.inside) < _MAX_CALL_DEPTH and all(each is not function for each in self.inside)

    def _inline_call(self, node: Node, function: Function) -> None:
        body = function.graph if function.graph is not node.graph else function.graph.copy()
        self.room -= sum(1 for _ in body.all_nodes())
        before = node.previous
        after = node.next
        call = node.source_range
        replace_call(node, body)
        for copied in _nodes_between(before, after):
            _mark_inlined(copied, function.short_name, call)
        self.inside.append(function)
        self._inline_in(_nodes_between(before, after))
        self.inside.pop()


def _mark_inlined(node: Node, function: str, call: SourceRange) -> None:
    """Have the ranges of a copied node and of the nodes inside say for which call it was inlined."""
    node.source_range = node.source_range.inlined(function, call)
    for block in node.blocks:
        for inner in block.nodes:
            _mark_inlined(inner, function, call)


def _nodes_between(before: Node, after: Node) -> Iterator[Node]:
    """Yield the nodes between two of a block. If the current one is replaced, its replacements are skipped."""
    node = before.next
    while node is not after:
        following = node.next
        yield node
        node = following


def callee_of(node: Node) -> Function | None:
    """Return the function that a node calls, if it is known and has a graph."""
    if node.kind == "prim::CallFunction":
        found = node.input().constant()
        return found if isinstance(found, Function) else None
    if node.kind == "prim::CallMethod" and isinstance(node.input().type, ClassType):
        return node.input().type.find_method(node["name"])
    return None


def replace_call(node: Node, body: Graph) -> None:
    """Replace a call by the callee's body."""
    skipped = 1 if node.kind == "prim::CallFunction" else 0
    outputs = insert_graph(node, body, list(node.inputs[skipped:]))
    for old, new in zip(node.outputs, outputs, strict=True):
        if old.has_debug_name and not new.has_debug_name and new.node.kind not in ("prim::Param", "prim::Constant"):
            name, _ = old.debug_name, node.graph.names.release(old)
            new.debug_name = name
        old.replace_all_uses_with(new)
    node.destroy()


def insert_graph(before: Node, body: Graph, inputs: list[Value]) -> list[Value]:
    """Insert copies of a graph's nodes before a node, with `inputs` for its inputs; returns the copied outputs."""
    graph = before.graph
    copies = Copies(zip(body.inputs, inputs, strict=True))
    for node in body.nodes:
        copy = graph.clone_node(node, copies).insert_before(before)
        copies.update(zip(node.outputs, copy.outputs, strict=True))
    return [copies[value] for value in body.outputs]
