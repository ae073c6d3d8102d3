"""The IR of the jit: typed, block-structured SSA.

A graph is a block. A block has inputs, nodes in order, and outputs. A node has inputs, outputs, attributes and blocks of
its own
(`prim::If`, `prim::Loop`). A value is made by one node, or is a block's input, and knows its uses.

In: made by the emitter, by tracing, or parsed from text. Out: changed by passes, turned into instructions. Everything prints
(`printer.py`), parses back (`parser.py`) and can be linted (`lint.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from rushlight.jit.ir.names import ValueNames
from rushlight.jit.source import NO_SOURCE, SourceRange
from rushlight.jit.types.kinds import TENSOR, Type


class Use(NamedTuple):
    """An input of a node: the place where a value is read."""

    user: Node
    offset: int


class Value:
    """What a node makes, or a block takes. `type` is its type, `uses` are the places that read it."""

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
        """Whether it is called otherwise than by its number."""
        return self._name is not None

    @property
    def debug_name(self) -> str:
        """Its name, or else its number."""
        return self._name if self._name is not None else str(self.unique)

    @debug_name.setter
    def debug_name(self, name: str) -> None:
        self._name = self.node.graph.names.claim(self, name)

    def set_type(self, kind: Type) -> Value:
        """Change its type; returns itself."""
        self.type = kind
        return self

    def copy_metadata(self, other: Value) -> Value:
        """Take the type, and the name if there is one, of another value; returns itself."""
        self.type = other.type
        if other.has_debug_name:
            self.debug_name = other._name
        return self

    def replace_all_uses_with(self, other: Value) -> None:
        """Have every reader read `other` instead."""
        for user, offset in self.uses:
            user._inputs[offset] = other
            other.uses.append(Use(user, offset))
        self.uses = []

    def replace_uses_after(self, node: Node, other: Value) -> None:
        """Have the readers that come after `node`, in its block or inside later nodes, read `other` instead."""
        for user, offset in list(self.uses):
            if user is not node and user.is_after(node):
                user.replace_input(offset, other)

    def constant(self, default: object = None) -> object:
        """The value of a prim::Constant, `default` for any other value."""
        return self.node.attributes.get("value") if self.node.kind == "prim::Constant" else default

    @property
    def is_constant(self) -> bool:
        """Whether a prim::Constant makes it."""
        return self.node.kind == "prim::Constant"

    @property
    def is_none(self) -> bool:
        """Whether it is the constant None."""
        return self.is_constant and self.node.attributes.get("value") is None

    def __repr__(self) -> str:
        return f"%{self.debug_name} : {self.type.ir_text}"


class Node:
    """An operation: `outputs = kind[attributes](inputs)`, with blocks. A block has two nodes more, which hold its inputs
    (kind `prim::Param`) and its outputs (`prim::Return`)."""

    __slots__ = (
        "graph",
        "kind",
        "_inputs",
        "outputs",
        "attributes",
        "blocks",
        "source_range",
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
        self.block: Block | None = None
        self.previous: Node | None = None
        self.next: Node | None = None
        self._position = 0
        for value in inputs:
            self.add_input(value)
        for _ in range(output_count):
            self.add_output()

    # Inputs

    @property
    def inputs(self) -> tuple[Value, ...]:
        """What it reads."""
        return tuple(self._inputs)

    def input(self, index: int = 0) -> Value:
        """One of the values that it reads."""
        return self._inputs[index]

    @property
    def input_count(self) -> int:
        """How many values it reads."""
        return len(self._inputs)

    def add_input(self, value: Value) -> Value:
        """Read one value more."""
        value.uses.append(Use(self, len(self._inputs)))
        self._inputs.append(value)
        return value

    def insert_input(self, index: int, value: Value) -> Value:
        """Read one value more, at a place."""
        inputs = list(self._inputs)
        self.remove_all_inputs()
        for each in [*inputs[:index], value, *inputs[index:]]:
            self.add_input(each)
        return value

    def replace_input(self, index: int, value: Value) -> Value:
        """Read another value at a place; returns the old one."""
        old = self._inputs[index]
        old.uses.remove(Use(self, index))
        self._inputs[index] = value
        value.uses.append(Use(self, index))
        return old

    def replace_input_with(self, old: Value, new: Value) -> None:
        """Read `new` wherever it reads `old`."""
        for index, value in enumerate(self._inputs):
            if value is old:
                self.replace_input(index, new)

    def remove_input(self, index: int) -> None:
        """Read one value less."""
        inputs = list(self._inputs)
        self.remove_all_inputs()
        for each in inputs[:index] + inputs[index + 1 :]:
            self.add_input(each)

    def remove_all_inputs(self) -> None:
        """Read nothing."""
        for index, value in enumerate(self._inputs):
            value.uses.remove(Use(self, index))
        self._inputs = []

    # Outputs

    @property
    def output(self) -> Value:
        """Its only result. ValueError if it does not have exactly one."""
        if len(self.outputs) != 1:
            raise ValueError(f"{self.kind} has {len(self.outputs)} outputs, not one")
        return self.outputs[0]

    def add_output(self, kind: Type = TENSOR) -> Value:
        """Give one result more."""
        value = Value(self, len(self.outputs), kind)
        self.outputs.append(value)
        return value

    def insert_output(self, index: int, kind: Type = TENSOR) -> Value:
        """Give one result more, at a place."""
        value = Value(self, index, kind)
        self.outputs.insert(index, value)
        self._number_outputs()
        return value

    def erase_output(self, index: int) -> None:
        """Drop a result, which nothing reads."""
        value = self.outputs[index]
        if value.uses:
            raise ValueError(f"output %{value.debug_name} of {self.kind} is still used")
        self.graph.names.release(value)
        del self.outputs[index]
        self._number_outputs()

    def _number_outputs(self) -> None:
        for offset, value in enumerate(self.outputs):
            value.offset = offset

    @property
    def has_uses(self) -> bool:
        """Whether any result is read."""
        return any(value.uses for value in self.outputs)

    def replace_all_uses_with(self, other: Node) -> None:
        """Have the readers of each result read `other`'s instead."""
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
        """A new, empty block inside."""
        block = Block(self.graph, self)
        self.blocks.append(block)
        return block

    def erase_block(self, index: int) -> None:
        """Destroy one of its blocks."""
        self.blocks.pop(index).destroy()

    # Place

    def insert_before(self, other: Node) -> Node:
        """Put a node that has no place yet before another; returns it."""
        return self.insert_after(other.previous)

    def insert_after(self, other: Node) -> Node:
        """Put a node that has no place yet after another (a block's param node: at its beginning); returns it."""
        self.block = other.block
        self.previous, self.next = other, other.next
        other.next.previous = self
        other.next = self
        self.block.forget_order()
        return self

    def move_before(self, other: Node) -> None:
        """Take it from its place and put it before another."""
        self.remove_from_list()
        self.insert_before(other)

    def move_after(self, other: Node) -> None:
        """Take it from its place and put it after another."""
        self.remove_from_list()
        self.insert_after(other)

    def remove_from_list(self) -> None:
        """Take it from its place."""
        self.previous.next, self.next.previous = self.next, self.previous
        self.block.forget_order()
        self.block = self.previous = self.next = None

    def is_before(self, other: Node) -> bool:
        """Whether it comes before another: where both stand, or the nodes around them that share a block."""
        if self is other:
            return False
        own, theirs = list(self._enclosing()), list(other._enclosing())
        blocks = {node.block: node for node in own}
        for node in theirs:
            mine = blocks.get(node.block)
            if mine is not None:
                if mine is node:  # one holds the other: the outer comes first
                    return mine is self
                return mine.position < node.position
        raise ValueError("the nodes are of different graphs")

    def is_after(self, other: Node) -> bool:
        """Whether it comes after another."""
        return self is not other and not self.is_before(other)

    def _enclosing(self) -> Iterator[Node]:
        node: Node | None = self
        while node is not None:
            yield node
            node = node.block.owner

    @property
    def position(self) -> int:
        """Its place in its block."""
        self.block.ensure_order()
        return self._position

    def destroy(self) -> None:
        """Take it from the graph for good; nothing may read its results."""
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


