"""torch's Python binding of blocks and graphs: `graph.nodes()`, `graph.insertConstant(3)`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

from rushlight.core.tensor import Tensor
from rushlight.jit import ir
from rushlight.jit.constants import insert_constant
from rushlight.jit.graph_api.nodes import Node
from rushlight.jit.graph_api.values import Value
from rushlight.jit.ir.handles import Handle
from rushlight.jit.ir.lint import lint
from rushlight.jit.ir.printer import graph_text
from rushlight.jit.operators.lookup import operator_of
from rushlight.jit.passes.inline import insert_graph
from rushlight.jit.types.kinds import TENSOR, TupleType


class Block(Handle, of=ir.Block):
    """Nodes in order."""

    __slots__ = ()
    raw: ir.Block

    def nodes(self) -> Iterator[Node]:
        """Return its nodes."""
        return map(Node, self.raw.nodes)

    def inputs(self) -> Iterator[Value]:
        """Return its inputs."""
        return map(Value, list(self.raw.inputs))

    def outputs(self) -> Iterator[Value]:
        """Return its outputs."""
        return map(Value, self.raw.outputs)

    def findNode(self, kind: str, recurse: bool = True) -> Node | None:
        """Return the first node of a kind."""
        return next(iter(self.findAllNodes(kind, recurse)), None)

    def findAllNodes(self, kind: str, recurse: bool = True) -> list[Node]:
        """Return the nodes of a kind, including inner blocks unless `recurse` is False."""
        return [Node(node) for node in (self.raw.all_nodes() if recurse else self.raw.nodes) if node.kind == kind]

    def owningNode(self) -> Node | None:
        """Return the node that the block belongs to; None for a graph's own block."""
        return None if self.raw.owner is None else Node(self.raw.owner)

    def paramNode(self) -> Node:
        """Return the node whose results are the block's inputs."""
        return Node(self.raw.param)

    def returnNode(self) -> Node:
        """Return the node whose inputs are the block's outputs."""
        return Node(self.raw.result)

    def addInputToBlock(self) -> Value:
        """Add an input."""
        return Value(self.raw.add_input())

    def registerOutput(self, value: Value) -> int:
        """Add an output; returns its index."""
        return self.raw.add_output(value.raw)

    def addNode(self, kind: str, inputs: Sequence[Value]) -> Node:
        """Return a new node at the end."""
        return Node(self.raw.append(self.raw.graph.create(kind, [value.raw for value in inputs])))


