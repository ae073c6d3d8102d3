"""Functionalization: rewrite a graph that writes to memory into one that does not, except for write-backs at its end.

Requires: an aten graph that passes `lint`, with fake values in `meta["val"]`, in which a write is a node whose first result
is the written tensor. Fakes of tensors that share memory share a storage.

Guarantees: the same results, aliases and final contents of inputs and constants. Only these operators write afterwards:
`copy_` to an input or constant, just before the output; and operators without a functional form (random fills, batch
normalisation in training), to a clone that is made for them. If that cannot be guaranteed, the graph is left unchanged,
and `module.meta["keep_eager"]` says why; it must then run node by node.
"""

from __future__ import annotations

from collections.abc import Callable

from rushlight.aot.memory import INVERSES, WrittenMemory, is_write, owner_of, written_arguments
from rushlight.core.dispatch_key import AUTOGRAD_BITS
from rushlight.core.layout import contiguous_format
from rushlight.core.strides import contiguous_strides
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import ExcludeKeys
from rushlight.fx.fake_tensor import FakeTensorMode, needs_values
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, map_arg
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.registry import INPLACE_OF, aten

FUNCTIONAL = {**INPLACE_OF, aten("index_put_"): aten("index_put")}


def _needs_values(node: Node) -> bool:
    return isinstance(node.target, OpOverload) and needs_values(node.target, list(map_arg(node.args, _fake)))


def functionalize(module: GraphModule, includes: Callable[[Node], bool] = lambda root: True) -> None:
    """Rewrite `module` in place; see the module's docstring. Only memory is rewritten
    whose root, the node that made it, `includes` accepts."""
    memory = WrittenMemory(module.graph, includes)
    if not memory.writes:
        return
    reason = memory.obstacle()
    if reason:
        module.meta["keep_eager"] = reason
    else:
        _Functionalizer(module, memory).run()


