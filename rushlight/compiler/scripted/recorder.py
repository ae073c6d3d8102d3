"""Record a graph of the operators that an execution calls, above autograd; it is traced again if gradients are needed.


In: nodes of a jit graph as they run, with their fake inputs and outputs. Out: a GraphModule that calls these nodes on the
same inputs. Stage: runs beside the capture of aten operators, which no longer shows `detach` and how composite operators are
differentiated.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

from rushlight.compiler.scripted.regions import Unsupported, run_nodes
from rushlight.core.tensor import Tensor
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.jit.ir.graph import Node as JitNode


class Recorder:
    """Records calls. `inputs` are the fake tensors of the graph's inputs, in order."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.attributes: dict[str, Tensor] = {}
        self._nodes: dict[int, Node] = {}
        self._kept: list[Tensor] = []

    def input(self, fake: Tensor) -> None:
        """Add an input after the existing ones."""
        places = [node for node in self.graph.nodes if node.op == "placeholder"]
        if places:
            with self.graph.inserting_after(places[-1]):
                self._note_node(fake, self.graph.placeholder(f"input{len(places)}"))
        else:
            self._note_node(fake, self.graph.placeholder("input0"))

    def _note_node(self, tensor: Tensor, node: Node) -> None:
        """Record the graph node that makes a fake tensor."""
        self._nodes[id(tensor._impl)] = node
        self._kept.append(tensor)
        node.meta["val"] = node.meta["example_value"] = tensor

    def call(self, node: JitNode, arguments: Sequence[object], results: Sequence[object]) -> None:
        """Record that a node was run."""
        if not any(_tensors(arguments)) and not any(_tensors(results)):
            return
        made = self.graph.call_function(_make_caller(node), tuple(map(self._convert_argument, arguments)))
        for index, result in enumerate(results):
            self._node_of_result(result, self.graph.call_function(operator.getitem, (made, index)))

    def _node_of_result(self, result: object, node: Node) -> None:
        if isinstance(result, Tensor):
            self._note_node(result, node)
        elif isinstance(result, list | tuple):
            for index, item in enumerate(result):
                if any(_tensors([item])):
                    self._node_of_result(item, self.graph.call_function(operator.getitem, (node, index)))

    def _convert_argument(self, value: object) -> object:
        """Convert an argument of a jit node to one of a graph node."""
        if isinstance(value, Tensor):
            return self._nodes.get(id(value._impl)) or self._add_attribute(value)
        if isinstance(value, list | tuple):
            items = [self._convert_argument(item) for item in value]
            return items if isinstance(value, list) else tuple(items)
        if isinstance(value, dict) and any(_tensors([value])):
            raise Unsupported("a dict of tensors where gradients are needed")
        return value

    def _add_attribute(self, value: Tensor) -> Node:
        """Make a constant tensor an attribute of the recorded graph."""
        if value._impl.fake:
            raise Unsupported("a tensor of unknown origin where gradients are needed")
        name = f"attribute{len(self.attributes)}"
        self.attributes[name] = value
        node = self.graph.get_attr(name)
        self._note_node(value, node)
        return node

    def module(self, outputs: Sequence[Tensor]) -> GraphModule:
        """Return the graph with these results."""
        self.graph.output(tuple(map(self._convert_argument, outputs)))
        return GraphModule(self.attributes, self.graph)


def _tensors(values: Sequence[object]):
    for value in values:
        if isinstance(value, Tensor):
            yield True
        elif isinstance(value, list | tuple):
            yield from _tensors(value)
        elif isinstance(value, dict):
            yield from _tensors(list(value.values()))


def _make_caller(node: JitNode) -> Callable[..., tuple]:
    """Return a function that runs a node: it takes the arguments and returns the results in a tuple."""

    def call(*arguments: object) -> tuple:
        values = dict(zip(node.inputs, arguments, strict=True))
        run_nodes([node], values)
        return tuple(values[value] for value in node.outputs)

    call.__name__ = call.__qualname__ = node.kind.rpartition("::")[2]
    return call