class Graph(Handle, of=ir.Graph):
    """A function's body."""

    __slots__ = ()
    raw: ir.Graph

    def __init__(self, raw: ir.Graph | None = None):
        super().__init__(ir.Graph() if raw is None else raw)

    def block(self) -> Block:
        """Return its block."""
        return Block(self.raw.block)

    def nodes(self) -> Iterator[Node]:
        """Return the nodes of its block."""
        return map(Node, self.raw.nodes)

    def inputs(self) -> Iterator[Value]:
        """Return its inputs."""
        return map(Value, list(self.raw.inputs))

    def outputs(self) -> Iterator[Value]:
        """Return its outputs."""
        return map(Value, self.raw.outputs)

    def param_node(self) -> Node:
        """Return the node whose results are its inputs."""
        return Node(self.raw.block.param)

    def return_node(self) -> Node:
        """Return the node whose inputs are its outputs."""
        return Node(self.raw.block.result)

    def findNode(self, kind: str, recurse: bool = True) -> Node | None:
        """Return the first node of a kind; None if there is none."""
        return self.block().findNode(kind, recurse)

    def findAllNodes(self, kind: str, recurse: bool = True) -> list[Node]:
        """Return the nodes of a kind, including inner blocks unless `recurse` is False."""
        return self.block().findAllNodes(kind, recurse)

    def addInput(self, name: str = "") -> Value:
        """Add an input."""
        return Value(self.raw.add_input(name or None))

    def eraseInput(self, index: int) -> None:
        """Remove an input."""
        self.raw.block.erase_input(index)

    def registerOutput(self, value: Value) -> int:
        """Add an output; returns its index."""
        return self.raw.register_output(value.raw)

    def eraseOutput(self, index: int) -> None:
        """Remove an output."""
        self.raw.block.erase_output(index)

    def permuteInputs(self, order: Sequence[int]) -> None:
        """Reorder the inputs."""
        inputs = self.raw.block.inputs
        if sorted(order) != list(range(len(inputs))):
            raise RuntimeError(f"{list(order)} is no order of {len(inputs)} inputs")
        inputs[:] = [inputs[index] for index in order]
        self.raw.block.param._number_outputs()

    def makeMultiOutputIntoTuple(self) -> None:
        """Replace the outputs by one tuple of them."""
        values = self.raw.outputs
        made = self.raw.create("prim::TupleConstruct", values)
        made.output.set_type(TupleType(tuple(value.type for value in values)))
        self.raw.block.append(made)
        self.raw.block.result.remove_all_inputs()
        self.raw.register_output(made.output)

    def create(self, kind: str, inputs: Sequence[Value] | int = (), num_outputs: int = 1) -> Node:
        """Return a node that is not inserted yet."""
        if isinstance(inputs, int):
            inputs, num_outputs = (), inputs
        return Node(self.raw.create(kind, [value.raw for value in inputs], num_outputs))

    def createClone(self, node: Node, value_of: Callable[[Value], Value]) -> Node:
        """Return a copy of a node, not inserted yet."""
        return Node(self.raw.clone_node(node.raw, lambda value: value_of(Value(value)).raw))

    def insertNode(self, node: Node) -> Node:
        """Insert a node at the insertion point; returns it."""
        return Node(self.raw.insert_node(node.raw))

    def appendNode(self, node: Node) -> Node:
        """Insert a node at the end; returns it."""
        return Node(self.raw.block.append(node.raw))

    def prependNode(self, node: Node) -> Node:
        """Insert a node at the beginning; returns it."""
        return Node(self.raw.block.prepend(node.raw))

    def insert(self, kind: str, args: Sequence[object]) -> Value:
        """Insert a new node at the insertion point; arguments that are no values become constants. Its result has the
        operator's type."""
        inputs = [each.raw if isinstance(each, Value) else self.insertConstant(each).raw for each in args]
        node = self.raw.insert(kind, inputs)
        operator = operator_of(node)
        return Value(node.output.set_type(TENSOR if operator is None else operator.schema.return_type))

    def insertConstant(self, value: object) -> Value:
        """Insert a constant at the insertion point. RuntimeError for a value that can't be one."""
        made = insert_constant(self.raw, value)
        if made is None:
            raise RuntimeError(f"a {type(value).__name__} can't be a constant: {value!r}")
        if isinstance(value, Tensor):
            Value(made).inferTypeFrom(value)
        return Value(made)

    def insertGraph(self, body: Graph, inputs: Sequence[Value]) -> list[Value]:
        """Insert copies of another graph's nodes at the insertion point; returns its outputs there."""
        return list(map(Value, insert_graph(self.raw.insert_point, body.raw, [value.raw for value in inputs])))

    def insertPoint(self) -> Node:
        """Return the node before which nodes are inserted."""
        return Node(self.raw.insert_point)

    def setInsertPoint(self, place: Node | Block) -> None:
        """Set the insertion point before a node, or at the end of a block."""
        self.raw.set_insert_point(place.raw)

    def insert_point_guard(self, place: Node | Block) -> AbstractContextManager:
        """Return a context that sets the insertion point before a node, or at the end of a block."""
        if isinstance(place, Block):
            return self.raw.inserting(at_end_of=place.raw)
        return self.raw.inserting(before=place.raw)

    def copy(self) -> Graph:
        """Return an equal graph."""
        return Graph(self.raw.copy())

    def lint(self) -> None:
        """Raise RuntimeError if an invariant of the graph is violated."""
        lint(self.raw)

    def str(self, print_source_ranges: bool = True) -> str:
        """Return the graph as text, with or without source positions."""
        return graph_text(self.raw, print_source_ranges)