class Block:
    """Nodes in order, with inputs and outputs; `owner` is the node that it belongs to (None: it is the graph's)."""

    __slots__ = ("graph", "owner", "param", "result", "_ordered")

    def __init__(self, graph: Graph, owner: Node | None):
        self.graph = graph
        self.owner = owner
        self.param = Node(graph, "prim::Param", (), 0)
        self.result = Node(graph, "prim::Return", (), 0)
        self._ordered = False
        for node in (self.param, self.result):
            node.block = self
        self.param.previous = self.param.next = self.result
        self.result.previous = self.result.next = self.param

    @property
    def inputs(self) -> list[Value]:
        """What it takes."""
        return self.param.outputs

    @property
    def outputs(self) -> tuple[Value, ...]:
        """What it gives."""
        return self.result.inputs

    @property
    def nodes(self) -> Iterator[Node]:
        """Its nodes in order. The current one may be destroyed or moved meanwhile."""
        node = self.param.next
        while node is not self.result:
            following = node.next
            yield node
            node = following if node.next is None or node.block is not self else node.next

    @property
    def reversed_nodes(self) -> Iterator[Node]:
        """Its nodes, last first. The current one may be destroyed meanwhile."""
        node = self.result.previous
        while node is not self.param:
            preceding = node.previous
            yield node
            node = preceding if node.previous is None or node.block is not self else node.previous

    def add_input(self, name: str | None = None, kind: Type = TENSOR) -> Value:
        """Take one value more."""
        value = self.param.add_output(kind)
        if name is not None:
            value.debug_name = name
        return value

    def insert_input(self, index: int, name: str | None = None, kind: Type = TENSOR) -> Value:
        """Take one value more, at a place."""
        value = self.param.insert_output(index, kind)
        if name is not None:
            value.debug_name = name
        return value

    def erase_input(self, index: int) -> None:
        """Take one value less, which nothing reads."""
        self.param.erase_output(index)

    def add_output(self, value: Value) -> int:
        """Give one value more; its index."""
        self.result.add_input(value)
        return self.result.input_count - 1

    def insert_output(self, index: int, value: Value) -> None:
        """Give one value more, at a place."""
        self.result.insert_input(index, value)

    def replace_output(self, index: int, value: Value) -> None:
        """Give another value at a place."""
        self.result.replace_input(index, value)

    def erase_output(self, index: int) -> None:
        """Give one value less."""
        self.result.remove_input(index)

    def append(self, node: Node) -> Node:
        """Put a node at the end; returns it."""
        return node.insert_before(self.result)

    def prepend(self, node: Node) -> Node:
        """Put a node at the beginning; returns it."""
        return node.insert_after(self.param)

    def all_nodes(self) -> Iterator[Node]:
        """Its nodes and those of the blocks inside, outer ones first."""
        for node in self.nodes:
            yield node
            for block in node.blocks:
                yield from block.all_nodes()

    def forget_order(self) -> None:
        """The places of the nodes have changed."""
        self._ordered = False

    def ensure_order(self) -> None:
        """Number the nodes, if they changed since."""
        if not self._ordered:
            for position, node in enumerate(itertools.chain((self.param,), self.nodes, (self.result,))):
                node._position = position
            self._ordered = True

    def destroy(self) -> None:
        """Destroy all nodes."""
        self.result.remove_all_inputs()
        for node in self.reversed_nodes:
            node.destroy()
        for value in self.param.outputs:
            value.uses = []
            self.graph.names.release(value)

    def clone_from(self, source: Block, value_of: Callable[[Value], Value]) -> None:
        """Fill an empty block with copies of another's nodes; `value_of` says what stands for values from outside."""
        copies: dict[Value, Value] = {}
        for value in source.inputs:
            copies[value] = self.add_input(kind=value.type).copy_metadata(value)

        def lookup(value: Value) -> Value:
            return copies[value] if value in copies else value_of(value)

        for node in source.nodes:
            copy = self.append(self.graph.clone_node(node, lookup))
            copies.update(zip(node.outputs, copy.outputs, strict=True))
        for value in source.outputs:
            self.add_output(lookup(value))


