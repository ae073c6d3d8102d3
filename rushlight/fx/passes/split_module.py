"""split_module: cut a graph into submodules, chosen by a callback, that are called one after another.

In: a GraphModule and a function from node to the number of its partition. Out: a GraphModule that calls `submod_0`,
`submod_1`, ... and holds the placeholders, the attributes and the output.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, map_arg
from rushlight.nn.modules.module import Module

__all__ = ["Partition", "split_module", "split_module_simple"]
_OUTSIDE = ("placeholder", "get_attr", "output")


class Partition:
    """The nodes of one submodule, the values that it takes and gives, and the partitions that it needs."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.submod_name = f"submod_{name}"
        self.node_names: list[str] = []
        self.inputs: dict[str, None] = {}
        self.outputs: dict[str, None] = {}
        self.dependencies: dict[str, None] = {}
        self.dependents: dict[str, None] = {}
        self.graph = Graph()
        self.environment: dict[Node, Node] = {}
        self.targets: dict[str, Any] = {}

    def __repr__(self) -> str:
        return (
            f"name: {self.name},\n nodes: {self.node_names},\n inputs: {self.inputs},\n outputs: {self.outputs},\n "
            f"partitions depended on: {self.dependencies},\n partition dependents: {self.dependents}"
        )


def split_module(
    m: GraphModule, root_m: Module, split_callback: Callable[[Node], int], qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False, keep_original_node_name: bool | None = False,
    keep_original_input_name: bool = True, *, partition_affix: str | None = None, tuple_return: bool = False,
) -> GraphModule:  # fmt: skip
    """Split `m` into submodules: `split_callback(node)` returns the partition number of each node.

    Args:
        root_m: the module that `m` was traced from, whose submodules and attributes the parts share.
        qualname_map: filled with the old dotted name of each module that moved, by its new one.
        keep_original_order: call the partitions in the order of their first nodes, if dependencies allow.
        keep_original_node_name: keep the nodes' names in the parts.
        keep_original_input_name: name the inputs of parts after the values; else `arg_0`, `arg_1`, ...
        partition_affix: part of the names of submodules, `submod_AFFIX_0`.
        tuple_return: let parts with one output return a tuple, too.

    RuntimeError if partitions depend on each other in a cycle.
    """
    splitter = _Splitter(m, root_m, split_callback, partition_affix)
    splitter.keeps_node_names, splitter.keeps_input_names = keep_original_node_name, keep_original_input_name
    splitter.always_tuples = tuple_return
    return splitter.split(keep_original_order, {} if qualname_map is None else qualname_map)


def split_module_simple(m: GraphModule, node_to_partition: dict[str, int], partition_affix: str | None = None) -> GraphModule:
    """Split `m` by a table from names of nodes to partitions."""
    return split_module(m, m, lambda node: node_to_partition[node.name], partition_affix=partition_affix)


