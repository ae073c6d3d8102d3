"""Find the occurrences of a pattern in a graph.

In: a pattern, which is a graph of one block, and a graph. Out: matches. A pattern's inputs match any value. A node matches one
of the same kind with as many inputs and results, whose attributes include the pattern's. A value with an explicit type in the
pattern, other than `Tensor`, matches values of a subtype. Internal values of a match must have no uses outside.
`match::module[name="Linear"]` fits the `prim::GetAttr` of a submodule whose class name ends so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.ir.printer import constant_text
from rushlight.jit.types.kinds import TENSOR, ClassType
from rushlight.jit.types.relations import is_subtype

_MODULE = "match::module"


@dataclass
class Match:
    """One occurrence: the matches of the pattern's values and nodes. `anchor` is its last node."""

    anchor: Node
    names: dict[str, Value]
    values: dict[Value, Value] = field(default_factory=dict)
    nodes: dict[Node, Node] = field(default_factory=dict)

    def value(self, name: str) -> Value:
        """Return the match of the pattern's value with this name; KeyError for an unknown name."""
        return self.values[self.names[name]]


def find_matches(pattern: Graph, graph: Graph, names: dict[str, Value]) -> Iterator[Match]:
    """Yield the occurrences of the pattern that do not overlap earlier ones. `names` maps names to the pattern's values."""
    _check_pattern(pattern)
    yield from _find_in_block(pattern, graph.block, names, set())


def _check_pattern(pattern: Graph) -> None:
    if not pattern.outputs:
        raise RuntimeError(f"a pattern must give at least one value:\n{pattern}")
    if any(node.blocks for node in pattern.nodes):
        raise RuntimeError(f"a pattern can't have blocks:\n{pattern}")


def _find_in_block(pattern: Graph, block: Block, names: dict[str, Value], used: set[Node]) -> Iterator[Match]:
    for node in list(block.nodes):
        for inner in node.blocks:
            yield from _find_in_block(pattern, inner, names, used)
        if node.block is not block:
            continue
        found = _match_at(pattern, node, names)
        if found is not None and used.isdisjoint(found.nodes.values()):
            used.update(each for each in found.nodes.values() if each.kind != "prim::Constant")
            yield found


def _match_at(pattern: Graph, anchor: Node, names: dict[str, Value]) -> Match | None:
    last = pattern.block.result.previous
    if last.kind != anchor.kind and last.kind != _MODULE:
        return None
    found = Match(anchor, names)
    inside = _Matcher(pattern, found)
    if not inside.node(last, anchor) or any(node not in found.nodes for node in pattern.nodes):
        return None
    return found if inside.is_closed() else None


class _Matcher:
    def __init__(self, pattern: Graph, found: Match):
        self.pattern = pattern
        self.found = found

    def value(self, wanted: Value, actual: Value) -> bool:
        """Return whether a value and its producer match the pattern's."""
        known = self.found.values.get(wanted)
        if known is not None:
            return known is actual
        if wanted.type != TENSOR and not _type_fits(actual, wanted):
            return False
        self.found.values[wanted] = actual
        if wanted.node is self.pattern.block.param:
            return True
        return wanted.offset == actual.offset and self.node(wanted.node, actual.node)

    def node(self, wanted: Node, actual: Node) -> bool:
        """Return whether a node matches the pattern's."""
        known = self.found.nodes.get(wanted)
        if known is not None:
            return known is actual
        if wanted.kind == _MODULE:
            return self._match_module(wanted, actual)
        if wanted.kind != actual.kind or actual.blocks or wanted.input_count != actual.input_count:
            return False
        same_place = actual.block is self.found.anchor.block or actual.kind in ("prim::Constant", "prim::GetAttr")
        if not same_place or len(wanted.outputs) != len(actual.outputs) or not _attributes_fit(wanted, actual):
            return False
        self.found.nodes[wanted] = actual
        self.found.values.update(zip(wanted.outputs, actual.outputs, strict=True))
        return all(map(self.value, wanted.inputs, actual.inputs))

    def _match_module(self, wanted: Node, actual: Node) -> bool:
        kind = actual.output.type if actual.kind == "prim::GetAttr" else None
        if not isinstance(kind, ClassType) or not kind.name.endswith(str(wanted["name"])):
            return False
        self.found.nodes[wanted] = actual
        self.found.values[wanted.output] = actual.output
        return self.value(wanted.input(), actual.input())

    def is_closed(self) -> bool:
        """Return whether internal values have no uses outside."""
        given = {self.found.values[value] for value in self.pattern.outputs}
        nodes = set(self.found.nodes.values())
        for actual in nodes:
            if actual.kind in ("prim::Constant", "prim::GetAttr"):
                continue
            for value in actual.outputs:
                if value not in given and any(use.user not in nodes for use in value.uses):
                    return False
        return True


def _type_fits(actual: Value, wanted: Value) -> bool:
    if isinstance(wanted.type, ClassType):
        return isinstance(actual.type, ClassType) and actual.type.name.endswith(wanted.type.name)
    return is_subtype(actual.type, wanted.type)


def _attributes_fit(wanted: Node, actual: Node) -> bool:
    if wanted.kind == "prim::Constant" and ("value" in wanted.attributes) != ("value" in actual.attributes):
        return False
    return all(
        name in actual.attributes and constant_text(value) == constant_text(actual.attributes[name])
        for name, value in wanted.attributes.items()
    )
