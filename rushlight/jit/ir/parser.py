"""Graphs from text: the inverse of the printer.

In: a graph as `str(graph)` gives it, with or without `# file:line:column`. Out: a Graph that prints as that text. Stage: jit;
tests of passes and the patterns of rewrites are written in it.

Text is incomplete, so there are stand-ins: an empty class or function for an unknown name, and zeros of its value's type for a
tensor shown as `<Tensor>`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable

from rushlight.jit.function import Function
from rushlight.jit.ir.attributes import AttributeParser, unquoted
from rushlight.jit.ir.block import Block
from rushlight.jit.ir.graph import Graph
from rushlight.jit.ir.node import Node, Value
from rushlight.jit.source import Source, SourceRange
from rushlight.jit.types.kinds import ANY, NONE, TENSOR, ClassType, EnumType, FunctionType, InterfaceType, Type
from rushlight.jit.types.parser import Tokens

_PLACE = re.compile(
    r"\)(?P<all>(?:, scope: (?P<scope>\S[^#\n]*?))?[ \t]*(?:# (?P<file>[^\n]*?):(?P<line>\d+):(?P<column>\d+))?)[ \t]*$",
    re.MULTILINE,
)
_NUMBERED = re.compile(r"(\w+::\w*?[A-Za-z])_(\d+)")
_TYPE_ATTRIBUTES = frozenset(("profiled_type", "types", "type"))

Resolve = Callable[[str], Type | None]
FindFunction = Callable[[str], Function | None]


def parse_ir(text: str, resolve: Resolve | None = None, find_function: FindFunction | None = None) -> Graph:
    """Parse a graph. `resolve` finds classes by their qualified names, `find_function` finds functions. RuntimeError names the
    line, and the expected token."""
    return _Parser(text, resolve, find_function).whole()


def parse_ir_with_values(text: str) -> tuple[Graph, dict[str, Value]]:
    """Parse a graph; also returns its values by their names in the text."""
    parser = _Parser(text, None, None)
    return parser.whole(), parser.all_values


class _Parser:
    def __init__(self, text: str, resolve: Resolve | None, find_function: FindFunction | None):
        self.places: dict[int, re.Match] = {}
        self.tokens = Tokens(self._without_places(text))
        self.attributes = AttributeParser(self.tokens, self._resolve)
        self.known_class = resolve
        self.find_function = find_function
        self.classes: dict[str, Type] = {}
        self.values: dict[str, Value] = {}
        self.all_values: dict[str, Value] = {}
        self.pending: dict[str, Node] = {}

    def _without_places(self, text: str) -> str:
        """Return the text with the scope and source of each node blanked out; they are stored by line."""
        self.line_starts = [0, *(found.end() for found in re.finditer("\n", text))]

        def blanked(found: re.Match) -> str:
            if found["scope"] or found["file"]:
                self.places[self._line(found.start())] = found
            return ")" + " " * len(found["all"])

        return _PLACE.sub(blanked, text)

    def _line(self, position: int) -> int:
        return bisect_right(self.line_starts, position)

    # Parse graphs and blocks

    def whole(self) -> Graph:
        """Parse the graph, with the graphs that its nodes hold."""
        graph = self._parse_graph()
        while self.tokens.take("with"):
            self._parse_subgraph()
        if self.tokens.token:
            raise self.tokens.error("expected the end of the graph")
        if self.pending:
            raise self.tokens.error(f"expected 'with {next(iter(self.pending))} = graph(...)'")
        return graph

    def _parse_subgraph(self) -> None:
        """Parse `with prim::FusionGroup_0 = graph(...)` and attach the graph to the node that refers to it. Graphs nested in it
        follow directly, and number their values separately."""
        name = self.tokens.expect_kind("name")
        self.tokens.expect("=")
        node = self.pending.pop(name, None)
        if node is None:
            raise self.tokens.error(f"no node refers to the graph {name!r}")
        outer, self.pending = self.pending, {}
        node.set("Subgraph", self._parse_graph())
        while self.pending and self.tokens.take("with"):
            self._parse_subgraph()
        self.pending = outer

    def _parse_graph(self) -> Graph:
        self.made = Graph()
        self.values = {}
        self.tokens.expect("graph")
        self._parse_inputs(self.made.block)
        self.tokens.expect(":")
        self._parse_nodes(self.made.block, "return")
        self.made.reserve_numbers()
        return self.made

    def _parse_nodes(self, block: Block, end: str) -> None:
        while not self.tokens.take(end):
            if not self.tokens.token:
                raise self.tokens.error(f"expected {end!r}")
            self._parse_node(block)
        for value in self._parse_arguments():
            block.add_output(value)
        self.all_values.update(self.values)

    def _parse_inputs(self, block: Block) -> None:
        self.tokens.expect("(")
        while not self.tokens.take(")"):
            name, kind = self._parse_typed_value()
            self._parse_name(block.add_input(kind=kind), name)
            if not self.tokens.take(","):
                self.tokens.expect(")")
                break

    def _parse_typed_value(self) -> tuple[str, Type]:
        name = self.tokens.expect_kind("value")[1:]
        return name, self.attributes.type() if self.tokens.take(":") else TENSOR

    def _resolve(self, name: str) -> Type | None:
        if name == "Function":
            return FunctionType(None)
        if name.startswith("InterfaceType<"):
            return self.classes.setdefault(name, InterfaceType(name[14:-1]))
        is_enum = name.startswith("Enum<")
        plain = name[5:-1] if is_enum else name
        found = self.known_class(plain) if self.known_class is not None else None
        if found is None and "." in plain:
            found = self.classes.setdefault(name, EnumType(plain, ANY) if is_enum else ClassType(plain))
        return found

    def _parse_name(self, value: Value, name: str) -> None:
        if name.isdecimal():
            value.unique = int(name)
        else:
            value.debug_name = name
        self.values[name] = value

    def _parse_arguments(self) -> list[Value]:
        self.tokens.expect("(")
        found = []
        while not self.tokens.take(")"):
            if self.tokens.kind != "value":
                raise self.tokens.error("expected a value")
            value = self.values.get(self.tokens.token[1:])
            if value is None:
                raise self.tokens.error("no value of this name is made before")
            self.tokens.advance()
            found.append(value)
            self.tokens.take(",")
        return found

    # Parse nodes

    def _parse_node(self, block: Block) -> None:
        line = self._line(self.tokens._next - len(self.tokens.token))
        results = []
        while self.tokens.kind == "value":
            results.append(self._parse_typed_value())
            self.tokens.take(",")
        if results or self.tokens.token == "=":  # nodes without results are printed without "="
            self.tokens.expect("=")
        node = self._new_node()
        if self.tokens.token == "[":
            self._parse_attributes(node, results[0][1] if results else NONE)
        for value in self._parse_arguments():
            node.add_input(value)
        block.append(node)
        self._set_place(node, line)
        while self.tokens.kind == "name" and self.tokens.token.startswith("block"):
            self._parse_inner_block(node)
        for name, kind in results:
            self._parse_name(node.add_output(kind), name)

    def _new_node(self) -> Node:
        """Create a node of the following kind; `^name()` is a Python function."""
        if self.tokens.take("^"):
            node = Node(self.made, "prim::PythonOp", (), 0).set("name", self.tokens.expect_kind("name"))
            if self.tokens.take("["):
                self.tokens.expect("]")
            self.tokens.expect("(")
            self.tokens.expect(")")
            return node
        node = Node(self.made, self.tokens.expect_kind("name"), (), 0)
        self._note_held_graph(node)
        return node

    def _set_place(self, node: Node, line: int) -> None:
        place = self.places.get(line)
        if place is None:
            return
        node.scope = (place["scope"] or "").strip()
        if place["file"]:
            column = int(place["column"])
            source = Source(" " * column, place["file"], int(place["line"]) - 1)
            node.source_range = SourceRange(source, column, column)

    def _note_held_graph(self, node: Node) -> None:
        """Record that a kind ending in a number refers to a graph that follows."""
        matched = _NUMBERED.fullmatch(node.kind)
        if matched is not None and f"with {node.kind} = graph(" in self.tokens.text:
            self.pending[node.kind] = node
            node.kind = matched[1]
            node.set("Subgraph", None)

    def _parse_inner_block(self, node: Node) -> None:
        self.tokens.advance()
        block = node.add_block()
        outer, self.values = self.values, dict(self.values)
        self._parse_inputs(block)
        self.tokens.expect(":")
        self._parse_nodes(block, "->")
        self.values = outer

    def _parse_attributes(self, node: Node, kind: Type) -> None:
        self.tokens.expect("[")
        while not self.tokens.take("]"):
            self._parse_attribute(node, self.tokens.expect_kind("name"), kind)
            if not self.tokens.take(","):
                self.tokens.expect("]")
                break

    def _parse_attribute(self, node: Node, name: str, kind: Type) -> None:
        if self.tokens.token != "=":
            raise self.tokens.error("expected '='")
        is_constant = node.kind == "prim::Constant"
        shown = self.attributes.shown_tensor() if is_constant and name == "value" else None
        if shown is not None:
            node.set("value", shown)
            return
        self.tokens.advance()
        if is_constant and name == "name" and isinstance(kind, FunctionType):
            node.set("value", self._parse_function(unquoted(self.tokens.expect_kind("string"))))
            return
        node.set(name, self.attributes.value(kind if is_constant and name == "value" else None, name in _TYPE_ATTRIBUTES))

    def _parse_function(self, name: str) -> Function:
        found = self.find_function(name) if self.find_function is not None else None
        return found if found is not None else Function(name)
