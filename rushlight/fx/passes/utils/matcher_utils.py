"""SubgraphMatcher: find every place where a graph does what a pattern does.

In: a pattern, whose placeholders stand for any value, and a graph. Out: the places, each with what stands for each node of the
pattern.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.fx.graph import Graph
from rushlight.fx.node import Node
from rushlight.ops.dispatcher import OpOverload

__all__ = ["InternalMatch", "SubgraphMatcher", "complete_arguments"]


@dataclass
class InternalMatch:
    """One place: what stands for the pattern's nodes (for its inputs, any value)."""

    anchors: list[Node]
    """The nodes from which the match was found: what stands for results that the pattern itself does not use."""
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    placeholder_nodes: list[Any] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)


class SubgraphMatcher:
    """Finds a pattern in graphs.

    Args:
        pattern: a graph; ValueError for an empty one.
        match_output: have the pattern's output be the graph's.
        match_placeholder: have inputs of the pattern stand for inputs of the graph only.
        remove_overlapping_matches: of matches that share nodes, give the first.
        ignore_literals: have numbers and other constants match whatever they are.

    Values that the pattern calculates and does not return must have no other use in the graph. Arguments that a call leaves out
    are those of the operator's schema.
    """

    def __init__(
        self, pattern: Graph, match_output: bool = False, match_placeholder: bool = False,
        remove_overlapping_matches: bool = True, ignore_literals: bool = False,
    ) -> None:  # fmt: skip
        self.pattern = pattern
        self.match_output, self.match_placeholder = match_output, match_placeholder
        self.remove_overlapping_matches, self.ignore_literals = remove_overlapping_matches, ignore_literals
        if len(pattern.nodes) == 0:
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        output = pattern.output_node()
        self.pattern_placeholder_nodes = pattern.find_nodes(op="placeholder")
        self.pattern_returning_nodes = list(output.all_input_nodes)
        self.inner = [node for node in pattern.nodes if node.op not in ("placeholder", "output")]
        anchors = [node for node in self.pattern_returning_nodes if len(node.users) == 1 and node.op != "placeholder"]
        self.pattern_anchors: list[Node] = [output] if match_output else anchors

    def match(self, graph: Graph) -> list[InternalMatch]:
        """The matches in a graph, in its order."""
        found, taken = [], set()
        for match in self._matches(graph):
            own = {match.nodes_map[node] for node in self.inner}
            if self.remove_overlapping_matches and own & taken:
                continue
            taken |= own
            found.append(match)
        return found

    def _matches(self, graph: Graph) -> Iterator[InternalMatch]:
        candidates = list(graph.nodes)
        for bound in self._anchored(candidates, list(self.pattern_anchors), {}):
            if not self._is_whole(graph, bound):
                continue
            yield InternalMatch(
                [bound[node] for node in self.pattern_anchors], bound,
                [bound.get(node) for node in self.pattern_placeholder_nodes],
                [bound[node] for node in self.pattern_returning_nodes],
            )  # fmt: skip

    def _anchored(self, candidates: list[Node], anchors: list[Node], bound: dict) -> Iterator[dict[Node, Any]]:
        """What can stand for the pattern's nodes, for each choice of nodes for its anchors."""
        if not anchors:
            yield bound
            return
        for candidate in candidates:
            tried = dict(bound)
            if self._bind(anchors[0], candidate, tried):
                yield from self._anchored(candidates, anchors[1:], tried)

    def _is_whole(self, graph: Graph, bound: dict[Node, Any]) -> bool:
        """Whether every node of the pattern has one of its own, and no value inside is used outside."""
        if any(node not in bound for node in (*self.inner, *self.pattern_returning_nodes)):
            return False
        own = {bound[node] for node in self.inner}
        allowed = own | ({graph.output_node()} if self.match_output else set())
        returned = set(self.pattern_returning_nodes)
        return len(own) == len(self.inner) and all(
            set(bound[node].users) <= allowed for node in self.inner if node not in returned
        )

    def _bind(self, wanted: Any, value: Any, bound: dict[Node, Any]) -> bool:
        """Whether `value` can stand for `wanted`, a node of the pattern or a constant; notes what stands for what."""
        if not isinstance(wanted, Node):
            return self._bind_constant(wanted, value, bound)
        if wanted in bound:
            known = bound[wanted]
            return known is value or (not isinstance(known, Node) and not isinstance(value, Node) and known == value)
        if isinstance(value, Node) and any(known is value for known in bound.values()):
            return False  # `value` already stands for another node of the pattern
        if wanted.op == "placeholder":
            bound[wanted] = value
            return not self.match_placeholder or isinstance(value, Node) and value.op == "placeholder"
        if not isinstance(value, Node) or value.op != wanted.op or not _same_target(wanted, value):
            return False
        bound[wanted] = value
        (args, kwargs), (other_args, other_kwargs) = complete_arguments(wanted), complete_arguments(value)
        if len(args) != len(other_args) or set(kwargs) != set(other_kwargs):
            return False
        pairs = [*zip(args, other_args, strict=True), *((kwargs[key], other_kwargs[key]) for key in kwargs)]
        return all(self._bind(one, other, bound) for one, other in pairs)

    def _bind_constant(self, wanted: Any, value: Any, bound: dict[Node, Any]) -> bool:
        if isinstance(wanted, list | tuple):
            same_kind = isinstance(value, list | tuple) and len(value) == len(wanted)
            return same_kind and all(self._bind(one, other, bound) for one, other in zip(wanted, value, strict=True))
        if isinstance(wanted, slice):
            return isinstance(value, slice) and all(
                self._bind(getattr(wanted, part), getattr(value, part), bound) for part in ("start", "stop", "step")
            )
        if isinstance(value, Node):
            return False
        return self.ignore_literals or type(value) is type(wanted) and value == wanted


def _same_target(wanted: Node, value: Node) -> bool:
    if wanted.op == "output":
        return True
    if wanted.op != "get_attr":
        return wanted.target == value.target
    kinds = [isinstance(_attribute(node), Tensor) for node in (wanted, value)]
    return all(kinds) or wanted.target == value.target


def _attribute(node: Node) -> Any:
    """What a `get_attr` node reads; None where the graph belongs to no module."""
    found: Any = node.graph.owning_module
    for atom in node.target.split("."):
        found = getattr(found, atom, None)
    return found


def complete_arguments(node: Node) -> tuple[tuple, dict[str, Any]]:
    """The arguments of a call; those of an operator by its schema, with what the call leaves out."""
    if not isinstance(node.target, OpOverload):
        return node.args, dict(node.kwargs)
    given = dict(zip((argument.name for argument in node.target._schema.arguments), node.args, strict=False)) | node.kwargs
    return (), {
        argument.name: given.get(argument.name, argument.default) for argument in node.target._schema.arguments
    }
