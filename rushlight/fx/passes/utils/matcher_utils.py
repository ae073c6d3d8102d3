"""SubgraphMatcher: find every subgraph of a graph that matches a pattern.

In: a pattern, whose placeholders match any value, and a graph. Out: the matches, each with the matched value of each pattern
node.
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
    """The matched nodes of the pattern's anchors: results that the pattern itself does not use. The search starts from them."""
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    placeholder_nodes: list[Any] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)


class SubgraphMatcher:
    """Finds a pattern in graphs.

    Args:
        pattern: a graph; ValueError for an empty one.
        match_output: the pattern's output must match the graph's output.
        match_placeholder: inputs of the pattern match only inputs of the graph.
        remove_overlapping_matches: of matches that share nodes, keep the first.
        ignore_literals: let numbers and other constants match any value.

    Values that the pattern computes and does not return must have no other use in the graph. Arguments that a call leaves out
    take the defaults of the operator's schema.
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
        """Return the matches in a graph, in its order."""
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
        for bound in self._match_anchors(candidates, list(self.pattern_anchors), {}):
            if not self._is_whole(graph, bound):
                continue
            yield InternalMatch(
                [bound[node] for node in self.pattern_anchors], bound,
                [bound.get(node) for node in self.pattern_placeholder_nodes],
                [bound[node] for node in self.pattern_returning_nodes],
            )  # fmt: skip

    def _match_anchors(self, candidates: list[Node], anchors: list[Node], bound: dict) -> Iterator[dict[Node, Any]]:
        """Yield the matches of the pattern's nodes, for each choice of nodes for its anchors."""
        if not anchors:
            yield bound
            return
        for candidate in candidates:
            tried = dict(bound)
            if self._bind(anchors[0], candidate, tried):
                yield from self._match_anchors(candidates, anchors[1:], tried)

    def _is_whole(self, graph: Graph, bound: dict[Node, Any]) -> bool:
        """Return whether every node of the pattern matches a node of its own, and no inner value is used outside."""
        if any(node not in bound for node in (*self.inner, *self.pattern_returning_nodes)):
            return False
        own = {bound[node] for node in self.inner}
        allowed = own | ({graph.output_node()} if self.match_output else set())
        returned = set(self.pattern_returning_nodes)
        return len(own) == len(self.inner) and all(
            set(bound[node].users) <= allowed for node in self.inner if node not in returned
        )

    def _bind(self, wanted: Any, value: Any, bound: dict[Node, Any]) -> bool:
        """Return whether `value` matches `wanted`, a node of the pattern or a constant; record the matches."""
        if not isinstance(wanted, Node):
            return self._bind_constant(wanted, value, bound)
        if wanted in bound:
            known = bound[wanted]
            return known is value or (not isinstance(known, Node) and not isinstance(value, Node) and known == value)
        if isinstance(value, Node) and any(known is value for known in bound.values()):
            return False  # `value` already matches another node of the pattern
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
    """Return the value that a `get_attr` node reads; None if the graph belongs to no module."""
    found: Any = node.graph.owning_module
    for atom in node.target.split("."):
        found = getattr(found, atom, None)
    return found


def complete_arguments(node: Node) -> tuple[tuple, dict[str, Any]]:
    """Return the arguments of a call; for an operator by its schema, with the defaults of omitted ones."""
    if not isinstance(node.target, OpOverload):
        return node.args, dict(node.kwargs)
    given = dict(zip((argument.name for argument in node.target._schema.arguments), node.args, strict=False)) | node.kwargs
    return (), {
        argument.name: given.get(argument.name, argument.default) for argument in node.target._schema.arguments
    }
