"""The devices of a graph's nodes: which part of a graph runs on a GPU, which on the CPU.

In: a graph whose nodes have fake values. Out: predicates over its nodes. A CPU tensor without dimensions that is made of
numbers belongs to whichever device reads it. Stage: inductor, before a graph is split. """

from __future__ import annotations

from collections.abc import Iterator

from rushlight.core.device import CPU, device
from rushlight.core.pytree import tree_flatten
from rushlight.core.tensor import Tensor
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node


def gpu_of(module: GraphModule) -> device | None:
    """Return the first GPU on which a graph has tensors; None for a graph of the CPU."""
    for node in module.graph.nodes:
        for tensor in _values(node):
            if tensor._impl.device.type == "cuda":
                return tensor._impl.device
    return None


def _values(node: Node) -> Iterator[Tensor]:
    value = node.meta.get("val")
    return iter(()) if value is None else (leaf for leaf in tree_flatten(value)[0] if isinstance(leaf, Tensor))


class Places:
    """Tells which nodes of a graph run on a GPU."""

    def __init__(self, module: GraphModule, gpu: device):
        self._gpu = gpu
        results = set(module.graph.output_node().all_input_nodes)
        self._free: set[Node] = set()
        for node in module.graph.nodes:
            if node.op == "call_function" and node not in results and self._is_number(node):
                self._free.add(node)

    def _is_number(self, node: Node) -> bool:
        """Return whether a node makes CPU tensors without dimensions, of numbers and other such tensors alone."""
        made = list(_values(node))
        return bool(made) and all(tensor._impl.device == CPU and not tensor._impl.sizes for tensor in made) and all(
            given in self._free for given in node.all_input_nodes if any(True for _ in _values(given))
        )  # fmt: skip

    def on_gpu(self, node: Node) -> bool:
        """Return whether all tensors of a node are on the GPU, apart from CPU tensors without dimensions."""
        if node in self._free:
            return True
        made = list(_values(node))
        given = [tensor for each in node.all_input_nodes for tensor in _values(each)]
        return all(tensor._impl.device == self._gpu for tensor in made) and all(
            tensor._impl.device == self._gpu or (tensor._impl.device == CPU and not tensor._impl.sizes) for tensor in given
        )

    def on_cpu(self, node: Node) -> bool:
        """Return whether all tensors of a node are on the CPU."""
        near = [*_values(node), *(tensor for each in node.all_input_nodes for tensor in _values(each))]
        return node not in self._free and bool(near) and all(tensor._impl.device == CPU for tensor in near)

    def has_cpu_nodes(self, module: GraphModule) -> bool:
        """Return whether a part of a graph runs on the CPU."""
        return any(node.op == "call_function" and self.on_cpu(node) for node in module.graph.nodes)
