"""Analyse which values of a captured graph share memory, and how to get from a tensor to its views and back.

In: an aten graph whose nodes carry fake values in `meta["val"]`; fakes that share a storage share memory.
Out: for each written storage its root (the node that owns the memory) and the path from the root to every other node.
Stage: aot, before functionalization rewrites anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rushlight.core.layout import contiguous_format
from rushlight.core.storage import StorageImpl
from rushlight.core.strides import has_internal_overlap, is_non_overlapping_and_dense
from rushlight.core.symbolic import SymInt
from rushlight.core.tensor import Tensor
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.registry import aten


def storage_of(node: object) -> StorageImpl | None:
    """Return the storage of a node's value; None if the value is not a tensor."""
    value = node.meta.get("val") if isinstance(node, Node) else None
    return value._impl.storage if isinstance(value, Tensor) else None


def is_size(node: object) -> bool:
    """Return whether a node's value is a size: an integer that the sizes of the inputs determine."""
    return isinstance(node, Node) and isinstance(node.meta.get("val"), SymInt | int)


def is_write(node: Node) -> bool:
    """Return whether a node calls an operator that writes to one of its arguments."""
    return node.op == "call_function" and isinstance(node.target, OpOverload) and node.target.is_mutable


def written_arguments(node: Node) -> Iterator[tuple[str, Node]]:
    """Yield the arguments that a node writes to, with their names in the schema."""
    for position, argument in enumerate(node.target._schema.arguments):
        given = node.args[position] if position < len(node.args) else node.kwargs.get(argument.name)
        if argument.is_write and isinstance(given, Node):
            yield argument.name, given


def source_of(node: Node) -> Node | None:
    """Return the node whose memory `node` shows: a view's base, or a write's target. None for new memory."""
    if node.op != "call_function" or not isinstance(node.target, OpOverload) or not node.args:
        return None
    source = node.args[0]
    return source if storage_of(source) is not None and storage_of(source) is storage_of(node) else None


def root_of(node: Node) -> Node:
    """Return the node that made a node's memory: the node itself, if it is neither a view nor a write."""
    while (source := source_of(node)) is not None:
        node = source
    return node


def is_alias(node: Node) -> bool:
    """Return whether a node is a view: its value lies in the memory of an argument, and it does not write to that."""
    storage = storage_of(node)
    return storage is not None and not is_write(node) and any(storage_of(used) is storage for used in node.all_input_nodes)


def owner_of(node: Node) -> Node:
    """Return the base of a view, directly or through other views; the node itself if it is no view."""
    while is_alias(node):
        storage = storage_of(node)
        node = next(used for used in node.all_input_nodes if storage_of(used) is storage)
    return node


class WrittenMemory:
    """The storages that a graph writes to and whose roots `includes` accepts, before it is rewritten.

    `root` maps each storage to the node that owns it, `storage` maps nodes to their storages, and `source` maps views to their
    bases. `as_strided` addresses memory directly, so its base is the root; `start` is the offset of its first element from the
    root's first element.
    """

    def __init__(self, graph: Graph, includes: Callable[[Node], bool] = lambda root: True):
        self.writes = [
            node for node in graph.nodes
            if is_write(node) and any(includes(root_of(target)) for _, target in written_arguments(node))
        ]  # fmt: skip
        written = (storage_of(target) for node in self.writes for _, target in written_arguments(node))
        self.nodes: dict[StorageImpl, list[Node]] = {storage: [] for storage in written}
        for node in graph.nodes:
            if storage_of(node) in self.nodes:
                self.nodes[storage_of(node)].append(node)
        self.root = {storage: nodes[0] for storage, nodes in self.nodes.items()}
        self.storage = {node: storage for storage, nodes in self.nodes.items() for node in nodes}
        self.source = {node: source_of(node) for nodes in self.nodes.values() for node in nodes}
        self.start = {
            node: node.meta["val"].storage_offset() - self.root[storage].meta["val"].storage_offset()
            for node, storage in self.storage.items() if node.target is aten("as_strided") and node is not self.root[storage]
        }  # fmt: skip
        self.source |= {node: self.root[self.storage[node]] for node in self.start}

    def obstacle(self) -> str:
        """Return why the writes cannot be made functional; "" if they can."""
        through = {node for write in self.writes for _, target in written_arguments(write) for node in self._path(target)}
        for storage, nodes in self.nodes.items():
            owners = [node for node in nodes if self.source[node] is None]
            if len(owners) > 1:
                return f"{' and '.join(node.name for node in owners)} share memory that is written to"
            value = self.root[storage].meta["val"]
            if has_internal_overlap(value.shape, value.stride()):
                return f"{owners[0].name}, which is written to, has several elements in one place"
            for node in nodes:
                if node in owners or is_write(node):
                    continue
                if not (self._has_inverse(node) if node in through else self._can_be_made_again(node)):
                    return f"{node.name} is a view by {node.target} of memory that is written to"
        return ""

    def _path(self, node: Node | None) -> Iterator[Node]:
        """Yield a node, its base and so on up to the root."""
        while node is not None:
            yield node
            node = self.source[node]

    def _has_inverse(self, view: Node) -> bool:
        """Return whether a new value of a view can be written back to its base."""
        if view not in self.start:
            return view.target in INVERSES
        return self._can_be_made_again(view) and not _overlaps(view.meta["val"])

    def _can_be_made_again(self, view: Node) -> bool:
        """Return whether a view can be applied to new contents. `as_strided` can if it lies within the root and the root has no
        gaps."""
        if view not in self.start:
            return True
        root, value, start = self.root[self.storage[view]].meta["val"], view.meta["val"], self.start[view]
        if not is_non_overlapping_and_dense(root.shape, root.stride()) or start < 0:
            return False
        last = sum(stride * (size - 1) for size, stride in zip(value.shape, value.stride(), strict=True))
        return value.numel() == 0 or start + last < root.numel()


