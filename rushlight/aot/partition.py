"""Partitioning: split a joint graph into a forward graph, which also returns the values to save, and a backward graph.

In: a functionalized joint graph. Out: two graphs of aten operators. `default_partition` saves every value that the backward
reads; `min_cut_partition` saves the fewest bytes from which the backward can recompute the rest, by a minimum cut.
Random values are always saved. Stage: aot, before the backend.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rushlight.aot.errors import Untraceable
from rushlight.aot.joint import Joint
from rushlight.aot.memory import is_size, is_write, owner_of
from rushlight.aot.recompute import Recomputation
from rushlight.core.dispatch_key import AUTOGRAD_BITS
from rushlight.core.symbolic import SymInt
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import ExcludeKeys
from rushlight.fx.fake_tensor import FakeTensorMode
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.fx.symbolic_sizes import SymbolNodes
from rushlight.ops.registry import aten


@dataclass(frozen=True)
class Saved:
    """A value that is saved for the backward: a primal or output, or an extra value that only the backward needs."""

    kind: str  # "primal", "output" or "extra"
    position: int


@dataclass
class Partition:
    """The two graphs. `forward(*primals)` returns the joint graph's outputs and the extra values, `backward(*saved, *tangents)`
    returns the gradients.

    `written` are the indices of primals that the forward writes to.
    """

    forward: GraphModule
    backward: GraphModule
    saved: list[Saved]
    written: list[int]


def default_partition(joint: Joint) -> Partition:
    """Save what the backward reads, as eager does."""
    values = JointValues(joint)
    return values.partition(list(dict.fromkeys(map(owner_of, values.read_by_backward()))))


def min_cut_partition(joint: Joint, memory_budget: float = 1.0) -> Partition:
    """Save the fewest bytes from which the backward can be computed without repeating expensive operators.

    With a `memory_budget` below 1, more is recomputed, the cheapest per byte first, until at most that share of these bytes is
    saved, or nothing more can be recomputed; at 0 everything possible is. ValueError for a budget outside of 0..1.
    """
    if not 0 <= memory_budget <= 1:
        raise ValueError(f"memory_budget must be between 0 and 1, got {memory_budget}")
    values = JointValues(joint)
    return values.partition(Recomputation(values.candidates(), values.read_by_backward()).choose(memory_budget))


class JointValues:
    """The nodes of a joint graph by what they depend on: `backward` are those that need a tangent."""

    def __init__(self, joint: Joint):
        self.joint = joint
        _read_each_size_once(joint.module.graph)
        self.nodes = list(joint.module.graph.nodes)
        self.primals = joint.primals
        self.tangents = joint.placeholders[len(self.primals) :]
        outputs = list(joint.module.graph.output_node().args[0])
        count = len(joint.results.computed)
        self.outputs, self.gradients = outputs[:count], outputs[count:]
        self.backward = _users_of(self.tangents)
        self.write_backs = [node for node in self.nodes if is_write(node) and node.args[0] in self.primals]
        if any(node in self.backward for node in (*self.write_backs, *self.outputs)):
            raise Untraceable("an output, or what is written to an input, depends on the gradients")

    def read_by_backward(self) -> list[Node]:
        """Return the values of the forward, except sizes, that backward nodes read or that are gradients."""
        found = [node for node in self.nodes if node in self.backward and node.op != "output"]
        read = [used for node in found for used in node.all_input_nodes if used not in self.backward]
        read += [node for node in self.gradients if isinstance(node, Node) and node not in self.backward]
        return [node for node in dict.fromkeys(read) if not is_size(node)]

    def candidates(self) -> list[Node]:
        """Return the values of the forward that the backward depends on, in order."""
        wanted = ancestors(self.read_by_backward())
        return [node for node in self.nodes if node in wanted and not is_size(node)]

    # Make the forward and the backward graph

    def partition(self, saved: Iterable[Node]) -> Partition:
        """Split the graph, saving `saved`."""
        copies = self._keep_written_primals(saved)
        kept = [copies.get(node, node) for node in saved if node.op != "get_attr"]  # both graphs hold the constants
        kept += self._sizes_of_backward(kept)
        values, extras = [], []
        for node in kept:
            if node in self.primals:
                values.append(Saved("primal", self.primals.index(node)))
            elif node in self.outputs:
                values.append(Saved("output", self.outputs.index(node)))
            else:
                values.append(Saved("extra", len(extras)))
                extras.append(node)
        module = self.joint.module
        effects = [node for node in self.nodes if node.op == "call_function" and node.is_impure()]
        effects = [node for node in effects if node not in self.backward]
        forward = extract(module, "forward", self.primals, [*self.outputs, *extras], effects)
        backward = extract(module, "backward", [*kept, *self.tangents], self.gradients, (), self.backward)
        written = [self.primals.index(node.args[0]) for node in self.write_backs]
        return Partition(forward, backward, values, written)

    def _sizes_of_backward(self, kept: list[Node]) -> list[Node]:
        """Return the nodes of the symbols in the backward graph's sizes; nodes are made for symbols that have none."""
        wanted = _find_ancestors([*kept, *self.tangents, *(node for node in self.gradients if isinstance(node, Node))], {*kept})
        symbols = dict.fromkeys(
            symbol for node in self.nodes if node in wanted for number in _numbers(node.meta.get("val"))
            for symbol in _symbols(number)
        )  # fmt: skip
        if not symbols:
            return []
        made = SymbolNodes(self.joint.module.graph)
        for node in self.joint.placeholders:
            made.bind(node.meta.get("val"), node)
        present = {node.meta["val"].expr: node for node in reversed(self.nodes) if type(node.meta.get("val")) is SymInt}
        found = [present.get(number.expr) or made.node_of(number) for number in symbols]
        self.nodes = list(self.joint.module.graph.nodes)
        return found

    def _keep_written_primals(self, saved: Iterable[Node]) -> dict[Node, Node]:
        """Copy, at the start of the graph, the saved primals that the forward writes to at its end."""
        copies = {}
        graph, module_output = self.joint.module.graph, self.joint.module.graph.output_node()
        for write in self.write_backs:
            primal = write.args[0]
            if primal in saved:
                with graph.inserting_after(self.joint.placeholders[-1]):
                    made = copies[primal] = graph.create_node("call_function", aten("clone"), (primal,), name="clone")
                with FakeTensorMode(), ExcludeKeys(AUTOGRAD_BITS):
                    made.meta = dict(primal.meta, val=made.target(primal.meta["val"]))
                for user in list(primal.users):
                    if user not in (made, write, module_output):
                        user.replace_input_with(primal, made)
                self.gradients = [made if node is primal else node for node in self.gradients]
        self.nodes = list(graph.nodes)
        return copies


