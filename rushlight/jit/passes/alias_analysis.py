"""AliasDb: which values may share memory, and which may be seen from outside.

Requires: SSA. Values of mutable types (tensors, lists, dicts, objects) fall into sets: two values of different sets never share
memory. A value joins the set of what it may view, contain or be contained in; the graph's inputs, objects' attributes and
what an
unknown operator touches are one set, the wildcard.
"""

from __future__ import annotations

from collections.abc import Iterable

from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.operators.lookup import operator_of
from rushlight.jit.types.kinds import (
    ANY,
    ClassType,
    DictType,
    FutureType,
    InterfaceType,
    ListType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
    UnionType,
)

_CONTAINERS = frozenset(("prim::ListConstruct", "prim::TupleConstruct", "prim::DictConstruct", "prim::ListUnpack",
                         "prim::TupleUnpack", "prim::TupleIndex", "prim::TupleSlice", "prim::unchecked_cast",
                         "prim::unchecked_unwrap_optional",
                         "prim::IfThenElse", "prim::TypeCheck", "prim::RequiresGradCheck", "prim::profile"))  # fmt: skip
_FRESH = frozenset(("prim::Constant", "prim::Uninitialized", "prim::CreateObject", "prim::AutogradZero", "prim::isinstance"))


def is_mutable(kind: Type) -> bool:
    """Whether values of a type can be written to."""
    if isinstance(kind, TensorType | ListType | DictType | ClassType | InterfaceType | FutureType) or kind is ANY:
        return True
    if isinstance(kind, TupleType | OptionalType | UnionType):
        return any(map(is_mutable, kind.contained()))
    return False


class AliasDb:
    """The sets of one graph, as it was when this was made."""

    def __init__(self, graph: Graph):
        self._parent: dict[object, object] = {}
        self._members: dict[object, list[Value]] = {}
        self._wildcard = object()
        for value in graph.inputs:
            self._join(value, self._wildcard)
        self._block(graph.block)
        for value in self._parent:
            if isinstance(value, Value):
                self._members.setdefault(self._find(value), []).append(value)

    # Sets

    def _find(self, item: object) -> object:
        parent = self._parent.setdefault(item, item)
        while parent is not self._parent.setdefault(parent, parent):
            self._parent[item] = self._parent[parent]
            item, parent = parent, self._parent[parent]
        return parent

    def _join(self, first: object, second: object) -> None:
        for item in (first, second):
            if isinstance(item, Value) and not is_mutable(item.type):
                return
        self._parent[self._find(first)] = self._find(second)

    def may_alias(self, first: Value, second: Value) -> bool:
        """Whether two values may share memory, or one hold the other."""
        if not is_mutable(first.type) or not is_mutable(second.type):
            return False
        return self._find(first) is self._find(second)

    def aliases_of(self, value: Value) -> list[Value]:
        """All values that may share memory with one."""
        return self._members.get(self._find(value), [value])

    def escapes(self, value: Value) -> bool:
        """Whether a value may be seen from outside the graph: an input, an attribute, or handed to what is unknown."""
        return is_mutable(value.type) and self._find(value) is self._find(self._wildcard)

    def may_be_seen(self, value: Value, live: set[Value]) -> bool:
        """Whether a write to a value may be noticed, if only `live` values are read."""
        return self.escapes(value) or any(each in live for each in self.aliases_of(value))

    # The graph

    def _block(self, block: Block) -> None:
        for node in block.nodes:
            self._node(node)

    def _node(self, node: Node) -> None:
        for block in node.blocks:
            self._block(block)
        if node.kind == "prim::If":
            for block in node.blocks:
                self._join_pairs(node.outputs, block.outputs)
        elif node.kind == "prim::Loop":
            body = node.blocks[0]
            self._join_pairs(body.inputs[1:], node.inputs[2:])
            self._join_pairs(body.outputs[1:], body.inputs[1:])
            self._join_pairs(node.outputs, body.outputs[1:])
        elif node.kind in _CONTAINERS:
            self._join_all([*node.inputs, *node.outputs])
        elif node.kind not in _FRESH:
            self._operator(node)

    def _join_pairs(self, first: Iterable[Value], second: Iterable[Value]) -> None:
        for own, other in zip(first, second, strict=True):
            self._join(own, other)

    def _join_all(self, values: list[Value]) -> None:
        mutable = [value for value in values if is_mutable(value.type)]
        for value in mutable[1:]:
            self._join(mutable[0], value)

    def _operator(self, node: Node) -> None:
        operator = operator_of(node)
        if operator is None or operator.schema.is_vararg and not node.kind.startswith(("aten::format", "prim::Print")):
            for value in (*node.inputs, *node.outputs):
                self._join(value, self._wildcard)
            return
        schema = operator.schema
        named: dict[str, list[Value]] = {}
        for argument, value in zip(schema.arguments, node.inputs, strict=False):
            self._note(named, argument.alias, value)
        for result, value in zip(schema.returns, node.outputs, strict=False):
            if result.alias:
                self._note(named, result.alias, value)
            elif operator.op is not None and operator.op.is_composite:
                self._join_all([value, *node.inputs])  # a composite may hand back a view: reshape, contiguous
        for values in named.values():
            self._join_all(values)
        if "*" in named or any(is_mutable(value.type) and not isinstance(value.type, TensorType) for value in node.outputs):
            self._join_all([*node.inputs, *node.outputs])

    def _note(self, named: dict[str, list[Value]], alias: str, value: Value) -> None:
        for part in alias.replace("->", "|").split("|"):
            name = part.strip().rstrip("!")
            if name:
                named.setdefault(name, []).append(value)
