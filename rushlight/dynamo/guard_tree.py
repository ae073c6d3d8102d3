"""Native guards: checks of values, arranged as the tree that csrc/guard_tree.c walks.

In: checks (a source, the kind of check, the expected value) and relations between sources, with the objects that expressions
mention by name. Out: the arguments of a `GuardTree`, which tests the frame's values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rushlight.core.algebra import Var
from rushlight.core.algebra.postfix import to_postfix
from rushlight.core.symbolic.relations import DIFFERENT, NOT_NEGATIVE
from rushlight.core.symbolic.relations import EQUAL as EQUAL_TO_ZERO
from rushlight.dynamo.dynamic import Assumption, SizeOf
from rushlight.dynamo.sources import CLOSURE, GLOBALS, ITEM, VALUE, Named, Source, parameter_text

# Kinds of check, numbered as in csrc/guards.h.
IS_TYPE, SAME, EQUAL, LENGTH, KEYS, EMPTY, LACKS, NO_ATTRIBUTE, TENSOR, THREAD, HAS = range(11)
# Kinds of relation, numbered as in csrc/guard_tree.c.
SAME_OBJECTS, DIFFERENT_OBJECTS, DIFFERENT_STORAGES = range(3)
# Kinds of size relation, in the order of csrc/size_program.h. NUMBER_VALUE is a reader of csrc/guard_sizes.h: the int itself.
SIZE_RELATIONS = (EQUAL_TO_ZERO, DIFFERENT, NOT_NEGATIVE)
NUMBER_VALUE = 2


def has_native_form(assumption: Assumption) -> bool:
    """Return whether native code can test an assumption about sizes."""
    variables = assumption.relation.expression.free_variables()
    return to_postfix(assumption.relation.expression, dict.fromkeys(variables, 0)) is not None


# One check: the source of the value, the kind of check, and the expected value or a weak reference to it.
Check = tuple[Source, int, object]
# A relation between several values: its kind, and their sources.
Relation = tuple[int, tuple[Source, ...]]


class Node:
    """A value in the tree, and how it is reached from its parent."""

    __slots__ = ("access", "key", "slot", "checks", "children")

    def __init__(self, access: int, key: object) -> None:
        self.access = access
        self.key = key
        self.slot = -1
        self.checks: tuple[tuple[int, object], ...] = ()
        self.children: dict[tuple, Node] = {}

    def check(self, kind: int, expected: object) -> None:
        """Add a check unless it is there already: guards on type and value of a number share one check."""
        for known, wanted in self.checks:
            if known == kind and wanted is expected:
                return
        self.checks += ((kind, expected),)

    def item(self, key: str) -> Node:
        """Return the child for a dict's value under this key."""
        place = ITEM, str, key
        node = self.children.get(place)
        if node is None:
            node = self.children[place] = Node(ITEM, key)
        return node

    def flatten(self, nodes: list[tuple]) -> None:
        """Append the node and its descendants in preorder, each with the index of the first node after its subtree."""
        place = len(nodes)
        nodes.append(())
        for child in self.children.values():
            if child.children:
                child.flatten(nodes)
            else:
                nodes.append((child.access, child.key, len(nodes) + 1, child.slot, child.checks))
        nodes[place] = (self.access, self.key, len(nodes), self.slot, self.checks)


class TreeBuilder:
    """Builds one guard tree. `names` are the objects that held sources mention, some of them as weak references."""

    def __init__(self, parameters: tuple[str, ...], names: dict[str, Any]) -> None:
        self.names = names
        self._values = {name: index for index, name in enumerate((*map(parameter_text, parameters), GLOBALS, CLOSURE))}
        self._roots: dict[tuple, Node] = {}
        # Keyed by id(source); the tuple keeps the source alive.
        self._children: dict[int, tuple[Source, dict[tuple, Node]]] = {}
        self._slots = 0

    def check(self, source: Source, kind: int, expected: object) -> None:
        """Add a check of the value at a source."""
        self.node(source).check(kind, expected)

    def build(
        self, relations: Iterable[Relation], rest: Callable | None, sizes: Sequence[Assumption] = (),
        exact: Callable | None = None,
    ) -> tuple:  # fmt: skip
        """Return the arguments of a `GuardTree`. `rest` is a Python function that tests the guards without a native check.
        `exact` repeats `sizes` in Python, for numbers beyond 64 bits."""
        found = tuple((kind, tuple(map(self._slot, sources))) for kind, sources in relations)
        on_sizes = (*self._split_size_assumptions(sizes), exact) if sizes else None
        nodes: list[tuple] = []
        for root in self._roots.values():
            root.flatten(nodes)
        return len(self._values), self._slots, tuple(nodes), found, rest, on_sizes

    def _split_size_assumptions(self, assumptions: Sequence[Assumption]) -> tuple[tuple, tuple]:
        """Return the numbers that size assumptions read, and the conditions on them."""
        numbers: dict[Var, tuple] = {}
        conditions = []
        for assumption in assumptions:
            expression = assumption.relation.expression
            for variable in sorted(expression.free_variables()):
                if variable not in numbers:
                    numbers[variable] = self._number(assumption.places[variable])
            positions = {variable: position for position, variable in enumerate(numbers)}
            conditions.append((SIZE_RELATIONS.index(assumption.relation.kind), to_postfix(expression, positions)))
        return tuple(numbers.values()), tuple(conditions)

    def _number(self, source: Source) -> tuple[int, int, int]:
        """Return how native code reads a number: the reader, the slot of its owner, and the dimension."""
        if isinstance(source, SizeOf):
            return int(source.reader == "stride"), self._slot(source.base), source.key
        return NUMBER_VALUE, self._slot(source), 0

    def node(self, source: Source) -> Node:
        """Return the tree's node for a source. Equal sources share a node."""
        base, key = source.base, source.key
        siblings = self._roots if base is None else self._child_nodes(base)
        place = (source.access, type(key), key if type(key) is not Named else key.name)  # the type tells key 1 from key True
        node = siblings.get(place)
        if node is None:
            node = siblings[place] = Node(source.access, self._key(source))
        return node

    def _child_nodes(self, base: Source) -> dict[tuple, Node]:
        """Return the child nodes of the node of a source."""
        found = self._children.get(id(base))
        if found is None:
            found = self._children[id(base)] = (base, self.node(base).children)
        return found[1]

    def _key(self, source: Source) -> object:
        """Return the key of the step from its base to a source."""
        if source.base is not None:
            return source.key if type(source.key) is not Named else self.names[source.key.name.removesuffix("()")]
        return self._values[source.text] if source.access == VALUE else self.names[source.text.removesuffix("()")]

    def _slot(self, source: Source) -> int:
        """Return the slot in which native code stores the value of a source; allocate one if there is none."""
        node = self.node(source)
        if node.slot < 0:
            node.slot, self._slots = self._slots, self._slots + 1
        return node.slot
