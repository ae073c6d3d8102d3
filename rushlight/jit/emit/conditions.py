"""Conditions: values of type bool, the type refinements they imply, and those known at compile time. Part of the emitter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from rushlight.jit.emit.sugared import SimpleValue, SugaredValue
from rushlight.jit.errors import ErrorReport
from rushlight.jit.ir.graph import Node, Value
from rushlight.jit.source import SourceRange
from rushlight.jit.tree_views import Apply, BinOp, FalseLiteral, StringLiteral, Tree, TrueLiteral, TupleLiteral, UnaryOp, Var
from rushlight.jit.types.kinds import (
    ANY,
    ANY_LIST,
    ANY_TUPLE,
    BOOL,
    NONE,
    STRING,
    ClassType,
    DictType,
    ListType,
    TupleType,
    Type,
)
from rushlight.jit.types.relations import in_order, is_subtype, members_of, union, unshaped, without

Refinements = dict[str, Type]


@dataclass
class Condition:
    """A condition: its value, its truth where known at compile time, and the types of variables if it holds or not."""

    value: Value
    static: bool | None = None
    when_true: Refinements = field(default_factory=dict)
    when_false: Refinements = field(default_factory=dict)


class ConditionEmitter:
    """The emitter's rules for conditions."""

    def condition_value(self, tree: Tree) -> Value:
        """Return a condition's value alone."""
        return self.emit_condition(tree).value

    def emit_condition(self, tree: Tree) -> Condition:
        """Return a condition."""
        with self.graph.source(tree.range):
            if isinstance(tree, UnaryOp) and tree.operator == "not":
                return self._emit_not(tree)
            if isinstance(tree, BinOp) and tree.operator in ("and", "or"):
                return self._emit_short_circuit(tree)
            if isinstance(tree, BinOp) and tree.operator in ("is", "is not"):
                return self._emit_identity(tree)
            if isinstance(tree, TrueLiteral | FalseLiteral):
                return self._static_condition(isinstance(tree, TrueLiteral), tree.range)
            if isinstance(tree, BinOp) and tree.operator == "in":
                return self._emit_contains(tree)
            if isinstance(tree, Apply) and isinstance(tree.callee, Var):
                conditions = {"isinstance": self._emit_isinstance_condition, "hasattr": self._emit_hasattr_condition}
                special = conditions.get(tree.callee.name)
                if special is not None:
                    return special(tree)
            if isinstance(tree, Apply) and self.form_of(tree.callee) == "isinstance":
                return self._emit_isinstance_condition(tree)
            sugared = self.emit_sugared(tree)
            value = self.truth(sugared.as_value(tree.range, self), tree.range)
            return Condition(value, self._static_outcome(value))

    def _static_outcome(self, value: Value) -> bool | None:
        """Return whether the value is a constant that selects the compiled branch."""
        return value.constant() if value.is_constant and value.node.attributes.get("static") else None

    def _static_condition(self, truth: bool, where: SourceRange) -> Condition:
        return Condition(self.constant(truth, where), truth)

    def _emit_not(self, tree: UnaryOp) -> Condition:
        inner = self.emit_condition(tree.value)
        if inner.static is not None:
            return self._static_condition(not inner.static, tree.range)
        value = self.insert("aten::__not__", [inner.value], BOOL, tree.range)
        return Condition(value, None, inner.when_false, inner.when_true)

    def _emit_short_circuit(self, tree: BinOp) -> Condition:
        is_or = tree.operator == "or"
        left = self.emit_condition(tree.left)
        if left.static is not None:
            return left if left.static == is_or else self.emit_condition(tree.right)
        node = self.graph.insert("prim::If", [left.value], 0)
        node.source_range = tree.range
        right: list[Condition] = []

        def emit_right() -> Value:
            self.refine(left.when_false if is_or else left.when_true, tree.right.range)
            right.append(self.emit_condition(tree.right))
            return right[0].value

        def emit_known() -> Value:
            return self.constant(is_or, tree.range)

        self._add_branches(node, emit_known if is_or else emit_right, emit_right if is_or else emit_known)
        value = node.add_output(BOOL)
        both = _refine_by_both if not is_or else _refine_by_either
        other = _refine_by_either if not is_or else _refine_by_both
        return Condition(value, None, both(left.when_true, right[0].when_true), other(left.when_false, right[0].when_false))

    def _add_branches(self, node: Node, first: Callable[[], Value], second: Callable[[], Value]) -> None:
        for emit in (first, second):
            block = node.add_block()
            self.push(block)
            block.add_output(emit())
            self.pop(lambda: self.graph.set_insert_point(node.next))

    # Conditions that refine types

    def _emit_identity(self, tree: BinOp) -> Condition:
        """Emit `is` or `is not`. A comparison with None refines the type of the tested variable."""
        where, negative = tree.range, tree.operator == "is not"
        left, right = self.emit_expression(tree.left), self.emit_expression(tree.right)
        if NONE in (left.type, right.type):
            other, tested = (right, tree.right) if left.type is NONE else (left, tree.left)
            could_be = any(is_subtype(NONE, part) for part in members_of(other.type)) or other.type is ANY
            if other.type is NONE or not could_be:
                return self._static_condition((other.type is NONE) != negative, where)
            name = "aten::__isnot__" if negative else "aten::__is__"
            value = self.insert(name, [left, right], BOOL, where)
            present = without(other.type, [NONE]) if other.type is not ANY else None
            if not isinstance(tested, Var) or present is None:
                return Condition(value)
            some = {tested.name: present}
            return Condition(value, None, some, {}) if negative else Condition(value, None, {}, some)
        name = "aten::__isnot__" if negative else "aten::__is__"
        return Condition(self.insert(name, [left, right], BOOL, where))

    def _emit_contains(self, tree: BinOp) -> Condition:
        item, sugared = self.emit_expression(tree.left), self.emit_sugared(tree.right)
        if hasattr(sugared, "contains"):
            return self._static_condition(sugared.contains(tree.range, item), tree.range)
        container = sugared.as_value(tree.right.range, self)
        if isinstance(container.type, ClassType):
            method = self.simple.attribute(tree.range, container, "__contains__")
            found = method.call(tree.range, self, self.named_values([item], tree.range), [])
        elif container.type == STRING and item.type == STRING:
            found = self._find_in_string(container, item, tree.range)
        else:
            found = self.call_operator("aten::__contains__", tree.range, [container, item])
        return Condition(found.as_value(tree.range, self))

    def _find_in_string(self, text: Value, part: Value, where: SourceRange) -> SugaredValue:
        """Emit `part in text`: whether a search finds it."""
        begin, end = self.constant(0, where), self.simple.length(where, text)
        place = self.call_operator("aten::find", where, [text, part, begin, end]).as_value(where, self)
        return self.call_operator("aten::ne", where, [place, self.constant(-1, where)])

    def _emit_isinstance_condition(self, tree: Apply) -> Condition:
        if len(tree.inputs) != 2 or tree.attributes:
            raise ErrorReport(tree.range, f"isinstance expects 2 arguments, got {len(tree.inputs) + len(tree.attributes)}")
        tested = self.emit_sugared(tree.inputs[0])
        wanted, families = self._types_of(tree.inputs[1])
        value = tested.as_value(tree.range, self)
        fitting = [part for part in members_of(value.type) if self._is_instance(part, wanted, families)]
        if (
            value.type is not ANY
            and len(fitting) in (0, len(members_of(value.type)))
            and not self._can_be(value.type, wanted)
        ):
            return self._static_condition(bool(fitting), tree.range)
        if families and value.type is ANY:
            raise ErrorReport(tree.range, "isinstance(x, dict) needs a known type of x; name the kind, as in Dict[str, int]")
        kinds = in_order((*wanted, *(part for part in fitting if isinstance(part, tuple(families)))))
        node = self.graph.insert("prim::isinstance", [value]).set("types", kinds)
        node.source_range = tree.range
        condition = Condition(node.output.set_type(BOOL))
        if isinstance(tree.inputs[0], Var):
            name = tree.inputs[0].name
            if value.type is not ANY or not set(wanted) & {ANY_LIST, ANY_TUPLE}:
                condition.when_true[name] = union(fitting) if fitting and value.type is not ANY else union(wanted)
            left = without(value.type, fitting or wanted) if value.type is not ANY else ANY
            if left is not None:
                condition.when_false[name] = left
        return condition

    def _can_be(self, kind: Type, wanted: list[Type]) -> bool:
        return any(is_subtype(each, part) and each != part for each in wanted for part in members_of(kind))

    def _is_instance(self, kind: Type, wanted: list[Type], families: list[type]) -> bool:
        return any(is_subtype(unshaped(kind), each) for each in wanted) or isinstance(kind, tuple(families))

    def _types_of(self, tree: Tree) -> tuple[list[Type], list[type]]:
        if isinstance(tree, TupleLiteral):
            parts = [self._types_of(item) for item in tree.items]
            return [kind for part in parts for kind in part[0]], [each for part in parts for each in part[1]]
        family = self.type_family(tree)
        if family is not None:
            return ([], [family]) if family is DictType else ([_OF_FAMILY[family]], [])
        return list(members_of(self.type_of_tree(tree))), []

    def _emit_hasattr_condition(self, tree: Apply) -> Condition:
        if len(tree.inputs) != 2 or not isinstance(tree.inputs[1], StringLiteral):
            raise ErrorReport(tree.range, "hasattr's second argument must be a string literal")
        value = self.emit_sugared(tree.inputs[0])
        return self._static_condition(value.has_attribute(tree.range, self, tree.inputs[1].text), tree.range)

    def refine(self, refinements: Refinements, where: SourceRange) -> None:
        """Refine the types of variables by a condition."""
        for name, kind in refinements.items():
            found = self.environment.type_of(name)
            if found is None or (unshaped(found) == unshaped(kind) and kind is not ANY):
                continue
            value = self.environment.load(name, found, where)
            cast = self.insert("prim::unchecked_cast", [value], kind, where)
            if kind is NONE:
                cast = self.constant(None, where)
            self.environment.set(name, SimpleValue(cast), where, kind)


_OF_FAMILY: dict[type, Type] = {ListType: ANY_LIST, TupleType: ANY_TUPLE}
"""The types that `list` and `tuple` stand for in isinstance."""


def _refine_by_both(first: Refinements, second: Refinements) -> Refinements:
    return {**first, **second}


def _refine_by_either(first: Refinements, second: Refinements) -> Refinements:
    return {name: union((first[name], second[name])) for name in first if name in second}
