"""FreezeModule: turn attributes that a method reads and nothing changes into constants of its graph.

Requires: SSA, inlined; the graph's first input is the frozen module. Guarantees: `prim::GetAttr` is left only for attributes
that are assigned, written to, preserved, or unable to be constants; branches that the attributes decide are gone. The graph is
valid only for that module in its current state.
"""

from __future__ import annotations

from collections.abc import Iterable

from rushlight.core.tensor import Tensor
from rushlight.jit.constants import constant_type
from rushlight.jit.ir.graph import Graph, Node, Value
from rushlight.jit.passes.alias_analysis import AliasDb
from rushlight.jit.passes.constant_pooling import constant_pooling
from rushlight.jit.passes.constant_propagation import constant_propagation
from rushlight.jit.passes.dead_code_elimination import eliminate_dead_code
from rushlight.jit.passes.lower_tuples import lower_simple_tuples
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.passes.shape_analysis import type_of_tensor
from rushlight.jit.runtime.objects import ExtensionObject, ScriptObject
from rushlight.jit.types.kinds import OptionalType, Type

_LOG = PassLog(__file__)


@graph_pass("FreezeModule")
def freeze_graph(graph: Graph, owner: ScriptObject, keeps: Iterable[str] = ()) -> None:
    """Fold the attributes of `owner` and its submodules into a method's graph. `keeps` lists attributes to preserve, dotted
    inside submodules."""
    parts = _graph_and_forks(graph, {graph.inputs[0]: owner})
    kept = _objects_and_names(owner, keeps).union(*(_assigned_attributes(*part) for part in parts))
    for part in parts:
        _Folder(*part, kept, with_mutable=False).run()
        constant_propagation(part[0])
        eliminate_dead_code(part[0])
    if len(parts) > 1:  # a fork may read what the graph writes, and vice versa
        kept = kept.union(*(_Folder(*part, kept, with_mutable=True).written() for part in parts))
    for part in parts:
        _Folder(*part, kept, with_mutable=True).run()
    for fork in graph.find_all_nodes("prim::fork"):
        _drop_unread_inputs(fork)
    for part, _ in parts:
        constant_propagation(part)
        lower_simple_tuples(part)
        eliminate_dead_code(part)
        constant_pooling(part)


Objects = dict[Value, ScriptObject]


def _graph_and_forks(graph: Graph, roots: Objects) -> list[tuple[Graph, Objects]]:
    """Return a graph and the bodies of its forks, which become its own, each with the objects of its inputs."""
    found = [(graph, roots)]
    objects = known_objects(graph, roots)
    for node in graph.find_all_nodes("prim::fork"):
        body = node["Subgraph"].copy()
        node.set("Subgraph", body)
        pairs = zip(body.inputs, node.inputs, strict=True)
        found += _graph_and_forks(body, {inside: objects[value] for inside, value in pairs if value in objects})
    return found


def _drop_unread_inputs(fork: Node) -> None:
    body: Graph = fork["Subgraph"]
    for inner in body.find_all_nodes("prim::fork"):
        _drop_unread_inputs(inner)
    for index in reversed(range(fork.input_count)):
        if not body.inputs[index].uses:
            body.block.erase_input(index)
            fork.remove_input(index)


def _assigned_attributes(graph: Graph, roots: Objects) -> set[tuple[int, str]]:
    """Return the attributes that a graph assigns, as object identities and names."""
    objects = known_objects(graph, roots)
    nodes = [node for node in graph.find_all_nodes("prim::SetAttr") if node.input() in objects]
    return {(id(objects[node.input()]), node["name"]) for node in nodes}


def _objects_and_names(owner: ScriptObject, names: Iterable[str]) -> set[tuple[int, str]]:
    found = set()
    for name in names:
        *path, last = name.split(".")
        target: object = owner
        for step in path:
            target = target.slots[step]
        if isinstance(target, ScriptObject):
            found.add((id(target), last))
    return found


def known_objects(graph: Graph, roots: Objects) -> Objects:
    """Return the objects that values are known to be: the roots, and those reached from them by attributes."""
    known = dict(roots)
    for node in graph.all_nodes():
        if node.kind == "prim::GetAttr" and node.input() in known:
            found = known[node.input()].slots[node["name"]]
            # Extension objects (such as packed weights) become constants.
            if isinstance(found, ScriptObject) and not isinstance(found, ExtensionObject):
                known[node.output] = found
    return known


class _Folder:
    """Replaces attributes by constants: first numbers and strings, which decide branches, then mutable ones."""

    def __init__(self, graph: Graph, roots: Objects, kept: set[tuple], with_mutable: bool):
        self.graph = graph
        self.kept = kept
        self.objects = known_objects(graph, roots)
        self.paths: dict[Value, str] = dict.fromkeys(roots, "self")
        self.aliases = AliasDb(graph, self._memory_of_attribute) if with_mutable else None
        self.made: dict[tuple[int, str], Value] = {}

    def _memory_of_attribute(self, node: Node) -> object | None:
        """Return the identity of an attribute's memory: a tensor's storage."""
        owner = self.objects.get(node.input())
        value = None if owner is None else owner.slots[node["name"]]
        if value is None or isinstance(value, ScriptObject):
            return None
        if isinstance(value, Tensor):
            return "storage", value.untyped_storage().data_ptr() or id(value)
        return "attribute", id(value)

    def written(self) -> set[tuple]:
        """Return the memory of attributes that the graph writes to."""
        nodes = [node for node in self.graph.find_all_nodes("prim::GetAttr") if node.input() in self.objects]
        return {self._memory_of_attribute(node) for node in nodes if self.aliases.has_writers(node.output)} - {None}

    def run(self) -> None:
        """Fold everything possible."""
        for node in list(self.graph.all_nodes()):
            if node.kind != "prim::GetAttr" or node.input() not in self.objects:
                continue
            path = f"{self.paths.get(node.input(), 'self')}.{node['name']}"
            self.paths[node.output] = path
            owner = self.objects[node.input()]
            places = {(id(owner), node["name"]), self._memory_of_attribute(node)}
            if node.output in self.objects or not self.kept.isdisjoint(places):
                continue
            self._fold(node, owner, path)

    def _fold(self, node: Node, owner: ScriptObject, path: str) -> None:
        value = owner.slots[node["name"]]
        kind = _type_of(value, node.output.type)
        if kind is None or not self._may_fold(node, value) or not _LOG.permits("{} is the constant {}", path, kind):
            return
        key = (id(owner), node["name"])
        made = self.made.get(key)
        if made is None:
            made = self.made[key] = self._constant(value, kind, path)
        node.output.replace_all_uses_with(made)
        node.destroy()

    def _may_fold(self, node: Node, value: object) -> bool:
        if isinstance(value, int | float | str | complex) or value is None:
            return True
        return self.aliases is not None and not self.aliases.has_writers(node.output)

    def _constant(self, value: object, kind: Type, path: str) -> Value:
        node = self.graph.block.prepend(self.graph.create("prim::Constant"))
        if value is not None:
            node.set("value", value.detach() if isinstance(value, Tensor) else value)
        node.output.debug_name = path
        return node.output.set_type(kind)


def _type_of(value: object, declared: Type) -> Type | None:
    if isinstance(value, Tensor):
        return type_of_tensor(value, with_grad=False)
    if isinstance(value, list | dict | tuple) and not value:
        return declared
    found = constant_type(value)
    return declared if found is not None and value is not None and not isinstance(declared, OptionalType) else found
