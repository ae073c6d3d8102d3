"""Passes on graphs in text: runs one, and compares with a given text or with the result of torch's pass of that name.

Graphs are compared up to the numbers of values and the places of constants, which are written where they are used.
"""

from __future__ import annotations

import re
from textwrap import dedent

from rushlight.jit.ir import Graph
from rushlight.jit.ir.graph import Block, Node, Value
from rushlight.jit.ir.lint import lint
from rushlight.jit.ir.parser import parse_ir
from rushlight.jit.ir.printer import constant_text
from rushlight.jit.passes.run import run_pass


def after(name: str, text: str, *args: object, **kwargs: object) -> Graph:
    """The graph of a text after a pass, linted."""
    graph = parse_ir(dedent(text))
    lint(graph)
    run_pass(name, graph, *args, **kwargs)
    lint(graph)
    assert canonical(parse_ir(str(graph))) == canonical(graph)
    return graph


def check(name: str, before: str, wanted: str, *args: object, **kwargs: object) -> None:
    """Asserts that a pass turns one text into another."""
    assert canonical(after(name, before, *args, **kwargs)) == canonical(parse_ir(dedent(wanted)))


CLEANING = ("ConstantPropagation", "EliminateCommonSubexpression", "EliminateDeadCode")


def like_torch(name: str, text: str, *args: object, types: bool = True, cleaned: bool = False) -> tuple[str, str]:
    """The results of a pass and of torch's pass of the same name. `cleaned`: runs the same cleaning passes on both, if one pass
    does more of their work."""
    import torch

    theirs = torch._C.parse_ir(dedent(text))
    getattr(torch._C, name)(theirs, *args)
    graphs = after(name, text, *args), parse_ir(str(theirs))
    for graph in graphs:
        for each in CLEANING if cleaned else ():
            run_pass(each, graph)
    return canonical(graphs[0], types), canonical(graphs[1], types)


def canonical(graph: Graph, types: bool = True) -> str:
    """A graph with values numbered in order, constants in the place of their uses, and no places in the source."""
    return _Canonical(types).graph(graph)


class _Canonical:
    def __init__(self, types: bool):
        self.types = types
        self.names: dict[Value, str] = {}

    def graph(self, graph: Graph) -> str:
        lines = [f"graph({self._made(graph.inputs)}):", *self._block(graph.block, 1), f"  return ({self._read(graph.outputs)})"]
        return "\n".join(lines)

    def _made(self, values) -> str:
        for value in values:
            self.names[value] = f"%{len(self.names)}"
        return ", ".join(f"{self.names[value]} : {value.type.ir_text}" if self.types else self.names[value] for value in values)

    def _read(self, values) -> str:
        return ", ".join(self._constant(value) if value.is_constant else self.names[value] for value in values)

    def _constant(self, value: Value) -> str:
        if "value" not in value.node.attributes:
            return "None"
        kind = re.sub(r"\(.*", "", value.type.ir_text)
        return f"<{kind} {constant_text(value.node['value'])}>"

    def _block(self, block: Block, level: int) -> list[str]:
        return [line for node in block.nodes if node.kind != "prim::Constant" for line in self._node(node, level)]

    def _node(self, node: Node, level: int) -> list[str]:
        attributes = sorted((name, value) for name, value in node.attributes.items() if not isinstance(value, Graph))
        shown = ", ".join(f"{name}={constant_text(value)}" for name, value in attributes)
        read = self._read(node.inputs)
        blocks = []
        for inner in node.blocks:
            blocks.append(f"{'  ' * (level + 1)}block({self._made(inner.inputs)}):")
            blocks += self._block(inner, level + 2)
            blocks.append(f"{'  ' * (level + 2)}-> ({self._read(inner.outputs)})")
        line = f"{'  ' * level}{self._made(node.outputs)} = {node.kind}[{shown}]({read})"
        held = node.attributes.get("Subgraph")
        inner = [f"{'  ' * level}with {line}" for line in canonical(held, self.types).split("\n")] if held is not None else []
        return [line, *blocks, *inner]
