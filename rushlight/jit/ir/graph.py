"""The IR of the jit: typed, block-structured SSA.

A graph is a block (`block.py`). A block has inputs, nodes in order, and outputs. A node (`node.py`) has inputs, outputs,
attributes and blocks of its own (`prim::If`, `prim::Loop`). A value is produced by one node, or is a block's input, and knows
its uses.

In: the emitter, a trace or a text. Out: input of passes and of the instruction generator. Everything can be printed
(`printer.py`), parsed (`parser.py`) and linted (`lint.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

from rushlight.core.lazy_module import LazyModule
from rushlight.jit.ir.block import Block
from rushlight.jit.ir.names import ValueNames
from rushlight.jit.ir.node import Node, Use, Value
from rushlight.jit.source import NO_SOURCE, SourceRange
from rushlight.jit.types.kinds import TENSOR, Type

__all__ = ["Block", "Graph", "Node", "Use", "Value"]

printer = LazyModule("rushlight.jit.ir.printer")  # lazy: few programs print graphs


class CodeKeeper(Protocol):
    """Caches the instructions of a graph for other processes; `code` is a `Code` of `runtime/code.py`."""

    def fill(self, code: object) -> bool:
        """Fill an empty code with the cached instructions; False if there are none."""

    def keep(self, code: object) -> None:
        """Cache the instructions of a code."""


class Graph:
    """A function's body. Nodes are inserted at the insertion point: the end, unless `insert_point` says otherwise.

    `code_keeper` caches the instructions of an unchanged graph on disk."""

    code_keeper: CodeKeeper | None = None

    def __init__(self) -> None:
        self._unique = itertools.count()
        self.names = ValueNames()
        self.current_range = NO_SOURCE
        self.current_scope = ""
        self.block = Block(self, None)
        self._insert_before = self.block.result
        self.completed_runs = 0
        """The number of completed runs, if a `prim::profile` node counts them."""

    def __str__(self) -> str:
        return printer.graph_text(self)

    def next_unique(self) -> int:
        """Return an unused number for a value."""
        number = next(self._unique)
        while self.names.is_taken(str(number)):
            number = next(self._unique)
        return number

    def reserve_numbers(self) -> None:
        """Make new values use numbers beyond the existing ones, for a graph whose values were numbered from outside."""
        numbers = [value.unique for node in self.all_nodes() for value in node.outputs]
        numbers += [value.unique for node in self.all_nodes() for block in node.blocks for value in block.inputs]
        numbers += [value.unique for value in self.inputs]
        self._unique = itertools.count(max(numbers, default=-1) + 1)

    @property
    def inputs(self) -> list[Value]:
        """Return its inputs."""
        return self.block.inputs

    @property
    def outputs(self) -> tuple[Value, ...]:
        """Return its outputs."""
        return self.block.outputs

    @property
    def nodes(self) -> Iterator[Node]:
        """Return the nodes of its block, in order."""
        return self.block.nodes

    def all_nodes(self) -> Iterator[Node]:
        """Return all nodes, including inner blocks."""
        return self.block.all_nodes()

    def find_all_nodes(self, kind: str) -> list[Node]:
        """Return all nodes of a kind."""
        return [node for node in self.all_nodes() if node.kind == kind]

    def find_node(self, kind: str) -> Node | None:
        """Return the first node of a kind."""
        return next((node for node in self.all_nodes() if node.kind == kind), None)

    def add_input(self, name: str | None = None, kind: Type = TENSOR) -> Value:
        """Add an input."""
        return self.block.add_input(name, kind)

    def register_output(self, value: Value) -> int:
        """Add an output; returns its index."""
        return self.block.add_output(value)

    # Making nodes

    def new_block(self, owner: Node) -> Block:
        """Return an empty block of a node."""
        return Block(self, owner)

    def create(self, kind: str, inputs: Iterable[Value] = (), output_count: int = 1) -> Node:
        """Return a node that is not inserted yet."""
        return Node(self, kind, inputs, output_count)

    def insert_node(self, node: Node) -> Node:
        """Put a node at the insertion point; returns it."""
        return node.insert_before(self._insert_before)

    def insert(self, kind: str, inputs: Iterable[Value] = (), output_count: int = 1) -> Node:
        """Return a new node at the insertion point."""
        return self.insert_node(self.create(kind, inputs, output_count))

    def clone_node(self, node: Node, value_of: Callable[[Value], Value]) -> Node:
        """Return a copy, not inserted yet, of a node of any graph, with its blocks; `value_of` maps its inputs."""
        copy = Node(self, node.kind, map(value_of, node.inputs), 0)
        copy.source_range = node.source_range
        copy.scope = node.scope
        copy.attributes = dict(node.attributes)
        for value in node.outputs:
            copy.add_output(value.type).copy_metadata(value)
        for block in node.blocks:
            copy.add_block().clone_from(block, value_of)
        return copy

    def copy(self) -> Graph:
        """Return an equal graph."""
        made = Graph()
        made.block.clone_from(self.block, _refuse_outside)
        return made

    @property
    def insert_point(self) -> Node:
        """Return the node before which nodes are inserted."""
        return self._insert_before

    @contextmanager
    def inserting(self, before: Node | None = None, at_end_of: Block | None = None, at_start_of: Block | None = None):
        """Return a context manager that inserts nodes before a node, or at the end or start of a block."""
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
        """Return a context manager that sets the source range of new nodes."""
        saved = self.current_range
        self.current_range = where
        try:
            yield
        finally:
            self.current_range = saved


def _refuse_outside(value: Value) -> Value:
    raise ValueError(f"%{value.debug_name} is not made in the graph")
