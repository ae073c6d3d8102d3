"""AliasDb: which values may alias, what containers hold, and who writes. Used by all passes that move or drop nodes.

Requires: SSA. Values of mutable types (tensors, lists, dicts, objects) fall into sets: two values of different sets never share
memory. Each set may have a set of contents, which its containers may hold. Schemas' alias annotations say which results are
views and what is stored in containers. The graph's inputs, objects' attributes and everything an unknown operator touches form
one set, the wildcard, which contains itself.

Sets only grow (Steensgaard, "Points-to Analysis in Almost Linear Time", POPL 1996), so answers are conservative, not exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.operators.lookup import operator_of
from rushlight.jit.operators.registry import Operator
from rushlight.jit.schema import Argument
from rushlight.jit.types.kinds import (
    ANY,
    AwaitType,
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
    VarType,
)

_CONSTRUCTS = frozenset(("prim::ListConstruct", "prim::TupleConstruct", "prim::DictConstruct"))
_UNPACKS = frozenset(("prim::ListUnpack", "prim::TupleUnpack", "prim::TupleIndex", "aten::unbind_list"))
_SAME = frozenset(("prim::unchecked_cast", "prim::unchecked_unwrap_optional", "aten::_unwrap_optional", "prim::profile",
                   "prim::TypeCheck", "prim::RequiresGradCheck", "prim::IfThenElse", "prim::TupleSlice", "prim::AutogradAdd",
                   "prim::Guard", "prim::profile_ivalue", "prim::data"))  # fmt: skip
_FRESH = frozenset(("prim::Constant", "prim::Uninitialized", "prim::CreateObject", "prim::AutogradZero", "prim::isinstance",
                    "prim::Print", "prim::RaiseException", "aten::format", "prim::AutogradAnyNonZero",
                    "prim::AutogradAllNonZero", "prim::AutogradAllZero", "prim::MMTreeReduce", "prim::FusionGroup",
                    "prim::TensorExprGroup", "aten::warn", "prim::SumToSize", "prim::NumToTensor",
                    "prim::ImplicitTensorToNum", "prim::BroadcastSizes", "prim::ReturnTensorSizes", "prim::BailoutTemplate",
                    "prim::TensorExprDynamicGuard"))  # fmt: skip
MAY_PASS_ON = frozenset(
    f"aten::{name}" for name in
    ("atleast_1d", "atleast_2d", "atleast_3d", "broadcast_tensors", "cartesian_prod", "meshgrid", "dropout", "feature_dropout",
     "alpha_dropout", "feature_alpha_dropout", "sum_to_size", "unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes",
     "linalg_diagonal", "type_as", "pixel_shuffle", "pixel_unshuffle", "align_tensors", "histogramdd", "pad", "rrelu",
     "channel_shuffle", "_cast_Float", "_cast_Double", "_cast_Int", "_cast_Long", "_cast_Half", "float_power", "unique")
)  # fmt: skip
"""Operators that may return an input or a view of it, though their schema does not say so."""
_VIEWS = frozenset(("prim::ConstantChunk", "prim::MMBatchSide", "aten::_grad_sum_to_size"))


def is_mutable(kind: Type) -> bool:
    """Return whether values of a type can be written to, or can hold such values."""
    if isinstance(kind, TensorType | ListType | DictType | ClassType | InterfaceType | FutureType | AwaitType | VarType):
        return True
    if isinstance(kind, TupleType | OptionalType | UnionType):
        return any(map(is_mutable, kind.contained()))
    return kind is ANY


def _holds_memory(kind: Type) -> bool:
    """Return whether values of a type can hold mutable memory: a list of tensors can, a list of ints cannot."""
    return isinstance(kind, ClassType | InterfaceType) or kind is ANY or any(map(is_mutable, kind.contained()))


def _family(kind: Type) -> set[object]:
    """Return the kinds of memory that values of a type may be; values of different families never alias."""
    if isinstance(kind, OptionalType | UnionType):
        return set().union(*map(_family, kind.contained()))
    if isinstance(kind, TensorType):
        return {TensorType}
    if isinstance(kind, ListType | DictType):
        return {(type(kind), *map(_element_family, kind.contained()))}
    if isinstance(kind, ClassType):
        return {kind}
    return {type(kind)} if isinstance(kind, TupleType | FutureType) else {ANY}


def _element_family(kind: Type) -> object:
    return TensorType if isinstance(kind, TensorType) else kind.ir_text


def _deep_family(kind: Type) -> set[object]:
    """Return the kinds of memory that values of a type may be or hold."""
    if isinstance(kind, ClassType):
        return {ANY}
    return _family(kind).union(*map(_deep_family, filter(is_mutable, kind.contained())))


def _may_be_same(first: Type, second: Type) -> bool:
    one, other = _family(first), _family(second)
    return ANY in one or ANY in other or not one.isdisjoint(other)


class AliasDb:
    """The alias sets of one graph, as it was when this was created."""

    def __init__(
        self, graph: Graph, attribute: Callable[[Node], object | None] | None = None, inputs_share: bool = True
    ):  # fmt: skip
        """`attribute` identifies the memory of a `prim::GetAttr` where known: equal answers are the same memory. Unless
        `inputs_share`, inputs that are no objects are sets of their own."""
        self._attribute = attribute
        self._parent: dict[object, object] = {}
        self._contents: dict[object, object] = {}
        self._members: dict[object, list[Value]] = {}
        self._written: dict[object, list[tuple[Node, set[object]]]] = {}
        self._writes: dict[Node, list[Value]] = {}
        self._deep_writes: list[tuple[Node, Value]] = []
        self._wildcard = object()
        self._contents[self._wildcard] = self._wildcard
        for value in graph.inputs:
            if inputs_share or isinstance(value.type, ClassType | InterfaceType):
                self._join(value, self._wildcard)
        self._analyze_block(graph.block)
        for item in list(self._parent):
            if isinstance(item, Value):
                self._members.setdefault(self._find(item), []).append(item)
        for node, values in self._writes.items():
            for value in values:
                self._written.setdefault(self._find(value), []).append((node, _family(value.type)))
        for node, value in self._deep_writes:
            for root in self._reachable((value,)):
                self._written.setdefault(root, []).append((node, {ANY}))

    # Alias sets (union-find)

    def _find(self, item: object) -> object:
        parent = self._parent.setdefault(item, item)
        while parent is not self._parent.setdefault(parent, parent):
            self._parent[item] = self._parent[parent]
            item, parent = parent, self._parent[parent]
        return parent

    def _join(self, first: object, second: object) -> None:
        """Unify two sets, and then their contents."""
        pending = [(first, second)]
        while pending:
            one, other = pending.pop()
            if any(isinstance(item, Value) and not is_mutable(item.type) for item in (one, other)):
                continue
            one, other = self._find(one), self._find(other)
            if one is other:
                continue
            self._parent[one] = other
            held = self._contents.pop(one, None)
            if held is not None and other in self._contents:
                pending.append((held, self._contents[other]))
            elif held is not None:
                self._contents[other] = held

    def _inside(self, value: object) -> object:
        """Return the set of a container's possible contents."""
        root = self._find(value)
        found = self._contents.get(root)
        if found is None:
            found = self._contents[root] = object()
        return self._find(found)

    def _reachable(self, values: Iterable[Value]) -> set[object]:
        """Return the sets of values, and of everything that they may hold."""
        found: set[object] = set()
        for value in values:
            self.add_reachable(found, value)
        return found

    def add_reachable(self, found: set[object], value: Value) -> None:
        """Add the sets of a value, and of everything that it may hold."""
        root = self._find(value) if is_mutable(value.type) else None
        while root is not None and root not in found:
            found.add(root)
            held = self._contents.get(root)
            root = None if held is None else self._find(held)

    # Queries

    def may_alias(self, first: Value, second: Value) -> bool:
        """Return whether two values may alias."""
        if not is_mutable(first.type) or not is_mutable(second.type):
            return False
        return self._find(first) is self._find(second) and _may_be_same(first.type, second.type)

    def may_alias_any(self, first: Iterable[Value], second: Iterable[Value]) -> bool:
        """Return whether a value of one group may alias a value of the other."""
        others = list(second)
        return any(self.may_alias(one, other) for one in first for other in others)

    def may_contain_alias(self, first: Iterable[Value], second: Iterable[Value]) -> bool:
        """Return whether two groups may alias, or hold memory that aliases."""
        return not self._reachable(first).isdisjoint(self._reachable(second))

    def aliases_of(self, value: Value) -> list[Value]:
        """Return all values that may alias one."""
        return self._members.get(self._find(value), [value])

    def escapes(self, value: Value) -> bool:
        """Return whether a value may be visible outside of the graph: an input, an attribute, or passed to an unknown
        operator.
        """
        return is_mutable(value.type) and self._find(value) is self._find(self._wildcard)

    def may_be_seen(self, value: Value, memory: set[object]) -> bool:
        """Return whether a write to a value may be observed, if only these sets are read (`add_reachable`)."""
        return self.escapes(value) or (is_mutable(value.type) and self._find(value) in memory)

    def writers_of(self, value: Value) -> list[Node]:
        """Return the nodes that may write to a value, or to its contents."""
        family = _deep_family(value.type)
        found = (each for root in self._reachable((value,)) for each in self._written.get(root, ()))
        return [node for node, kind in found if ANY in family or ANY in kind or not kind.isdisjoint(family)]

    def has_writers(self, value: Value) -> bool:
        """Return whether any node may write to a value, or to its contents."""
        return bool(self.writers_of(value))

    def node_has_writers(self, node: Node) -> bool:
        """Return whether a node's inputs or results may be written to, by itself or another node."""
        return any(map(self.has_writers, (*node.inputs, *node.outputs)))

    def has_input_writers(self, node: Node) -> bool:
        """Return whether a node's inputs may be written to."""
        return any(map(self.has_writers, node.inputs))

    def writes(self, node: Node) -> list[Value]:
        """Return the values that a node, or one inside its blocks, writes to."""
        found = list(self._writes.get(node, ()))
        for block in node.blocks:
            for each in block.nodes:
                found += self.writes(each)
        return found

    def is_mutable(self, node: Node) -> bool:
        """Return whether a node writes to any value."""
        return bool(self.writes(node))

    def writes_to_wildcard(self, node: Node) -> bool:
        """Return whether a node may write to memory visible from outside."""
        return any(map(self.escapes, self.writes(node)))

    def writes_to_alias(self, node: Node, values: Iterable[Value]) -> bool:
        """Return whether a node may write to the values or their contents."""
        return not {self._find(value) for value in self.writes(node)}.isdisjoint(self._reachable(values))

    def may_swap(self, first: Node, second: Node) -> bool:
        """Return whether two nodes that do not use each other's results may be swapped: neither writes to what the other
        touches."""
        return not (
            self.writes_to_alias(first, self.touched(second)) or self.writes_to_alias(second, self.touched(first))
        )

    def touched(self, node: Node) -> list[Value]:
        """Return all inputs and results of a node, including those in its blocks."""
        found = [*node.inputs, *node.outputs]
        for block in node.blocks:
            found += [*block.inputs, *block.outputs]
            for each in block.nodes:
                found += self.touched(each)
        return found

    # Analyze the graph

    def _analyze_block(self, block: Block) -> None:
        for node in block.nodes:
            for inner in node.blocks:
                self._analyze_block(inner)
            self._analyze_node(node)

    def _analyze_node(self, node: Node) -> None:
        kind = node.kind
        if kind == "prim::If":
            for block in node.blocks:
                self._join_pairs(node.outputs, block.outputs)
        elif kind == "prim::Loop":
            self._analyze_loop(node)
        elif kind in _CONSTRUCTS:
            for value in node.inputs:
                self._add_to_contents(value, node.output)
        elif kind in _UNPACKS:
            for value in node.outputs:
                self._add_to_contents(value, node.input())
        elif kind in _SAME or kind in _VIEWS:
            self._join_all([*node.inputs, *node.outputs])
        elif kind == "prim::GetAttr":
            self._get_attribute(node)
        elif kind == "prim::SetAttr":
            self._add_to_contents(node.input(1), node.input())
            self._analyze_write(node, node.input())
        elif kind in ("prim::Enter", "prim::Exit") and not node.has_uses:  # __enter__ and __exit__ access only their object
            self._analyze_write(node, node.input())
            self._deep_writes.append((node, node.input()))
        elif kind == "prim::BailOut":  # the rest of the graph, run after a bailout, may do anything with its inputs
            self._join(node.output, node.input(1))
        elif kind in ("prim::DifferentiableGraph", "prim::FunctionalGraph", "prim::FallbackGraph"):
            self._analyze_subgraph_node(node)
        elif kind not in _FRESH:
            self._analyze_operator(node)

    def _analyze_loop(self, node: Node) -> None:
        body = node.blocks[0]
        self._join_pairs(body.inputs[1:], node.inputs[2:])
        self._join_pairs(body.outputs[1:], body.inputs[1:])
        self._join_pairs(node.outputs, body.outputs[1:])

    def _get_attribute(self, node: Node) -> None:
        memory = self._attribute(node) if self._attribute is not None else None
        if memory is None:
            self._add_to_contents(node.output, node.input())
        elif is_mutable(node.output.type):
            self._join(node.output, memory)

    def _analyze_subgraph_node(self, node: Node) -> None:
        """Analyze a node that holds a graph of pure nodes: its results may be views of its inputs."""
        self._join_all([*node.inputs, *node.outputs])

    def _join_pairs(self, first: Iterable[Value], second: Iterable[Value]) -> None:
        for own, other in zip(first, second, strict=True):
            self._join(own, other)

    def _join_all(self, values: list[Value]) -> None:
        mutable = [value for value in values if is_mutable(value.type)]
        for value in mutable[1:]:
            self._join(mutable[0], value)

    def _add_to_contents(self, value: Value, container: Value) -> None:
        """Add a value to a container's possible contents."""
        if is_mutable(value.type):
            self._join(value, self._inside(container))

    def _analyze_write(self, node: Node, value: Value) -> None:
        self._writes.setdefault(node, []).append(value)

    def _analyze_operator(self, node: Node) -> None:
        operator = operator_of(node)
        if operator is None or operator.schema.is_vararg:
            for value in (*node.inputs, *node.outputs):
                if is_mutable(value.type):
                    self._join(value, self._wildcard)
                    self._analyze_write(node, value)
                    self._deep_writes.append((node, value))
            return
        self._by_schema(node, operator)

    def _by_schema(self, node: Node, operator: Operator) -> None:
        named: dict[str, list[Value]] = {}
        inputs = list(zip(operator.schema.arguments, node.inputs, strict=False))
        for argument, value in inputs:
            if argument.is_write:
                self._analyze_write(node, value)
            self._note(named, argument, value)
            if "->" in argument.alias:
                self._add_to_contents(value, node.input())
        for result, value in zip(operator.schema.returns, node.outputs, strict=False):
            if not is_mutable(value.type):
                continue
            if result.alias == "*":
                self._analyze_taken_out(value, node)
            elif result.alias:
                self._note(named, result, value)
            elif node.kind in MAY_PASS_ON:
                self._analyze_passed_on(value, node)
            elif not isinstance(value.type, TensorType):
                self._analyze_new_container(value, node)
        for values in named.values():
            self._join_alias_set(values)

    def _note(self, named: dict[str, list[Value]], argument: Argument, value: Value) -> None:
        for part in argument.alias.partition("->")[0].split("|"):
            name = part.strip().rstrip("!")
            if name and name != "*":
                named.setdefault(name, []).append(value)

    def _join_alias_set(self, values: list[Value]) -> None:
        """Join values that have one alias name: they share memory. A list among tensors, as in `split(Tensor(a) self) ->
        Tensor(a)[]`, contains them."""
        tensors = [value for value in values if not isinstance(value.type, ListType)]
        if tensors and len(tensors) != len(values):
            for value in values:
                if isinstance(value.type, ListType):
                    self._add_to_contents(tensors[0], value)
            values = tensors
        self._join_all(values)

    def _analyze_taken_out(self, value: Value, node: Node) -> None:
        """Analyze a result that is taken out of the first input: an element, or a list of elements (`values()`)."""
        container = node.input() if node.inputs else None
        if container is None or not is_mutable(container.type):
            self._join(value, self._wildcard)
            return
        self._join(value, self._inside(container))
        if _holds_memory(value.type):
            self._join(self._inside(value), self._inside(container))

    def _analyze_passed_on(self, value: Value, node: Node) -> None:
        """Analyze a result that may alias the inputs, or the tensors in them."""
        for each in node.inputs:
            if not is_mutable(each.type):
                continue
            first = value if isinstance(value.type, TensorType) else self._inside(value)
            second = each if isinstance(each.type, TensorType) else self._inside(each)
            self._join(first, second)

    def _analyze_new_container(self, value: Value, node: Node) -> None:
        """Analyze a new list, dict or tuple, which may hold the inputs or their contents."""
        if not _holds_memory(value.type):
            return
        for each in node.inputs:
            if _holds_memory(each.type):
                self._join(self._inside(value), self._inside(each))
            if isinstance(each.type, TensorType | ClassType):
                self._add_to_contents(each, value)