class _Functionalizer:
    """Walks the nodes in order and keeps, for each written storage, the node that holds its current contents.

    `current` maps a storage to the node with its root's contents, `version` counts its writes. `known` caches, for a node of
    the original graph, the node that has its value as of a version. `renewed` are nodes whose fake values were recomputed.
    New nodes are added before `place`, with the source line of `origin`; `last_write` is each storage's last write.
    """

    def __init__(self, module: GraphModule, memory: WrittenMemory):
        self.graph = module.graph
        self.memory = memory
        self.current = dict(memory.root)
        self.version = dict.fromkeys(memory.root, 0)
        self.known: dict[Node, tuple[int, Node]] = {}
        self.renewed: set[Node] = set()
        self.place: Node | None = None
        self.origin: Node | None = None
        self.last_write: dict[object, Node] = {}
        self.fakes = FakeTensorMode()

    def run(self) -> None:
        """Rewrite the graph."""
        writes = set(self.memory.writes)
        for node in list(self.graph.nodes):
            self.place = self.origin = node
            if node.op == "output":
                self._write_back()
                node.args = map_arg(node.args, self._fresh_value)
            elif node in writes:
                self._write(node)
            elif node.op == "call_function":
                self._redirect(node)
        for node in reversed(self.memory.writes):
            if node in self.memory.storage:
                self.graph.erase_node(node)

    # Reading

    def value(self, node: Node) -> Node:
        """Return the node that holds the current value of `node`."""
        storage = self.memory.storage.get(node)
        if not self.version.get(storage):
            return node
        version, found = self.known.get(node, (-1, node))
        if version != self.version[storage]:
            found = self._view_again(node, self.value)
            self.known[node] = (self.version[storage], found)
        return found

    def _fresh_value(self, node: Node) -> Node:
        """Return the same as `value`, made as a view of the storage's root, so that results share memory as the original ones
        did."""
        if not self.version.get(self.memory.storage.get(node)):
            return node
        self.origin = node
        return self._view_again(node, self._fresh_value)

    def _view_again(self, node: Node, value: Callable[[Node], Node]) -> Node:
        source = self.memory.source[node]
        if source is None:
            return self.current[self.memory.storage[node]]
        if is_write(node):
            return value(source)
        viewed = value(source)
        return self._emit(node.target, *self._arguments(node, viewed), **({} if node in self.memory.start else node.kwargs))

    def _arguments(self, node: Node, source: Node) -> tuple:
        """Return the arguments to apply a view to `source`. `as_strided` gets an offset from the start of the source's
        storage."""
        start = self.memory.start.get(node)
        if start is None:
            return source, *node.args[1:]
        return source, node.args[1], node.args[2], start + source.meta["val"].storage_offset()

    def _redirect(self, node: Node) -> None:
        """Let a node read the current values of its arguments. Its own value is recomputed if its arguments' values changed."""
        before = node.all_input_nodes
        node.args, node.kwargs = map_arg(node.args, self.value), map_arg(node.kwargs, self.value)
        if node.all_input_nodes != before and node in self.memory.start:
            node.args, node.kwargs = self._arguments(node, self.value(self.memory.source[node])), {}
        if node.all_input_nodes != before or not self.renewed.isdisjoint(before):
            self.renewed.add(node)
            if not _needs_values(node):  # its result keeps the symbols of sizes that values decide
                node.meta["val"] = self._calculate(node.target, node.args, node.kwargs)
        storage = self.memory.storage.get(node)
        if storage is not None:
            self.known[node] = (self.version[storage], node)

    # Writing

    def _write(self, node: Node) -> None:
        target = node.args[0]
        args, kwargs = map_arg(node.args, self.value), map_arg(node.kwargs, self.value)
        if node.target is aten("copy_"):
            self._set(target, self._emit_copy(args[1], target))
        elif node.target is aten("fill_.Scalar"):
            value = target.meta["val"]
            self._set(target, self._emit(aten("full"), list(value.shape), args[1], dtype=value.dtype))
        elif node.target in FUNCTIONAL:
            self._set(target, self._cast_like(self._emit(FUNCTIONAL[node.target], *args, **kwargs), target))
        else:
            self._write_to_clones(node)

    def _write_to_clones(self, node: Node) -> None:
        """Let an operator that can only write do so to clones of its targets, and use the clones as the new contents."""
        targets = dict(written_arguments(node))
        clones = {name: self._emit(aten("clone"), self.value(target)) for name, target in targets.items()}
        names = [argument.name for argument in node.target._schema.arguments]
        arguments = dict(zip(names, node.args, strict=False)) | dict(node.kwargs)
        arguments = {name: clones.get(name, map_arg(value, self.value)) for name, value in arguments.items()}
        with self.graph.inserting_before(node):
            made = self.graph.create_node("call_function", node.target, (), {}, name=node.target._schema.name)
        made.args = tuple(arguments.pop(name) for name in names[: len(node.args)])
        made.kwargs = arguments
        made.meta = dict(node.meta)
        if node not in self.memory.storage:
            node.replace_all_uses_with(made)
            self.place = node.next  # the new contents exist only after it
            self.graph.erase_node(node)
        else:
            made.meta["val"] = clones[names[0]].meta["val"]
        for name, target in targets.items():
            self._set(target, made if node in self.memory.storage else clones[name])

    def _set(self, node: Node, new: Node) -> None:
        """Record that `node`, and everything that shares its memory, has the contents of `new` from now on."""
        storage, shown = self.memory.storage[node], node
        changed = new = self._in_layout(new, shown.meta["val"])  # readers of `new` take their layout from it
        while (source := self.memory.source[node]) is not None:
            if not is_write(node):
                changed = self._write_to_base(node, self.value(source), changed)
            node = source
        self.current[storage] = self._in_layout(changed, self.memory.root[storage].meta["val"])
        self.last_write[storage] = self.origin
        self.version[storage] += 1
        self.known[shown] = (self.version[storage], new)

    def _write_to_base(self, view: Node, viewed: Node, new: Node) -> Node:
        """Return the new value of a view's base, after the view got the value `new`."""
        if view.target is not aten("as_strided"):
            return INVERSES[view.target](self._emit, view, viewed, new)
        value = view.meta["val"]
        start = self.memory.start[view]  # a scatter makes new memory, which begins at the root's first element
        return self._emit(aten("as_strided_scatter"), viewed, new, list(value.shape), list(value.stride()), start)

    def _write_back(self) -> None:
        """Copy the new contents of inputs and constants to them; later readers read them from there."""
        for storage, root in self.memory.root.items():
            if self.version[storage] and root.op in ("placeholder", "get_attr"):
                self.origin = self.last_write[storage]
                written = self._emit(aten("copy_"), root, self.current[storage])
                written.meta["val"] = root.meta["val"]
                self.current[storage] = root
                self.version[storage] += 1

    # Nodes

    def _emit(self, op: OpOverload, *args, **kwargs) -> Node:
        """Add a node before the current one, and compute its fake value."""
        with self.graph.inserting_before(self.place):
            made = self.graph.create_node("call_function", op, args, kwargs, name=op._schema.name)
        made.meta = dict(self.origin.meta, val=self._calculate(op, args, kwargs))
        return made

    def _calculate(self, target: Callable, args: tuple, kwargs: dict) -> object:
        """Return the fake value of a call. Autograd is off: what a joint graph writes to may require gradients."""
        with ExcludeKeys(AUTOGRAD_BITS), self.fakes:
            return target(*map_arg(args, _fake), **map_arg(kwargs, _fake))

    def _emit_copy(self, source: Node, target: Node) -> Node:
        """Copy `source` in the target's shape and dtype."""
        value = target.meta["val"]
        if source.meta["val"].shape != value.shape:
            source = self._emit(aten("expand"), source, list(value.shape))
        if self._may_be_contents(source, target):
            return source
        return self._emit(aten("_to_copy"), source, dtype=value.dtype, memory_format=contiguous_format)

    def _may_be_contents(self, source: Node, target: Node) -> bool:
        """Return whether a value can become the contents of an input or constant without a copy: no other value owns its
        memory."""
        made, value = source.meta["val"], target.meta["val"]
        external = self.memory.root[self.memory.storage[target]].op in ("placeholder", "get_attr")
        alike = made.dtype is value.dtype and made.is_contiguous()
        return external and alike and owner_of(source).op == "call_function"

    def _cast_like(self, made: Node, target: Node) -> Node:
        kind = target.meta["val"].dtype
        return made if made.meta["val"].dtype is kind else self._emit(aten("_to_copy"), made, dtype=kind)

    def _in_layout(self, node: Node, wanted: Tensor) -> Node:
        """Return `node` with its dimensions in the same memory order as `wanted`, so that the same views can be made of it."""
        value = node.meta["val"]
        order = sorted(range(wanted.dim()), key=lambda dim: (-wanted.stride(dim), _is_one(wanted.shape[dim]), dim))
        moved = value.permute(order)
        if not moved.is_contiguous():
            return self._apply_permuted(
                order, node, lambda moved: self._emit(aten("clone"), moved, memory_format=contiguous_format)
            )
        if _has_odd_strides(value, wanted) and _has_odd_strides(moved):
            return self._apply_permuted(
                order, node, lambda moved: self._emit(aten("view"), moved, list(moved.meta["val"].shape))
            )
        return node

    def _apply_permuted(self, order: list[int], node: Node, make: Callable[[Node], Node]) -> Node:
        """Permute the dimensions of `node` to `order`, apply `make`, and permute them back."""
        if order == sorted(order):
            return make(node)
        made = make(self._emit(aten("permute"), node, order))
        return self._emit(aten("permute"), made, sorted(range(len(order)), key=order.__getitem__))


def _is_one(size: object) -> bool:
    """Return whether a size is known to be 1."""
    return type(size) is int and size == 1


def _has_odd_strides(value: Tensor, wanted: Tensor | None = None) -> bool:
    """Return whether dimensions of size 1 have other strides than in `wanted`, or than in a new tensor if that is None.

    The layout of an operator's result may depend on these strides. Only strides that are known are compared.
    """
    strides = contiguous_strides(tuple(value.shape)) if wanted is None else wanted.stride()
    rows = zip(value.shape, value.stride(), strides, strict=True)
    return any(have != want for size, have, want in rows if type(size) is type(have) is type(want) is int and size == 1)


def _fake(node: Node) -> object:
    return node.meta["val"]