def anchor_views(module: GraphModule) -> None:
    """Make the owner of the memory the base of each `as_strided`, which counts from the start of the memory.

    Requires: a graph with fake values. Guarantees: the same results, even if a view's former base is computed with other
    strides.
    """
    for node in module.graph.nodes:
        if node.op == "call_function" and node.target is aten("as_strided") and "keep_eager" not in module.meta:
            owner = root_of(node.args[0])
            value = node.meta["val"]
            if owner is not node.args[0]:
                node.args = (owner, list(value.shape), list(value.stride()), value.storage_offset())
                node.kwargs = {}


# The inverse of a view: (emit, the view's node, the base's value, the view's new value) -> the base's new value.
# `emit(op, *args)` adds a node.

Emit = Callable[..., Node]


def _write_through_permute(emit: Emit, view: Node, base: Node, new: Node) -> Node:
    order = [dim % len(view.args[1]) for dim in view.args[1]]
    return emit(aten("permute"), new, sorted(range(len(order)), key=order.__getitem__))


def _write_through_select(emit: Emit, view: Node, base: Node, new: Node) -> Node:
    return emit(aten("select_scatter"), base, new, *view.args[1:])


def _write_through_slice(emit: Emit, view: Node, base: Node, new: Node) -> Node:
    return emit(aten("slice_scatter"), base, new, *view.args[1:])


def _overlaps(value: Tensor) -> bool:
    """Return whether elements of a view may overlap: a scatter would then write old values over new ones."""
    reach = 0
    for stride, size in sorted((stride, size) for stride, size in zip(value.stride(), value.shape, strict=True) if size > 1):
        if stride <= reach:
            return True
        reach += stride * (size - 1)
    return False


def _write_through_reshape(emit: Emit, view: Node, base: Node, new: Node) -> Node:
    if not new.meta["val"].is_contiguous():
        new = emit(aten("clone"), new, memory_format=contiguous_format)
    return emit(aten("view"), new, list(base.meta["val"].shape))


INVERSES: dict[OpOverload, Callable[[Emit, Node, Node, Node], Node]] = {
    aten("alias"): lambda emit, view, base, new: new,
    aten("detach"): lambda emit, view, base, new: new,
    aten("_conj"): lambda emit, view, base, new: emit(aten("conj_physical"), new),
    aten("_neg_view"): lambda emit, view, base, new: emit(aten("neg"), new),
    aten("permute"): _write_through_permute,
    aten("select.int"): _write_through_select,
    aten("slice.Tensor"): _write_through_slice,
    aten("view"): _write_through_reshape,
    aten("unsqueeze"): _write_through_reshape,
    aten("squeeze.dims"): _write_through_reshape,
}
