"""Turn attributes that scripted code assigns into values: the first value becomes an input, the last an output.


In: an inlined graph, which is changed, and arguments. Out: the attributes, each of which is one more output of the graph.
Requires SSA. Guarantees: no `prim::SetAttr` is left; an assigned attribute is read by one `prim::GetAttr`, at the beginning.
"""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.compiler.scripted.plan import Source
from rushlight.compiler.scripted.regions import Unsupported
from rushlight.jit.emit.control_flow import SSAConverter
from rushlight.jit.ir.graph import Graph, Node, Value
from rushlight.jit.runtime.objects import ScriptObject


def lift_state(graph: Graph, arguments: Sequence[object]) -> list[Source]:
    """Make assigned attributes outputs. Unsupported if the object whose attribute is assigned is unknown."""
    owners = _Owners(graph, arguments)
    assignments = graph.find_all_nodes("prim::SetAttr")
    if not assignments:
        return []
    assigned = dict.fromkeys(owners.key(node) for node in assignments)
    reads = [node for node in graph.find_all_nodes("prim::GetAttr") if owners.key(node) in assigned]
    kinds = {owners.key(node): _declared_type(node, owners) for node in assignments}
    sources = [owners.source(key) for key in assigned]
    for key in assigned:
        _store_first(graph, owners, key, kinds[key])
    for node in reads:
        load = graph.create("prim::Load").set("name", _variable(owners.key(node))).insert_before(node)
        node.output.replace_all_uses_with(load.output.set_type(node.output.type))
        node.destroy()
    for node in assignments:
        graph.create("prim::Store", [node.input(1)], 0).set("name", _variable(owners.key(node))).set(
            "type", kinds[owners.key(node)]).insert_before(node)  # fmt: skip
        node.destroy()
    for key in assigned:
        load = graph.block.append(graph.create("prim::Load").set("name", _variable(key)))
        graph.register_output(load.output.set_type(kinds[key]))
    SSAConverter(graph).run()
    return sources


Key = tuple[int, str]
"""The identity of an object, and the name of its attribute."""


class _Owners:
    """Knows the object of each value of a graph, and how to reach it."""

    def __init__(self, graph: Graph, arguments: Sequence[object]):
        self.objects: dict[Value, ScriptObject] = {}
        self.sources: dict[int, Source] = {}
        for index, (value, argument) in enumerate(zip(graph.inputs, arguments, strict=True)):
            self._note_owner(value, argument, Source(index, ()))
        for node in graph.all_nodes():
            if node.kind == "prim::GetAttr" and node.input() in self.objects:
                owner = self.objects[node.input()]
                source = self.sources[id(owner)]
                self._note_owner(node.output, owner.slots[node["name"]], Source(source.argument, (*source.path, node["name"])))

    def _note_owner(self, value: Value, found: object, source: Source) -> None:
        if isinstance(found, ScriptObject):
            self.objects[value] = found
            self.sources.setdefault(id(found), source)

    def key(self, node: Node) -> Key | None:
        """Return the attribute that a node reads or assigns; None if the code itself makes the object."""
        owner = self.objects.get(node.input())
        if owner is None and node.kind == "prim::SetAttr":
            raise Unsupported("an assignment to an object that the code makes or chooses")
        return None if owner is None else (id(owner), node["name"])

    def source(self, key: Key) -> Source:
        """Return where an attribute is found."""
        owner = self.sources[key[0]]
        return Source(owner.argument, (*owner.path, key[1]))


def _declared_type(node: Node, owners: _Owners):
    return owners.objects[node.input()].type.attributes[node["name"]].type


def _variable(key: Key) -> str:
    return f"{key[1]}.{key[0]}"


def _store_first(graph: Graph, owners: _Owners, key: Key, kind) -> None:
    """Read an attribute at the beginning of the graph, and store it in its variable."""
    source = owners.source(key)
    with graph.inserting(at_start_of=graph.block):
        value = graph.inputs[source.argument]
        for depth, name in enumerate(source.path):
            node = graph.insert("prim::GetAttr", [value]).set("name", name)
            is_last = depth == len(source.path) - 1
            node.output.set_type(kind if is_last else value.type.attributes[name].type)
            value = node.output
        graph.insert("prim::Store", [value], 0).set("name", _variable(key)).set("type", kind)