class _Splitter:
    keeps_node_names = always_tuples = False
    keeps_input_names = True

    def __init__(self, module: GraphModule, root: Module, callback: Callable[[Node], int], affix: str | None) -> None:
        self.module, self.root = module, root
        self.prefix = f"submod_{affix}_" if affix else "submod_"
        self.nodes = list(module.graph.nodes)
        self.partition_of: dict[Node, Partition] = {}
        self.partitions: dict[str, Partition] = {}
        for node in self.nodes:
            if node.op not in _OUTSIDE:
                self._assign(node, str(callback(node)))
        self.by_name = {node.name: node for node in self.nodes}

    def _assign(self, node: Node, name: str) -> None:
        partition = self.partitions.get(name)
        if partition is None:
            partition = self.partitions[name] = Partition(name)
            partition.submod_name = f"{self.prefix}{name}"
        partition.node_names.append(node.name)
        self.partition_of[node] = partition

    def split(self, keeps_order: bool, names: dict[str, str]) -> GraphModule:
        self._connect()
        ordered = self._sort_topologically(keeps_order)
        for partition in ordered:
            self._fill(partition, names)
        outer, owned = Graph(), {}
        environment: dict[Node, Node] = {}
        attributes = [node for node in self.nodes if node.op == "get_attr"]
        for node in self.nodes:
            if node.op == "placeholder" or (node.op == "get_attr" and not keeps_order):
                environment[node] = outer.node_copy(node)
        for partition in ordered:
            for node in attributes:
                if node.name in partition.inputs and node not in environment:
                    environment[node] = outer.node_copy(node)
            owned[partition.submod_name] = GraphModule(partition.targets, partition.graph)
            self._call(partition, outer, environment)
        for node in attributes:
            owned[node.target] = operator.attrgetter(node.target)(self.module)
            if node not in environment:
                environment[node] = outer.node_copy(node)
        for node in self.nodes:
            if node.op == "output":
                outer.output(map_arg(node.args[0], environment.__getitem__)).meta = dict(node.meta)
        return GraphModule(owned, outer, type(self.module).__name__)

    def _connect(self) -> None:
        """Find the values that cross from one partition to another."""
        for node in self.nodes:
            user = self.partition_of.get(node)
            for used in node.all_input_nodes:
                maker = self.partition_of.get(used)
                if maker is user:
                    continue
                if maker is not None:
                    maker.outputs[used.name] = None
                if user is not None:
                    user.inputs[used.name] = None
                if maker is not None and user is not None:
                    user.dependencies[maker.name] = None
                    maker.dependents[user.name] = None

    def _sort_topologically(self, keeps_order: bool) -> list[Partition]:
        """Return the partitions, each after those that it depends on."""
        waiting = {name: len(partition.dependencies) for name, partition in self.partitions.items()}
        ready = [name for name, count in waiting.items() if not count]
        first = {name: index for index, name in enumerate(self.partitions)}
        ordered = []
        while ready:
            name = min(ready, key=first.__getitem__) if keeps_order else ready[0]
            ready.remove(name)
            ordered.append(self.partitions[name])
            for other in self.partitions[name].dependents:
                waiting[other] -= 1
                if not waiting[other]:
                    ready.append(other)
        if len(ordered) < len(self.partitions):
            circle = [name for name, count in waiting.items() if count]
            raise RuntimeError(f"cycle exists between partitions: {', '.join(circle)}")
        return ordered

    def _fill(self, partition: Partition, names: dict[str, str]) -> None:
        """Write the graph of one submodule."""
        for index, name in enumerate(partition.inputs):
            used = self.by_name[name]
            made = partition.graph.placeholder(name if self.keeps_input_names else f"arg_{index}", type_expr=used.type)
            made.meta = dict(used.meta)
            partition.environment[used] = made
        for name in partition.node_names:
            self._copy(partition, self.by_name[name], names)
        results = tuple(partition.environment[self.by_name[name]] for name in partition.outputs)
        partition.graph.output(results[0] if len(results) == 1 and not self.always_tuples else results)

    def _copy(self, partition: Partition, node: Node, names: dict[str, str]) -> None:
        args, kwargs = map_arg((node.args, node.kwargs), partition.environment.__getitem__)
        target = node.target
        if node.op == "call_module":
            # The parts hold modules as direct attributes, under names without dots.
            target = node.target.replace(".", "_")
            partition.targets[target] = self.root.get_submodule(node.target)
            names[f"{partition.submod_name}.{target}"] = node.target
        name = node.name if self.keeps_node_names else None
        made = partition.graph.create_node(node.op, target, args, kwargs, name, node.type)
        made.meta = dict(node.meta)
        partition.environment[node] = made

    def _call(self, partition: Partition, outer: Graph, environment: dict[Node, Node]) -> None:
        call = outer.call_module(partition.submod_name, tuple(environment[self.by_name[name]] for name in partition.inputs))
        results = [self.by_name[name] for name in partition.outputs]
        if len(results) == 1 and not self.always_tuples:
            environment[results[0]] = call
            call.meta = dict(results[0].meta)
            return
        for index, node in enumerate(results):
            taken = outer.call_function(operator.getitem, (call, index))
            taken.meta = dict(node.meta)
            environment[node] = taken
