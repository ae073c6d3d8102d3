"""Loops and comprehensions. Part of the emitter.

`prim::Loop(count, condition)` has a body block and, until `control_flow.py` inlines it, a block that calculates the condition
of a while loop. Loops over tuples and modules' containers are unrolled.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from rushlight.jit.emit.sugared import SugaredValue
from rushlight.jit.errors import ErrorReport
from rushlight.jit.ir.graph import Node, Value
from rushlight.jit.source import SourceRange
from rushlight.jit.tree_views import DictComp, For, ListComp, Tree, Var, While
from rushlight.jit.types.kinds import INT, STRING, TENSOR, DictType, ListType, Type
from rushlight.jit.types.relations import unshaped

ENDLESS = 9223372036854775807
"""The trip count of a `while` loop, which only its condition ends."""


class Ends(IntEnum):
    """Whether a statement's end is unreachable: no; yes, because it ends a round of a loop; or yes, because it leaves all
    blocks. Code after the last kind is not compiled."""

    NOTHING = 0
    ROUND = 1
    ALL = 2


class LoopEmitter:
    """The emitter's rules for loops."""

    def emit_while(self, tree: While) -> None:
        """Emit a while loop."""
        node = self._new_loop(tree.range, self.constant(ENDLESS, tree.range))
        body, check = node.add_block(), node.add_block()
        body.add_input(kind=INT)
        self.push(check)
        condition = self.emit_condition(tree.condition)
        check.add_output(condition.value)
        self.pop(lambda: self.graph.set_insert_point(node.next))
        self._emit_body(node, lambda: self.refine(condition.when_true, tree.range), tree.body)

    def _new_loop(self, where: SourceRange, count: Value) -> Node:
        node = self.graph.insert("prim::Loop", [count], 0)
        node.source_range = where
        return node

    def _emit_body(self, node: Node, begin: Callable[[], None], body: list[Tree]) -> None:
        self.push(node.blocks[0])
        self.loop_depth += 1
        begin()
        self.emit_statements(body)
        self.loop_depth -= 1
        left = self.pop(lambda: self.graph.set_insert_point(node.next))
        for name in left.types:
            if self.environment.find(name) is None:
                self.environment.undefine(name, f"{name} is not defined before the loop, so it may not be defined after it")

    def emit_for(self, tree: For) -> Ends:
        """Return a for loop, in the graph or unrolled; returns whether its end is unreachable."""
        if len(tree.targets) != 1 or len(tree.iterables) != 1:
            raise ErrorReport(tree.range, "loops have one target and one iterable")
        iterable = self.iterable(self.emit_sugared(tree.iterables[0]), tree.iterables[0].range)
        elements = iterable.static_elements(tree.range, self)
        if elements is not None:
            return self._unroll(tree, elements)
        where = tree.range
        node = self._new_loop(where, iterable.length(where, self))
        position = node.add_block().add_input(kind=INT)

        def begin() -> None:
            self.assign(tree.targets[0], iterable.item(where, self, position), tree.targets[0].range)

        self._emit_body(node, begin, tree.body)
        return Ends.NOTHING

    def _unroll(self, tree: For, elements: list[SugaredValue]) -> Ends:
        if _has_break_or_continue(tree.body):
            raise ErrorReport(tree.range, "Because we emit iteration over Modulelists or Tuples as unrolled loops, we do not "
                                          "support break or continue inside the body of these loops")  # fmt: skip
        for element in elements:
            self.assign(tree.targets[0], element, tree.targets[0].range)
            if self.emit_statements(tree.body) is Ends.ALL:
                return Ends.ALL
        return Ends.NOTHING

    def iterable(self, sugared: SugaredValue, where: SourceRange) -> SugaredValue:
        """Return the iterable of a loop over a value: a dict's keys, an object's elements, or the value itself."""
        value = sugared.simple_value()
        if value is not None and isinstance(value.type, DictType):
            return self.call_operator("aten::keys", where, [value])
        return sugared.as_iterable(where, self)

    # Emit comprehensions

    def emit_list_comprehension(self, tree: ListComp, hint: Type | None) -> Value:
        """Emit `[element for target in iterable]`."""
        made = self.graph.insert("prim::ListConstruct")
        made.source_range = tree.range

        def element() -> None:
            value = self.emit_expression(tree.element)
            if made.output.type.kind() != "ListType":
                declared = hint.element if isinstance(hint, ListType) else unshaped(value.type)
                made.output.type = ListType(declared)
            self.insert("aten::append", [made.output, value], made.output.type, tree.range)

        self._emit_comprehension(tree, element)
        if not isinstance(made.output.type, ListType):
            made.output.type = hint if isinstance(hint, ListType) else ListType(made.output.type)
        return made.output

    def emit_dict_comprehension(self, tree: DictComp, hint: Type | None) -> Value:
        """Emit `{key: value for target in iterable}`."""
        made = self.graph.insert("prim::DictConstruct")
        made.source_range = tree.range

        def element() -> None:
            self._set_pair(made, self.emit_expression(tree.key), self.emit_expression(tree.value), hint)

        self._emit_comprehension(tree, element)
        if not isinstance(made.output.type, DictType):
            raise ErrorReport(tree.range, "the types of an empty dict comprehension are unknown")
        return made.output

    def _set_pair(self, made: Node, key: Value, value: Value, hint: Type | None) -> None:
        if not isinstance(made.output.type, DictType):
            made.output.type = hint if isinstance(hint, DictType) else DictType(unshaped(key.type), unshaped(value.type))
        self.call_operator("aten::_set_item", made.source_range, [made.output, key, value])

    def collect_pairs(self, iterable: SugaredValue, where: SourceRange, hint: Type | None) -> Value:
        """Emit `dict(iterable)`."""
        made = self.graph.insert("prim::DictConstruct")
        made.source_range = where

        def add(item: SugaredValue) -> None:
            pair = [part.as_value(where, self) for part in item.as_tuple(where, self, 2)]
            if len(pair) != 2:
                raise ErrorReport(where, f"a dict is made of pairs of a key and a value, got {len(pair)} values")
            self._set_pair(made, *pair, hint)

        self._emit_for_each(iterable, where, add)
        if not isinstance(made.output.type, DictType):
            made.output.type = hint if isinstance(hint, DictType) else DictType(STRING, TENSOR)
        return made.output

    def _emit_comprehension(self, tree: ListComp | DictComp, element: Callable[[], None]) -> None:
        def use(item: SugaredValue) -> None:
            self.assign(tree.target, item, tree.range)
            element()

        iterable = self.iterable(self.emit_sugared(tree.iterable), tree.iterable.range)
        outer = self.environment
        self.environment = outer.for_comprehension(_names_in(tree.target), self._next_comprehension())
        self._emit_for_each(iterable, tree.range, use)
        self.environment = outer

    def _next_comprehension(self) -> int:
        self.comprehensions += 1
        return self.comprehensions

    def _emit_for_each(self, iterable: SugaredValue, where: SourceRange, use: Callable[[SugaredValue], None]) -> None:
        """Emit code for every element of an iterable: unrolled if they are known at compile time, else in a loop."""
        elements = iterable.static_elements(where, self)
        if elements is not None:
            for each in elements:
                use(each)
            return
        node = self._new_loop(where, iterable.length(where, self))
        position = node.add_block().add_input(kind=INT)
        self.push(node.blocks[0])
        use(iterable.item(where, self, position))
        self.pop(lambda: self.graph.set_insert_point(node.next))


def _names_in(target: Tree) -> list[str]:
    """Return the variables that an assignment to `target` sets."""
    if isinstance(target, Var):
        return [target.name]
    return [name for item in getattr(target, "items", ()) for name in _names_in(getattr(item, "value", item))]


def _has_break_or_continue(trees: list[Tree]) -> bool:
    """Return whether a body contains a break or continue of this loop."""
    for tree in trees:
        kind = type(tree).__name__
        if kind in ("Break", "Continue"):
            return True
        branches = {"If": ("true_branch", "false_branch"), "With": ("body",)}.get(kind, ())
        if any(_has_break_or_continue(getattr(tree, branch)) for branch in branches):
            return True
    return False
