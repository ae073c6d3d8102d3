"""Values and nodes of the IR.

In: calls of a Graph. Out: data that passes change in place. Every change keeps use lists, names and positions consistent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rushlight.core.lazy_module import LazyModule
from rushlight.jit.source import SourceRange
from rushlight.jit.types.kinds import TENSOR, Type

if TYPE_CHECKING:
    from rushlight.jit.ir.block import Block
    from rushlight.jit.ir.graph import Graph

printer = LazyModule("rushlight.jit.ir.printer")


class Use(NamedTuple):
    """A use of a value: an input of a node."""

    user: Node
    offset: int


class Value:
    """A node's result, or a block's input. `type` is its type, `uses` are its uses."""

    __slots__ = ("node", "offset", "type", "uses", "_name", "unique")

    def __init__(self, node: Node, offset: int, kind: Type):
        self.node = node
        self.offset = offset
        self.type = kind
        self.uses: list[Use] = []
        self._name: str | None = None
        self.unique = node.graph.next_unique()

    @property
    def has_debug_name(self) -> bool:
        """Return whether it has a name other than its number."""
        return self._name is not None

    @property
    def debug_name(self) -> str:
        """Return its name, or else its number."""
        return self._name if self._name is not None else str(self.unique)

    @debug_name.setter
    def debug_name(self, name: str) -> None:
        self._name = self.node.graph.names.claim(self, name)

    def take_name(self, name: str) -> None:
        """Take the name `name`; a value that had it gets the next free `name.N`."""
        self.node.graph.names.yield_name(name)
        self.debug_name = name

    def set_type(self, kind: Type) -> Value:
        """Change its type; returns itself."""
        self.type = kind
        return self

    def copy_metadata(self, other: Value) -> Value:
        """Copy the type of another value, and the name if there is one; returns itself."""
        self.type = other.type
        if other.has_debug_name:
            self.debug_name = other._name
        return self

    def replace_all_uses_with(self, other: Value) -> None:
        """Replace all its uses by `other`."""
        for user, offset in self.uses:
            user._inputs[offset] = other
            other.uses.append(Use(user, offset))
        self.uses = []

    def replace_uses_after(self, node: Node, other: Value) -> None:
        """Replace its uses after `node`, in its block or inside later nodes, by `other`."""
        for user, offset in list(self.uses):
            if user is not node and user.is_after(node):
                user.replace_input(offset, other)

    def constant(self, default: object = None) -> object:
        """Return the value of a prim::Constant; `default` for any other value."""
        return self.node.attributes.get("value") if self.node.kind == "prim::Constant" else default

    @property
    def is_constant(self) -> bool:
        """Return whether it is the result of a prim::Constant."""
        return self.node.kind == "prim::Constant"

    @property
    def is_none(self) -> bool:
        """Return whether it is the constant None."""
        return self.is_constant and self.node.attributes.get("value") is None

    def __repr__(self) -> str:
        return f"%{self.debug_name} : {self.type.ir_text}"


class Node:
    """An operation: `outputs = kind[attributes](inputs)`, with blocks. Two more nodes of a block hold its inputs (kind
    `prim::Param`) and its outputs (`prim::Return`)."""

    __slots__ = (
        "graph",
        "kind",
        "_inputs",
        "outputs",
        "attributes",
        "blocks",
        "source_range",
        "scope",
        "block",
        "previous",
        "next",
        "_position",
    )

    def __init__(self, graph: Graph, kind: str, inputs: Iterable[Value] = (), output_count: int = 1):
        self.graph = graph
        self.kind = kind
        self._inputs: list[Value] = []
        self.outputs: list[Value] = []
        self.attributes: dict[str, object] = {}
        self.blocks: list[Block] = []
        self.source_range: SourceRange = graph.current_range
        self.scope: str = graph.current_scope
        self.block: Block | None = None
        self.previous: Node | None = None
        self.next: Node | None = None
        self._position = 0
        for value in inputs:
            self.add_input(value)
        for _ in range(output_count):
            self.add_output()

    # Inputs

    def __str__(self) -> str:
        return printer.node_text(self)

    @property
    def inputs(self) -> tuple[Value, ...]:
        """Return its inputs."""
        return tuple(self._inputs)

    def input(self, index: int = 0) -> Value:
        """Return one of its inputs."""
        return self._inputs[index]

    @property
    def input_count(self) -> int:
        """Return the number of its inputs."""
        return len(self._inputs)

    def add_input(self, value: Value) -> Value:
        """Add an input."""
        value.uses.append(Use(self, len(self._inputs)))
        self._inputs.append(value)
        return value

    def insert_input(self, index: int, value: Value) -> Value:
        """Insert an input at an index."""
        inputs = list(self._inputs)
        self.remove_all_inputs()
        for each in [*inputs[:index], value, *inputs[index:]]:
            self.add_input(each)
        return value

    def replace_input(self, index: int, value: Value) -> Value:
        """Replace an input; returns the old one."""
        old = self._inputs[index]
        old.uses.remove(Use(self, index))
        self._inputs[index] = value
        value.uses.append(Use(self, index))
        return old

    def replace_input_with(self, old: Value, new: Value) -> None:
        """Replace all occurrences of `old` among its inputs by `new`."""
        for index, value in enumerate(self._inputs):
            if value is old:
                self.replace_input(index, new)

    def remove_input(self, index: int) -> None:
        """Remove an input."""
        inputs = list(self._inputs)
        self.remove_all_inputs()
        for each in inputs[:index] + inputs[index + 1 :]:
            self.add_input(each)

    def remove_all_inputs(self) -> None:
        """Remove all inputs."""
        for index, value in enumerate(self._inputs):
            value.uses.remove(Use(self, index))
        self._inputs = []

    # Outputs

    @property
    def output(self) -> Value:
        """Return its only result. ValueError if it does not have exactly one."""
        if len(self.outputs) != 1:
            raise ValueError(f"{self.kind} has {len(self.outputs)} outputs, not one")
        return self.outputs[0]

    def add_output(self, kind: Type = TENSOR) -> Value:
        """Add a result."""
        value = Value(self, len(self.outputs), kind)
        self.outputs.append(value)
        return value

    def insert_output(self, index: int, kind: Type = TENSOR) -> Value:
        """Insert a result at an index."""
        value = Value(self, index, kind)
        self.outputs.insert(index, value)
        self._number_outputs()
        return value

    def erase_output(self, index: int) -> None:
        """Remove an unused result."""
        value = self.outputs[index]
        if value.uses:
            raise ValueError(f"output %{value.debug_name} of {self.kind} is still used")
        self.graph.names.release(value)
        del self.outputs[index]
        self._number_outputs()

    def reorder_outputs(self, order: Sequence[int]) -> None:
        """Reorder its results: the one at `order[0]` comes first."""
        self.outputs = [self.outputs[index] for index in order]
        self._number_outputs()

    def _number_outputs(self) -> None:
        for offset, value in enumerate(self.outputs):
            value.offset = offset

    @property
    def has_uses(self) -> bool:
        """Return whether any result is read."""
        return any(value.uses for value in self.outputs)

    def replace_all_uses_with(self, other: Node) -> None:
        """Replace the uses of each result by the corresponding result of `other`."""
        for own, new in zip(self.outputs, other.outputs, strict=True):
            own.replace_all_uses_with(new)

    # Attributes and blocks

    def __getitem__(self, name: str) -> object:
        return self.attributes[name]

    def set(self, name: str, value: object) -> Node:
        """Set an attribute; returns the node."""
        self.attributes[name] = value
        return self

    def add_block(self) -> Block:
        """Return a new, empty block inside."""
        block = self.graph.new_block(self)
        self.blocks.append(block)
        return block

    def erase_block(self, index: int) -> None:
        """Destroy one of its blocks."""
        self.blocks.pop(index).destroy()

    # Position

    def insert_before(self, other: Node) -> Node:
        """Insert a node that is not in a graph yet before another; returns it."""
        return self.insert_after(other.previous)

    def insert_after(self, other: Node) -> Node:
        """Insert a node that is not in a graph yet after another (after a block's param node: at its beginning); returns it."""
        self.block = other.block
        self.previous, self.next = other, other.next
        other.next.previous = self
        other.next = self
        self.block.forget_order()
        return self

    def move_before(self, other: Node) -> None:
        """Move it before another node."""
        self.remove_from_list()
        self.insert_before(other)

    def move_after(self, other: Node) -> None:
        """Move it after another node."""
        self.remove_from_list()
        self.insert_after(other)

    def remove_from_list(self) -> None:
        """Remove it from its block, keeping its connections."""
        self.previous.next, self.next.previous = self.next, self.previous
        self.block.forget_order()
        self.block = self.previous = self.next = None

    def is_before(self, other: Node) -> bool:
        """Return whether it comes before another node; nodes in different blocks compare by their ancestors in a common
        block.
        """
        if self is other:
            return False
        own, theirs = list(self._enclosing()), list(other._enclosing())
        blocks = {node.block: node for node in own}
        for node in theirs:
            mine = blocks.get(node.block)
            if mine is not None:
                if mine is node:  # one node contains the other: the outer one counts as first
                    return mine is self
                return mine.position < node.position
        raise ValueError("the nodes are of different graphs")

    def is_after(self, other: Node) -> bool:
        """Return whether it comes after another."""
        return self is not other and not self.is_before(other)

    def _enclosing(self) -> Iterator[Node]:
        node: Node | None = self
        while node is not None:
            yield node
            node = node.block.owner

    @property
    def position(self) -> int:
        """Return its position in its block."""
        self.block.ensure_order()
        return self._position

    def destroy(self) -> None:
        """Remove it from the graph permanently; its results must be unused."""
        for index in range(len(self.outputs) - 1, -1, -1):
            self.erase_output(index)
        while self.blocks:
            self.erase_block(len(self.blocks) - 1)
        self.remove_all_inputs()
        if self.block is not None:
            self.remove_from_list()

    def __repr__(self) -> str:
        results = ", ".join(map(repr, self.outputs))
        return f"{results} = {self.kind}({', '.join(f'%{value.debug_name}' for value in self._inputs)})"
