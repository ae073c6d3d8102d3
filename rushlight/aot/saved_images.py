"""Choose the memory format of images that are saved for the backward.

In: a forward and a backward graph of fixed sizes. Out: the same graphs, with the results of convolutions saved channels-last.
Graphs are row-major otherwise, as eager's values are; a backend whose convolutions read and write channels-last then needs no
conversions. Stage: aot, between the partitioner and such a backend.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping

from rushlight.aot.memory import is_size, storage_of
from rushlight.aot.partition import Partition
from rushlight.aot.recompute import is_fusible, name_of
from rushlight.core.dispatch_key import AUTOGRAD_BITS
from rushlight.core.layout import channels_last, contiguous_format, memory_format
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import ExcludeKeys
from rushlight.fx.fake_tensor import FakeTensorMode
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, map_arg
from rushlight.ops.registry import aten

CONTIGUOUS = aten("contiguous")


def keep_channels_last(parts: Partition, results: int) -> None:
    """Let the forward return saved images channels-last, and the backward take them so. `results` is the number of forward
    outputs that the program returns. The strides of gradients don't change."""
    made = parts.forward.graph.output_node().args[0]
    shared = [storage_of(node) for node in made]
    images = _Images()
    chosen = {}
    placeholders = [node for node in parts.backward.graph.nodes if node.op == "placeholder"]
    if any(map(is_size, placeholders)):
        return
    for saved, placeholder in zip(parts.saved, placeholders, strict=False):  # the placeholders of tangents follow
        node = made[results + saved.position] if saved.kind == "extra" else None
        if node is not None and images.is_channels_last(node) and shared.count(storage_of(node)) == 1:
            chosen[node] = placeholder
    with FakeTensorMode(), ExcludeKeys(AUTOGRAD_BITS):
        values = {node: CONTIGUOUS(node.meta["val"], memory_format=channels_last) for node in chosen}
        changed = _values_after(parts.backward, {placeholder: values[node] for node, placeholder in chosen.items()})
    if not changed:
        return
    gradients = [node for node in parts.backward.graph.output_node().args[0] if node in changed]
    before = {node: node.meta["val"] for node in gradients}
    moved = {node: value for node, value in before.items() if not _have_same_strides(changed[node], value)}
    for node, value in changed.items():
        node.meta["val"] = value
    _return_laid_out(parts.backward, moved, contiguous_format)
    _return_laid_out(parts.forward, values, channels_last)


def _return_laid_out(module: GraphModule, values: Mapping[Node, Tensor], order: memory_format) -> None:
    """Let a graph return nodes in a memory format; `values` are their fake values in that format."""
    graph, output = module.graph, module.graph.output_node()
    placed = {}
    with graph.inserting_before(output):
        for node, value in values.items():
            made = graph.create_node("call_function", CONTIGUOUS, (node,), {"memory_format": order}, f"{node.name}_laid_out")
            made.meta = dict(node.meta, val=value)
            placed[node] = made
    output.args = (tuple(placed.get(node, node) for node in output.args[0]),)
    module.recompile()


def _have_same_strides(a: Tensor, b: Tensor) -> bool:
    return a.stride() == b.stride()


class _Images:
    """Finds the values of a graph that native convolutions leave channels-last: their results, and values computed from these
    by

    elementwise operators or pooling.
    """

    def __init__(self) -> None:
        self._known: dict[Node, bool] = {}

    def is_channels_last(self, node: Node) -> bool:
        """Return whether a node's value is an image that is row-major in eager, but channels-last in native code."""
        found = self._known.get(node)
        if found is None:
            found = self._known[node] = _is_image(node.meta.get("val")) and self._is_made_channels_last(node)
        return found

    def _is_made_channels_last(self, node: Node) -> bool:
        if node.op != "call_function":
            return False
        if name_of(node) == "convolution":
            weight = node.args[1].meta["val"]
            return not _argument(node, "transposed") and 1 in (_argument(node, "groups"), weight.size(1))
        if node.target is operator.getitem:
            pooled = node.args[0]
            return name_of(pooled) == "max_pool2d_with_indices" and self.is_channels_last(pooled.args[0])
        sizes = node.meta["val"].shape
        return is_fusible(node) and any(
            used.meta["val"].shape == sizes and self.is_channels_last(used) for used in node.all_input_nodes
            if isinstance(used.meta.get("val"), Tensor)
        )  # fmt: skip


def _is_image(value: object) -> bool:
    if not isinstance(value, Tensor) or value.dim() != 4 or not all(type(size) is int for size in value.shape):
        return False
    _, channels, height, width = value.shape
    return value.numel() > 0 and channels > 1 and height * width > 1 and value.is_contiguous()


def _argument(node: Node, name: str) -> object:
    return node.args[node.target._schema.positions[name]]


def _values_after(backward: GraphModule, given: Mapping[Node, Tensor]) -> dict[Node, object]:
    """Compute the fake values of a backward's nodes after some placeholders got others.

    Return nothing if an operator rejects them, or if they would change the strides of a gradient that was not row-major.
    """
    values: dict[Node, object] = dict(given)
    for node in backward.graph.nodes:
        if node.op != "call_function" or not any(used in values for used in node.all_input_nodes):
            continue
        args, kwargs = map_arg((node.args, node.kwargs), lambda used: values.get(used, used.meta.get("val")))
        try:
            values[node] = node.target(*args, **kwargs)
        except RuntimeError:  # a view that another memory format does not allow
            return {}
    gradients = [node for node in backward.graph.output_node().args[0] if node in values]
    kept = all(node.meta["val"].is_contiguous() or _have_same_strides(values[node], node.meta["val"]) for node in gradients)
    return values if kept else {}
