"""What one attempt at a translation learns for the next: numbers to specialize on, memory that is written to, types.


In: a graph. Out: a `Plan` that all attempts share. An attempt that learns something raises `Retry` and starts again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from rushlight.compiler.scripted.regions import Unsupported
from rushlight.inductor.structured import Kind
from rushlight.jit.ir.graph import Graph, Node, Value
from rushlight.jit.passes.alias_analysis import AliasDb
from rushlight.jit.passes.loop_unrolling import is_for_loop, repeat_in_place

_MAX_UNROLLED_NODES = 600  # a loop that would unroll to more nodes is not unrolled: compiling takes longer than it saves


class Retry(Exception):
    """The plan has learned something: translate again."""


class NeedsKind(Unsupported):
    """The type of a carried variable is not known before the loop's body has been translated."""


@dataclass(frozen=True)
class Source:
    """Where an input comes from: an argument, or an attribute reached from it."""

    argument: int
    path: tuple[str, ...]

    def read(self, arguments) -> object:
        """Return the value in a call's arguments."""
        value = arguments[self.argument]
        for name in self.path:
            value = value.slots[name]
        return value

    def owner(self, arguments) -> object:
        """Return the object that has the attribute, in a call's arguments."""
        return Source(self.argument, self.path[:-1]).read(arguments)


@dataclass
class Plan:
    """`state`: attributes that the code assigns. `owns_lists`: nobody else holds the lists among the arguments.
    `written_later`: the places of results that others write to. `fixed`: inputs whose values the program takes for granted.
    `kinds`: types of lists and of what loops carry, found at the end of their bodies. `optional`: what loops carry that may be
    None. `written`: memory that is written to, by who makes it. `pointers`: tensors that loops carry without a copy, and lists
    that they carry which are not always one; `flows` says which memory such a tensor may lie in. `external`: operators that
    Python runs; `separate`: those among which one is looked for."""

    graph: Graph
    state: frozenset[Source] = frozenset()
    owns_lists: bool = True
    written_later: frozenset[int] = frozenset()
    fixed: set[Source] = field(default_factory=set)
    kinds: dict[Value, Kind] = field(default_factory=dict)
    optional: set[Value] = field(default_factory=set)
    written: set[Hashable] = field(default_factory=set)
    pointers: set[Value] = field(default_factory=set)
    separate: set[Node] = field(default_factory=set)
    external: set[Node] = field(default_factory=set)
    flows: dict[Value, set[Hashable]] = field(default_factory=dict)
    aliases: AliasDb = field(init=False)

    def __post_init__(self) -> None:
        self.aliases = AliasDb(self.graph)

    def takes_for_granted(self, source: object, value: object) -> bool:
        """Return whether the program specializes on an input's value; it does so for numbers in attributes that nothing
        assigns."""
        if value is None or isinstance(value, str) or source in self.fixed:
            return True
        is_attribute = isinstance(source, Source) and bool(source.path)
        return is_attribute and source not in self.state and isinstance(value, bool | int | float)

    def fix(self, sources: Iterable[Source]) -> None:
        """Specialize on the values of inputs."""
        self._add_and_retry(self.fixed, sources)

    def write(self, makers: Iterable[Hashable]) -> None:
        """Record memory that is written to."""
        self._add_and_retry(self.written, makers)

    def point(self, value: Value) -> None:
        """Let a loop carry a tensor by pointer, without a copy, or a list in a variable."""
        self._add_and_retry(self.pointers, [value])

    def flow(self, value: Value, makers: Iterable[Hashable]) -> None:
        """Record in which memory a tensor that a loop carries may lie."""
        self._add_and_retry(self.flows.setdefault(value, set()), makers)

    def may_be_none(self, value: Value) -> None:
        """Record that a carried variable may be None."""
        self._add_and_retry(self.optional, [value])

    def _add_and_retry(self, known: set, more: Iterable) -> None:
        """Add facts to a set of known ones; raise Retry if any is new."""
        before = len(known)
        known.update(more)
        if len(known) > before:
            raise Retry

    def look_among(self, nodes: Sequence[Node], reason: Unsupported) -> None:
        """Handle a piece without a native form: translate its operators one by one, and let Python run the one that has
        none."""
        if len(nodes) == 1 and nodes[0] in self.separate:
            self.separate.clear()
            self._add_and_retry(self.external, nodes)
        self._add_and_retry(self.separate, nodes)
        raise reason

    def note_kind(self, value: Value, kind: Kind) -> None:
        """Record the type of a value whose type was unknown."""
        if self.kinds.get(value) == kind:
            return
        if value in self.kinds:
            raise Unsupported("a value of several types or sizes")
        self.kinds[value] = kind
        raise Retry

    def unroll(self, node: Node, rounds: int, reason: Unsupported) -> None:
        """Unroll a loop that cannot stay a loop; raise the reason if there would be too many nodes."""
        body = node.blocks[0]
        size = sum(1 for each in body.all_nodes() if each.kind != "prim::Constant")
        if not is_for_loop(node) or rounds * size > _MAX_UNROLLED_NODES:
            raise reason
        repeat_in_place(node, max(rounds, 0))
        self.aliases = AliasDb(self.graph)
        raise Retry
