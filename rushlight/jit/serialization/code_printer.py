"""Print functions as TorchScript code, for archives and `.code`.

In: a graph and its signature. Out: `def f(x: Tensor) -> Tensor:` and statements, one for each node that is not part of an
expression. The text parses to an equivalent graph. Stage: jit, printing.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from rushlight.jit.function import Function
from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.schema import FunctionSchema
from rushlight.jit.serialization.code_constants import ConstantTable, constant_text
from rushlight.jit.serialization.code_expressions import expression, is_plain
from rushlight.jit.serialization.code_inlining import inlined_nodes
from rushlight.jit.serialization.code_names import LocalNames, TypeTable, identifier
from rushlight.jit.source import NO_SOURCE, SourceRange
from rushlight.jit.types.kinds import Type
from rushlight.jit.types.relations import unshaped

_MAX_EXPRESSION_LENGTH = 40  # a longer expression (with its indentation) is assigned to a variable of its own
_ENDLESS = 9223372036854775807


class FunctionPrinter:
    """Prints one function; constants and types are those of the whole program."""

    def __init__(self, types: TypeTable, constants: ConstantTable, level: int):
        self.types = types
        self.constants = constants
        self.names = LocalNames()
        self.inlined: set[Node] = set()
        self.expressions: dict[Value, str] = {}
        self.lines: list[str] = []
        self.places: list[SourceRange] = []
        self.place = NO_SOURCE
        self.level = level

    def function(
        self, graph: Graph, schema: FunctionSchema, name: str, self_type: Type | None = None, hides_self: bool = False
    ) -> str:  # fmt: skip
        """Return the whole definition, with a line end; `hides_self` leaves out the type of the first parameter."""
        self.inlined = inlined_nodes(graph.block)
        for value, argument in zip(graph.inputs, schema.arguments, strict=True):
            self.names.share(value, self.names.fresh(identifier(argument.name)))
        self._add_line(self._print_header(graph, schema, name, self_type, hides_self))
        self.level += 1
        self._name_long_constants(graph)
        self.block(graph.block)
        self._print_return(graph.outputs)
        return "\n".join(self.lines) + "\n"

    def _print_header(self, graph: Graph, schema: FunctionSchema, name: str, self_type: Type | None, hides_self: bool) -> str:
        parts = []
        for index, (value, argument) in enumerate(zip(graph.inputs, schema.arguments, strict=True)):
            kind = self_type if index == 0 and self_type is not None else argument.type
            if index == 0 and hides_self:
                parts.append(self.names[value])
                continue
            default = ""
            if argument.has_default:
                default = f"={constant_text(argument.default, argument.type, self.constants, self.types)}"
            parts.append(f"{self.names[value]}: {self.types.text(kind)}{default}")
        separator = f",\n{'  ' * (self.level + 2)}"
        return f"def {name}({separator.join(parts)}) -> {self.types.text(schema.return_type)}:"

    def _add_line(self, text: str) -> None:
        self.lines.append("  " * self.level + text)
        self.places.append(self.place)

    def ranges(self) -> list[tuple[int, SourceRange]]:
        """Return the source positions of printed lines: offsets in the definition's text, and places of the user's source."""
        offsets = accumulate((len(line) + 1 for line in self.lines), initial=0)
        return list(zip(offsets, self.places, strict=False))

    # Print values

    def text(self, value: Value) -> str:
        """Return a value as an expression: its name, a literal, or the saved expression for its only use."""
        if value in self.expressions:
            return self.expressions[value]
        if value.is_constant:
            return constant_text(value.constant(), value.type, self.constants, self.types)
        return self.names[value]

    def _is_long(self, text: str) -> bool:
        return len(text) + 2 * self.level >= _MAX_EXPRESSION_LENGTH

    def _split(self, values: Sequence[Value]) -> None:
        """Name long expressions among a statement's inputs, and those computed before them."""
        last = -1
        for index, value in enumerate(values):
            if self._is_expression(value) and self._is_long(self.text(value)):
                last = index
        for value in values[: last + 1]:
            if self._is_expression(value):
                text = self.expressions.pop(value)
                self._add_line(f"{self.names.give(value)} = {text}")

    def _is_expression(self, value: Value) -> bool:
        return value in self.expressions and not value.is_constant

    def _name_long_constants(self, graph: Graph) -> None:
        """Name long strings and functions at the beginning, where every block sees them."""
        for node in graph.all_nodes():
            if node.kind == "prim::Constant" and isinstance(node.output.constant(), str | Function) and node.output.uses:
                text = self.text(node.output)
                if self._is_long(text):
                    self.expressions[node.output] = self.names.fresh(_base_of(node.output, node.output))
                    self._add_line(f"{self.expressions[node.output]} = {text}")

    # Print nodes

    def block(self, block: Block) -> None:
        """Print the nodes of a block."""
        for node in block.nodes:
            if node.kind != "prim::Constant":
                self._print_node(node)

    def _print_node(self, node: Node) -> None:
        self.place = node.source_range
        special = _STATEMENTS.get(node.kind)
        if special is not None:
            special(self, node)
            return
        self._split(node.inputs)
        text = expression(self, node)
        if node in self.inlined:
            self.expressions[node.output] = text
        elif node.outputs:
            names = [self.names.give(value) for value in node.outputs]
            self._add_line(f"{', '.join(names)} = {text}")
        else:
            self._add_line(text)

    def _print_unpack(self, node: Node) -> None:
        self._split(node.inputs)
        names = "".join(f"{self.names.give(value)}, " for value in node.outputs)
        self._add_line(f"{names}= {self.text(node.input())}" if names else self.text(node.input()))

    def _print_module_index(self, node: Node) -> None:
        """Print a submodule by index or key, with its interface type."""
        self._split(node.inputs)
        container, key = map(self.text, node.inputs)
        self._add_line(f"{self.names.give(node.output)} : {self.types.text(node.output.type)} = {container}[{key}]")

    def _set_attribute(self, node: Node) -> None:
        self._split(node.inputs)
        owner, value = map(self.text, node.inputs)
        name = node["name"]
        self._add_line(f"{owner}.{name} = {value}" if is_plain(name) else f'setattr({owner}, "{name}", {value})')

    def _print_enter(self, node: Node) -> None:
        named = f" as {self.names.give(node.output)}" if node.output.uses else ""
        self._add_line(f"with {self.text(node.input())}{named}:")
        self.level += 1
        if _next_node(node).kind == "prim::Exit":
            self._add_line("pass")

    def _print_exit(self, node: Node) -> None:
        self.level -= 1

    def _print_fork(self, node: Node) -> None:
        body: Graph = node["Subgraph"]
        name = self.names.fresh("__forked_function")
        for inside, value in zip(body.inputs, node.inputs, strict=True):
            self.names.share(inside, self.text(value))
        self.inlined |= inlined_nodes(body.block)
        self._add_line(f"def {name}():")
        self.level += 1
        self.block(body.block)
        self._print_return(body.outputs)
        self.level -= 1
        self._add_line(f"{self.names.give(node.output)} = fork({name})")

    def _print_return(self, outputs: Sequence[Value]) -> None:
        self._split(outputs)
        parts = [self.text(value) for value in outputs]
        self._add_line(f"return {', '.join(parts) if parts else 'None'}")

    # Print ifs and loops

    def _print_if(self, node: Node) -> None:
        self._split(node.inputs[:1])
        condition = self.text(node.input())
        outputs = [self.names.give(value) for value in node.outputs]
        for word, block in ((f"if {condition}:", node.blocks[0]), ("else:", node.blocks[1])):
            self._add_line(word)
            self.level += 1
            before = len(self.lines)
            self.block(block)
            self._split(block.outputs)
            self._assign_all(outputs, node.outputs, block.outputs)
            if len(self.lines) == before:
                self._add_line("pass")
            self.level -= 1

    def _assign_all(self, names: list[str], targets: Sequence[Value], values: Sequence[Value]) -> None:
        """Assign values to names. A value that would be inferred to have a narrower type is annotated, on a line of its own."""
        texts = [self.text(value) for value in values]
        plain = []
        for name, target, value, text in zip(names, targets, values, texts, strict=True):
            if _is_wider(target, value):
                self._add_line(f"{name} : {self.types.text(target.type)} = {text}")
            else:
                plain.append((name, text))
        if plain:
            self._add_line(f"{', '.join(name for name, _ in plain)} = {', '.join(text for _, text in plain)}")

    def _print_loop(self, node: Node) -> None:
        body = node.blocks[0]
        self._split(node.inputs)
        first = [self.names.fresh(_base_of(output, value)) for output, value in zip(node.outputs, body.inputs[1:], strict=True)]
        self._assign_all(first, node.outputs, node.inputs[2:])
        for name, output, value in zip(first, node.outputs, body.inputs[1:], strict=True):
            self.names.share(output, name)
            self.names.share(value, name)
        if _is_true(node.input(1)) and _is_true(body.outputs[0]):
            self._print_for(node, first)
        else:
            self._print_while(node, first)

    def _print_for(self, node: Node, names: list[str]) -> None:
        body = node.blocks[0]
        self._add_line(f"for {self.names.give(body.inputs[0])} in range({self.text(node.input())}):")
        self.level += 1
        before = len(self.lines)
        self.block(body)
        self._print_next_round(names, body.outputs[1:], [])
        if len(self.lines) == before:
            self._add_line("pass")
        self.level -= 1

    def _print_while(self, node: Node, names: list[str]) -> None:
        """Print a loop that has a condition. If it also has a trip count, the code counts and tests the rounds."""
        body = node.blocks[0]
        counts = node.input().constant() != _ENDLESS
        condition, count = self.names.fresh("_"), ""
        if counts or body.inputs[0].uses:
            count = self.names.give(body.inputs[0])
            self._add_line(f"{count} = 0")
        first = self.text(node.input(1))
        if counts:
            limit = self.names.fresh("_")
            self._add_line(f"{limit} = {self.text(node.input())}")
            first = f"torch.__and__(torch.lt(0, {limit}), {first})"
        self._add_line(f"{condition} = {first}")
        self._add_line(f"while {condition}:")
        self.level += 1
        self.block(body)
        further = [(condition, self.text(body.outputs[0]))]
        if count:
            following = self.names.fresh("_")
            self._add_line(f"{following} = torch.add({count}, 1)")
            if counts:
                further = [(condition, f"torch.__and__(torch.lt({following}, {limit}), {further[0][1]})")]
            further.append((count, following))
        self._print_next_round(names, body.outputs[1:], further)
        self.level -= 1

    def _print_next_round(self, names: list[str], values: Sequence[Value], further: list[tuple[str, str]]) -> None:
        """Assign the next round's initial values simultaneously."""
        self._split(values)
        pairs = further + [(name, self.text(value)) for name, value in zip(names, values, strict=True)]
        changed = [(name, text) for name, text in pairs if name != text]
        if changed:
            self._add_line(f"{', '.join(name for name, _ in changed)} = {', '.join(text for _, text in changed)}")


_STATEMENTS = {
    "prim::If": FunctionPrinter._print_if, "prim::Loop": FunctionPrinter._print_loop,
    "prim::TupleUnpack": FunctionPrinter._print_unpack,
    "prim::ListUnpack": FunctionPrinter._print_unpack, "prim::SetAttr": FunctionPrinter._set_attribute,

       "prim::ModuleContainerIndex": FunctionPrinter._print_module_index,
    "prim::Enter": FunctionPrinter._print_enter, "prim::Exit": FunctionPrinter._print_exit,
    "prim::fork": FunctionPrinter._print_fork,
}  # fmt: skip


def _next_node(node: Node) -> Node:
    following = node.next
    while following.kind == "prim::Constant":
        following = following.next
    return following


def _is_wider(target: Value, value: Value) -> bool:
    wanted, own = unshaped(target.type), unshaped(value.type)
    return wanted != own


def _is_true(value: Value) -> bool:
    return value.is_constant and value.constant() is True


def _base_of(output: Value, inside: Value) -> str:
    named = inside if inside.has_debug_name else output
    return identifier(named.debug_name) if named.has_debug_name else "_"
