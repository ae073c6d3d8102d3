"""Alias analysis of a method's graph for a known object.

In: a graph and the object. Out: an `AliasDb` that distinguishes the tensors of different attributes.
"""

from __future__ import annotations

from collections.abc import Iterator

from rushlight.core.tensor import Tensor
from rushlight.jit.ir.graph import Graph, Node
from rushlight.jit.passes.alias_analysis import AliasDb
from rushlight.jit.passes.freeze_module import known_objects
from rushlight.jit.runtime.objects import ScriptObject
from rushlight.jit.types.kinds import TensorType


def drop_assignments_of_themselves(graph: Graph) -> None:
    """Remove assignments that store an attribute's own tensor back, as `self.count += 1` does after it has written in place."""
    by_name: dict[tuple, list[Node]] = {}
    for node in graph.find_all_nodes("prim::SetAttr"):
        by_name.setdefault((node.input().type, node["name"]), []).append(node)
    for nodes in by_name.values():
        if all(map(_stores_same_tensor, nodes)):
            for node in nodes:
                node.destroy()


def _stores_same_tensor(node: Node) -> bool:
    """Return whether an assignment stores the attribute's own tensor back, as in-place `self.count += 1` does."""
    value = node.input(1).node
    while value.kind.startswith("aten::") and value.kind.endswith("_") and isinstance(value.input().type, TensorType):
        value = value.input().node
    return value.kind == "prim::GetAttr" and (value.input(), value["name"]) == (node.input(), node["name"])


def written_arguments(graph: Graph, owner: ScriptObject | None) -> set[int]:
    """Return the indices of the arguments whose tensors a graph may write to, if arguments share no memory."""
    aliases = aliases_of(graph, owner, inputs_share=False)
    first = 0 if owner is None else 1
    return {first + index for index, value in enumerate(graph.inputs[first:]) if aliases.has_writers(value)}


def aliases_of(graph: Graph, owner: ScriptObject | None, inputs_share: bool = True) -> AliasDb:
    """Return the alias analysis of a graph. Attributes that the graph assigns, and tensors that are also in a list or dict, may
    alias anything that an object holds; other tensors alias each other only if they do so in the example. `inputs_share` says
    whether arguments may alias each other and what objects hold."""
    objects = {} if owner is None else known_objects(graph, {graph.inputs[0]: owner})
    read = [node for node in graph.find_all_nodes("prim::GetAttr") if node.input() in objects]
    assigned = {(node.input().type, node["name"]) for node in graph.find_all_nodes("prim::SetAttr")}
    values = {node: objects[node.input()].slots[node["name"]] for node in read}
    held = {_memory_key(each) for value in values.values() if not isinstance(value, Tensor) for each in _tensors(value)}

    def attribute(node: Node) -> object | None:
        value = values.get(node)
        if not isinstance(value, Tensor) or (node.input().type, node["name"]) in assigned or _memory_key(value) in held:
            return None
        return _memory_key(value)

    return AliasDb(graph, attribute, inputs_share)


def _memory_key(tensor: Tensor) -> tuple[str, int]:
    return "storage", tensor.untyped_storage().data_ptr() or id(tensor)


def _tensors(value: object) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _tensors(each)