def _read_each_size_once(graph: Graph) -> None:
    """Erase size nodes that repeat an earlier node: the backward graph takes one node for each symbol."""
    first: dict[object, Node] = {}
    for node in list(graph.nodes):
        value = node.meta.get("val")
        if node.op == "call_function" and type(value) is SymInt and first.setdefault(value.expr, node) is not node:
            node.replace_all_uses_with(first[value.expr])
            graph.erase_node(node)


def _numbers(value: object) -> Iterator[object]:
    """Yield the sizes and strides of a node's value, or the value itself if it is a size."""
    for part in value if isinstance(value, tuple | list) else (value,):
        yield from (*part.shape, *part.stride()) if isinstance(part, Tensor) else (part,)


def _symbols(number: object) -> Iterator[SymInt]:
    if type(number) is SymInt:
        yield from (number.environment.integer(symbol) for symbol in sorted(number.expr.free_variables(), key=str))


def _users_of(nodes: Iterable[Node]) -> set[Node]:
    """Return the nodes and everything that depends on them."""
    found: set[Node] = set()
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            stack.extend(user for user in node.users if user.op != "output")
    return found


def ancestors(nodes: Iterable[Node]) -> set[Node]:
    """Return the nodes and everything that they depend on."""
    found: set[Node] = set()
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            stack.extend(node.all_input_nodes)
    return found


def extract(module: GraphModule, name: str, inputs: list[Node], outputs: list, effects: Iterable[Node] = (),
            allowed: set[Node] | None = None) -> GraphModule:  # fmt: skip
    """Return the part of a graph that calculates `outputs`, and has `effects`, from `inputs`.

    ValueError when it needs a placeholder that is not among the inputs.
    """
    graph, copied = Graph(), {}
    for node in inputs:
        made = copied[node] = graph.placeholder(node.name)
        made.meta = dict(node.meta)
    wanted = _find_ancestors([*(node for node in outputs if isinstance(node, Node)), *effects], set(inputs))
    for node in module.graph.nodes:
        if node in wanted and node not in copied:
            if node.op == "placeholder":
                raise ValueError(f"{name} needs {node.name}, which is not among its inputs")
            copied[node] = graph.node_copy(node, copied.__getitem__)
    graph.output(tuple(copied[node] if isinstance(node, Node) else node for node in outputs))
    made = GraphModule(module, graph, name)
    made.meta = dict(module.meta)
    return made


def _find_ancestors(nodes: Iterable[Node], stop: set[Node]) -> set[Node]:
    found: set[Node] = set()
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            if node not in stop:
                stack.extend(node.all_input_nodes)
    return found