class Graph:
    """A function's body. Nodes are inserted at the insertion point: the end, unless `insert_point` says otherwise."""

    def __init__(self) -> None:
        self._unique = itertools.count()
        self.names = ValueNames()
        self.current_range = NO_SOURCE
        self.block = Block(self, None)
        self._insert_before = self.block.result

    def next_unique(self) -> int:
        """A number that no value has."""
        number = next(self._unique)
        while self.names.is_taken(str(number)):
            number = next(self._unique)
        return number

    @property
    def inputs(self) -> list[Value]:
        """What it takes."""
        return self.block.inputs

    @property
    def outputs(self) -> tuple[Value, ...]:
        """What it gives."""
        return self.block.outputs

    @property
    def nodes(self) -> Iterator[Node]:
        """The nodes of its block, in order."""
        return self.block.nodes

    def all_nodes(self) -> Iterator[Node]:
        """All nodes, those of inner blocks too."""
        return self.block.all_nodes()

    def find_all_nodes(self, kind: str) -> list[Node]:
        """All nodes of a kind."""
        return [node for node in self.all_nodes() if node.kind == kind]

    def find_node(self, kind: str) -> Node | None:
        """The first node of a kind."""
        return next((node for node in self.all_nodes() if node.kind == kind), None)

    def add_input(self, name: str | None = None, kind: Type = TENSOR) -> Value:
        """Take one value more."""
        return self.block.add_input(name, kind)

    def register_output(self, value: Value) -> int:
        """Give one value more; its index."""
        return self.block.add_output(value)

    # Making nodes

    def create(self, kind: str, inputs: Iterable[Value] = (), output_count: int = 1) -> Node:
        """A node without a place."""
        return Node(self, kind, inputs, output_count)

    def insert_node(self, node: Node) -> Node:
        """Put a node at the insertion point; returns it."""
        return node.insert_before(self._insert_before)

    def insert(self, kind: str, inputs: Iterable[Value] = (), output_count: int = 1) -> Node:
        """A new node at the insertion point."""
        return self.insert_node(self.create(kind, inputs, output_count))

    def clone_node(self, node: Node, value_of: Callable[[Value], Value]) -> Node:
        """A copy, without a place, of a node of any graph, with its blocks; `value_of` says what its inputs are here."""
        copy = Node(self, node.kind, map(value_of, node.inputs), 0)
        copy.source_range = node.source_range
        copy.attributes = dict(node.attributes)
        for value in node.outputs:
            copy.add_output(value.type).copy_metadata(value)
        for block in node.blocks:
            copy.add_block().clone_from(block, value_of)
        return copy

    def copy(self) -> Graph:
        """An equal graph."""
        made = Graph()
        made.block.clone_from(self.block, _no_outside)
        return made

    @property
    def insert_point(self) -> Node:
        """The node before which nodes are inserted."""
        return self._insert_before

    @contextmanager
    def inserting(self, before: Node | None = None, at_end_of: Block | None = None, at_start_of: Block | None = None):
        """Insert nodes before a node, or at the end or start of a block, while the context lasts."""
        saved = self._insert_before
        if at_end_of is not None:
            before = at_end_of.result
        elif at_start_of is not None:
            before = at_start_of.param.next
        self._insert_before = before
        try:
            yield self
        finally:
            self._insert_before = saved

    def set_insert_point(self, node_or_block: Node | Block) -> None:
        """Insert before a node, or at the end of a block, from now on."""
        self._insert_before = node_or_block.result if isinstance(node_or_block, Block) else node_or_block

    @contextmanager
    def source(self, where: SourceRange):
        """New nodes come from this place in the source while the context lasts."""
        saved = self.current_range
        self.current_range = where
        try:
            yield
        finally:
            self.current_range = saved


def _no_outside(value: Value) -> Value:
    raise ValueError(f"%{value.debug_name} is not made in the graph")
