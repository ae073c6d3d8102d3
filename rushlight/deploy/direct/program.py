"""Translate a jit graph to C++ statements: dispatch nodes to the parts of the writer, and manage attributes of objects.

In: an inlined graph, and the objects among an example's arguments. Out: statements, once the analysis has reached its fixed
point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rushlight.compiler.scripted.regions import Unsupported
from rushlight.core.tensor import Tensor
from rushlight.deploy.direct import tables
from rushlight.deploy.direct.flow import NotYet
from rushlight.deploy.direct.language import SPECIAL
from rushlight.deploy.direct.tensors import Tensors
from rushlight.deploy.direct.values import PLAIN, Kind, Operand, Plan, Shape, kind_of_type, unboxed
from rushlight.deploy.weights import Weights
from rushlight.jit.ir.graph import Graph, Node, Value
from rushlight.jit.operators.lookup import writes
from rushlight.jit.passes.alias_analysis import AliasDb
from rushlight.jit.runtime.objects import ScriptObject
from rushlight.jit.types import kinds as types

_OF_TENSORS_TOO = frozenset(f"aten::{name}" for name in ("sum", "sort", "eq", "ne", "count"))


@dataclass(eq=False)
class Attribute:
    """An attribute that a run may change: its path, and the C++ variable that holds it."""

    path: tuple[str, ...]
    type: types.Type
    value: object
    variable: str
    is_assigned: bool


class Program(Tensors):
    """Writes a whole graph. `owner` is the object whose method it is, if there is one."""

    def __init__(self, graph: Graph, aliases: AliasDb, owner: ScriptObject | None, plan: Plan, weights: Weights | None):
        super().__init__(plan, weights)
        self.graph, self.owner = graph, owner
        self.aliases = aliases
        self.attributes: dict[tuple[int, str], Attribute] = {}
        self.assigned = {(node.input().type, node["name"]) for node in graph.find_all_nodes("prim::SetAttr")}
        self.changed = self.assigned | _changed_contents(graph, aliases)

    def has_writers(self, value: Value) -> bool:
        """Return whether the program may write to a value. Items of a list or dict count as separate values."""
        return not value.is_constant and is_changed(value, self.aliases)

    def node(self, node: Node) -> None:
        """Write a node."""
        kind = node.kind
        if kind == "prim::Constant":
            return
        if kind == "prim::If":
            self.write_if(node)
        elif kind == "prim::Loop":
            self.write_loop(node)
        elif kind == "prim::GetAttr":
            self._get(node)
        elif kind == "prim::SetAttr":
            self._set(node)
        elif self._is_of_language(node):
            if kind not in ("prim::ListConstruct", "prim::TupleConstruct", "prim::ListUnpack", "prim::TupleUnpack") or any(
                self.has_writers(value) for value in node.outputs
            ):
                self.settle(*node.inputs)
            self.write_language(node)
        else:
            self.write_tensors(node)

    @staticmethod
    def _is_of_language(node: Node) -> bool:
        first = node.input().type if node.inputs else None
        first = first.element if isinstance(first, types.OptionalType) else first
        if isinstance(first, types.TensorType):
            return node.kind in SPECIAL and node.kind not in _OF_TENSORS_TOO
        if node.kind in SPECIAL:
            return True
        if isinstance(first, types.ListType):
            return node.kind in tables.LISTS
        if isinstance(first, types.DictType) or first is types.STRING:
            return node.kind in (tables.DICTS if isinstance(first, types.DictType) else tables.STRINGS)
        return not any(_is_of_tensors(value.type) for value in (*node.inputs, *node.outputs))

    # Attributes

    def _object_at(self, path: tuple[str, ...]) -> ScriptObject:
        found = self.owner
        for name in path:
            found = found.slots[name]
        return found

    def _get(self, node: Node) -> None:
        given, name = self.operand(node.input()), node["name"]
        if given.path is None:
            self._get_slot(node, given, name)
            return
        owner = self._object_at(given.path)
        value = owner.slots[name]
        if isinstance(value, ScriptObject):
            if (owner.type, name) in self.assigned:
                raise Unsupported(f"an assignment to {name!r}, which is an object")
            self.values[node.output] = Operand(node.output.type, PLAIN, path=(*given.path, name))
        elif (owner.type, name) in self.changed:
            attribute = self._find_attribute(given.path, owner, name)
            kind = self.plan.kinds[id(owner), name]
            self.flush()
            self.bind(node.output, attribute.variable, kind)
        else:
            self.values[node.output] = self.constant(value, node.output.type)

    def _get_slot(self, node: Node, given: Operand, name: str) -> None:
        kind = given.type
        if not isinstance(kind, types.ClassType):
            raise Unsupported(f"an attribute of a {kind}, of which any class may be")
        (given,) = self.settle(node.input())
        found = self.plan.kinds.get((kind, name))
        if found is None:
            raise NotYet(f"the attribute {name!r} of {kind}, which nothing assigns")
        part = f"{self.boxed(given)}.as.list->items[{list(kind.attributes).index(name)}]"
        self.bind(node.output, unboxed(part, node.output.type), found)

    def _set(self, node: Node) -> None:
        given, item = self.settle(*node.inputs)
        name = node["name"]
        if given.path is not None:
            owner = self._object_at(given.path)
            attribute = self._find_attribute(given.path, owner, name)
            self.plan.note((id(owner), name), item.kind)
            self.emit(f"{attribute.variable} = {self.spelled(item, attribute.type)};")
            return
        self.plan.note((given.type, name), self._kind_of_attribute(given.type, name, item))
        self.emit(f"{self.boxed(given)}.as.list->items[{list(given.type.attributes).index(name)}] = {self.boxed(item)};")

    def _kind_of_attribute(self, owner: types.ClassType, name: str, item: Operand) -> Kind:
        """Return the kind of a value stored in an attribute, with ints as symbols, because they differ between objects."""
        kind = owner.attributes[name].type
        return item.kind if item.kind != PLAIN else kind_of_type(kind, self.plan, (owner, name))

    def _find_attribute(self, path: tuple[str, ...], owner: ScriptObject, name: str) -> Attribute:
        key = id(owner), name
        found = self.attributes.get(key)
        if found is None:
            kind, value = owner.type.attributes[name].type, owner.slots[name]
            is_assigned = (owner.type, name) in self.assigned or not isinstance(value, Tensor)
            found = Attribute((*path, name), kind, value, self.name("a"), is_assigned)
            self.attributes[key] = found
            self.plan.note(key, self.kind_of(value, kind, key))
        return found

    def kind_of(self, value: object, declared: types.Type, key: object, sizes: Sequence | None = None) -> Kind:
        """Return the kind of an argument or attribute, with numbers as symbols, because they may differ in another run. `sizes`
        are a tensor's."""
        if isinstance(value, Tensor):
            impl = value._impl
            if impl.device.type != "cpu":
                raise Unsupported(f"a tensor on {impl.device}")
            return Kind(Shape(impl.dtype, tuple(impl.sizes if sizes is None else sizes)))
        if isinstance(value, int) and not isinstance(value, bool):
            return Kind(size=self.plan.symbol((key, "int"), value, {value} & {0, 1}))
        if isinstance(value, tuple):
            return Kind(parts=tuple(self.kind_of(each, types.ANY, (key, position)) for position, each in enumerate(value)))
        if isinstance(value, list | dict):
            cell = self.plan.cell((key, "items"))
            for position, each in enumerate(value.values() if isinstance(value, dict) else value):
                self.plan.put(cell, self.kind_of(each, types.ANY, (key, "item")), (key, position))
            if cell.kind is None:
                return kind_of_type(declared, self.plan, key)
            return Kind(items=cell)
        return kind_of_type(declared, self.plan, key)


def is_changed(value: Value, aliases: AliasDb) -> bool:
    """Return whether a program may write to a value: to a tensor's memory, or to a container's items."""
    writers = aliases.writers_of(value)
    if not isinstance(value.type, types.ListType | types.DictType):
        return bool(writers)
    return any(
        isinstance(each.type, types.ListType | types.DictType | types.OptionalType) for node in writers for each in writes(node)
    )


def _changed_contents(graph: Graph, aliases: AliasDb) -> set[tuple[types.Type, str]]:
    """Return the attributes whose contents a graph changes, by class and name."""
    kinds = types.TensorType | types.ListType | types.DictType
    return {
        (node.input().type, node["name"]) for node in graph.find_all_nodes("prim::GetAttr")
        if isinstance(node.output.type, kinds) and aliases.has_writers(node.output)
    }  # fmt: skip


def _is_of_tensors(kind: types.Type) -> bool:
    if isinstance(kind, types.TensorType):
        return True
    return isinstance(kind, types.ListType | types.OptionalType) and _is_of_tensors(kind.element)
