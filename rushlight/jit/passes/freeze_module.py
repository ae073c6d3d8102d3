"""FreezeModule: the attributes that a method reads, and nothing changes, become constants of its graph.

Requires: SSA, inlined; the graph's first input is the module that is frozen. Guarantees: no `prim::GetAttr` is left but of
attributes that are assigned, written to, asked to be kept, or no constants; branches that their values decide are gone. The
graph is true for that module alone, as it is now.
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
from rushlight.jit.runtime.objects import ScriptObject
from rushlight.jit.types.kinds import OptionalType, Type

_LOG = PassLog(__file__)


@graph_pass("FreezeModule")
def freeze_graph(graph: Graph, owner: ScriptObject, keeps: Iterable[str] = ()) -> None:
    """Fold the attributes of `owner` and its submodules into a method's graph. `keeps` names attributes, dotted inside
    submodules, that stay."""
    assigned = assigned_attributes([graph], [owner])
    kept = _objects_and_names(owner, keeps)
    _Folder(graph, owner, assigned | kept, with_mutable=False).run()
    constant_propagation(graph)
    eliminate_dead_code(graph)
    _Folder(graph, owner, assigned | kept, with_mutable=True).run()
    constant_propagation(graph)
    lower_simple_tuples(graph)
    eliminate_dead_code(graph)
    constant_pooling(graph)


def assigned_attributes(graphs: Iterable[Graph], owners: Iterable[ScriptObject]) -> set[tuple[int, str]]:
    """The attributes that graphs assign, as objects' identities and names; each graph is a method of its owner."""
    found = set()
    for graph, owner in zip(graphs, owners, strict=True):
        objects = _known_objects(graph, owner)
        for node in graph.find_all_nodes("prim::SetAttr"):
            target = objects.get(node.input())
            if target is not None:
                found.add((id(target), node["name"]))
    return found


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


def _known_objects(graph: Graph, owner: ScriptObject) -> dict[Value, ScriptObject]:
    """The objects that values are known to be: the owner, and what is reached from it by attributes."""
    known: dict[Value, ScriptObject] = {graph.inputs[0]: owner}
    for node in graph.all_nodes():
        if node.kind == "prim::GetAttr" and node.input() in known:
            found = known[node.input()].slots[node["name"]]
            if isinstance(found, ScriptObject):
                known[node.output] = found
    return known


class _Folder:
    """Replaces attributes by constants: numbers and strings at first, which decide branches, then what can be written to."""

    def __init__(self, graph: Graph, owner: ScriptObject, kept: set[tuple[int, str]], with_mutable: bool):
        self.graph = graph
        self.kept = kept
        self.objects = _known_objects(graph, owner)
        self.paths: dict[Value, str] = {graph.inputs[0]: "self"}
        self.aliases = AliasDb(graph, self._attribute) if with_mutable else None
        self.made: dict[tuple[int, str], Value] = {}

    def _attribute(self, node: Node) -> object | None:
        """What tells the memory of an attribute from that of others: a tensor's storage."""
        owner = self.objects.get(node.input())
        value = None if owner is None else owner.slots[node["name"]]
        if value is None or isinstance(value, ScriptObject):
            return None
        if isinstance(value, Tensor):
            return "storage", value.untyped_storage().data_ptr() or id(value)
        return "attribute", id(value)

    def run(self) -> None:
        """Fold what can be folded."""
        for node in list(self.graph.all_nodes()):
            if node.kind != "prim::GetAttr" or node.input() not in self.objects:
                continue
            path = f"{self.paths.get(node.input(), 'self')}.{node['name']}"
            self.paths[node.output] = path
            owner = self.objects[node.input()]
            if node.output in self.objects or (id(owner), node["name"]) in self.kept:
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
