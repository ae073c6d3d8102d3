"""Blocks of the IR: nodes in order, with inputs and outputs.

In: made through a Graph or a Node. Out: data that passes change in place.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from rushlight.jit.ir.node import Node, Value
from rushlight.jit.types.kinds import TENSOR, Type

if TYPE_CHECKING:
    from rushlight.jit.ir.graph import Graph


class Copies(dict):
    """The mapping from values of a copied graph to the copies: a dict that is also a function. `outside` maps other values."""

    def __init__(self, known: Iterable[tuple[Value, Value]] = (), outside: Callable[[Value], Value] | None = None):
        super().__init__(known)
        self.outside = outside

    def __missing__(self, value: Value) -> Value:
        if self.outside is None:
            raise KeyError(value)
        return self.outside(value)

    __call__ = dict.__getitem__


class Block:
    """Nodes in order, with inputs and outputs; `owner` is the node that contains it (None for the graph's block)."""

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
        """Return its inputs."""
        return self.param.outputs

    @property
    def outputs(self) -> tuple[Value, ...]:
        """Return its outputs."""
        return self.result.inputs

    @property
    def nodes(self) -> Iterator[Node]:
        """Yield its nodes in order. The current one may be destroyed or moved during iteration."""
        node = self.param.next
        while node is not self.result:
            following = node.next
            yield node
            node = following if node.next is None or node.block is not self else node.next

    @property
    def reversed_nodes(self) -> Iterator[Node]:
        """Yield its nodes, last first. The current one may be destroyed during iteration."""
        node = self.result.previous
        while node is not self.param:
            preceding = node.previous
            yield node
            node = preceding if node.previous is None or node.block is not self else node.previous

    def add_input(self, name: str | None = None, kind: Type = TENSOR) -> Value:
        """Add an input."""
        value = self.param.add_output(kind)
        if name is not None:
            value.debug_name = name
        return value

    def insert_input(self, index: int, name: str | None = None, kind: Type = TENSOR) -> Value:
        """Insert an input at an index."""
        value = self.param.insert_output(index, kind)
        if name is not None:
            value.debug_name = name
        return value

    def erase_input(self, index: int) -> None:
        """Remove an unused input."""
        self.param.erase_output(index)

    def add_output(self, value: Value) -> int:
        """Add an output; returns its index."""
        self.result.add_input(value)
        return self.result.input_count - 1

    def insert_output(self, index: int, value: Value) -> None:
        """Insert an output at an index."""
        self.result.insert_input(index, value)

    def replace_output(self, index: int, value: Value) -> None:
        """Replace an output."""
        self.result.replace_input(index, value)

    def erase_output(self, index: int) -> None:
        """Remove an output."""
        self.result.remove_input(index)

    def append(self, node: Node) -> Node:
        """Put a node at the end; returns it."""
        return node.insert_before(self.result)

    def prepend(self, node: Node) -> Node:
        """Put a node at the beginning; returns it."""
        return node.insert_after(self.param)

    def all_nodes(self) -> Iterator[Node]:
        """Yield its nodes and those of inner blocks, outer ones first."""
        for node in self.nodes:
            yield node
            for block in node.blocks:
                yield from block.all_nodes()

    def forget_order(self) -> None:
        """Invalidate the nodes' positions after a change."""
        self._ordered = False

    def ensure_order(self) -> None:
        """Number the nodes' positions, if they have changed."""
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
        """Fill an empty block with copies of another's nodes; `value_of` maps values from outside."""
        copies = value_of if isinstance(value_of, Copies) else Copies(outside=value_of)
        for value in source.inputs:
            copies[value] = self.add_input(kind=value.type).copy_metadata(value)
        for node in source.nodes:
            copy = self.append(self.graph.clone_node(node, copies))
            copies.update(zip(node.outputs, copy.outputs, strict=True))
        for value in source.outputs:
            self.add_output(copies[value])
