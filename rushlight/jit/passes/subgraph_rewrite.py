"""SubgraphRewriter: replace the occurrences of a pattern by another graph.

In: pairs of patterns in the IR's text, with the same inputs and as many outputs, then graphs. Requires: SSA. Guarantees: each
occurrence that contains no write and passes the filters is replaced; the graph is equivalent if the pair is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rushlight.jit.ir.graph import Graph, Node, Value
from rushlight.jit.ir.parser import parse_ir_with_values
from rushlight.jit.operators.lookup import writes
from rushlight.jit.passes.alias_analysis import AliasDb
from rushlight.jit.passes.inline import insert_graph
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.passes.subgraph_matcher import Match, find_matches

_LOG = PassLog(__file__)
Filter = Callable[[Match], bool]


class SubgraphRewriter:
    """A list of rewrites, applied in order."""

    def __init__(self) -> None:
        self._pairs: list[tuple[str, str]] = []

    def register_rewrite_pattern(self, pattern: str, replacement: str) -> None:
        """Add a rewrite. RuntimeError where the two graphs differ in their numbers of inputs or outputs, or do not parse."""
        first, _ = parse_ir_with_values(pattern)
        second, _ = parse_ir_with_values(replacement)
        if len(first.inputs) != len(second.inputs) or len(first.outputs) != len(second.outputs):
            raise RuntimeError(
                f"a pattern and its replacement must have as many inputs and outputs: {len(first.inputs)} and "
                f"{len(first.outputs)} there, {len(second.inputs)} and {len(second.outputs)} here"
            )
        self._pairs.append((pattern, replacement))

    def run_on_graph(self, graph: Graph, filters: Filter | Sequence[Filter] = ()) -> int:
        """Rewrite a graph where all filters agree; returns the number of replacements."""
        checks = (filters,) if callable(filters) else tuple(filters)
        count = 0
        for pattern, replacement in self._pairs:
            count += _rewrite(graph, pattern, replacement, checks)
        return count

    RegisterRewritePattern = register_rewrite_pattern
    runOnGraph = run_on_graph  # noqa: N815 (torch's name)


@graph_pass("CustomPatternBasedRewrite", "_jit_pass_custom_pattern_based_rewrite_graph")
def rewrite_pattern(graph: Graph, pattern: str, replacement: str) -> int:
    """Replace one pattern in a graph; returns the number of replacements."""
    rewriter = SubgraphRewriter()
    rewriter.register_rewrite_pattern(pattern, replacement)
    return rewriter.run_on_graph(graph)


def _rewrite(graph: Graph, pattern: str, replacement: str, checks: tuple[Filter, ...]) -> int:
    wanted, names = parse_ir_with_values(pattern)
    body, _ = parse_ir_with_values(replacement)
    matches = list(find_matches(wanted, graph, names))
    aliases = AliasDb(graph) if any(map(_has_writes_between, matches)) else None
    count, moved = 0, _Replaced()
    for match in matches:
        moved.update(match)
        wanted_here = all(check(match) for check in checks) and _may_move(match, aliases)
        if wanted_here and _LOG.permits("{} is rewritten", match.anchor):
            _replace(wanted, match, body, moved)
            count += 1
    return count


class _Replaced(dict):
    """The replacements of values that earlier matches returned."""

    def update(self, match: Match) -> None:
        """Update a match, found before these replacements, to the new values."""
        match.values.update({wanted: self[value] for wanted, value in match.values.items() if value in self})


def _moved_nodes(match: Match) -> list[Node]:
    """Return the nodes of a match that move; constants and attributes may be read from anywhere."""
    return [node for node in match.nodes.values() if node.kind not in ("prim::Constant", "prim::GetAttr")]


def _nodes_between(match: Match) -> list[Node]:
    """Return the nodes between a match's first and last that are not part of it."""
    inside = _moved_nodes(match)
    first = min(inside, key=lambda node: node.position)
    found, own = [], set(inside)
    node = first
    while node is not match.anchor:
        if node not in own:
            found.append(node)
        node = node.next
    return found


def _has_writes_between(match: Match) -> bool:
    return any(writes(each) for node in _nodes_between(match) for each in (node, *_inner_nodes(node)))


def _inner_nodes(node: Node) -> list[Node]:
    return [each for block in node.blocks for each in block.all_nodes()]


def _may_move(match: Match, aliases: AliasDb | None) -> bool:
    """Return whether all of a match can be computed at its last node: nothing uses it before, and nothing between writes to its
    inputs."""
    between = _nodes_between(match)
    for node in _moved_nodes(match):
        for value in node.outputs:
            if any(use.user in between for use in value.uses):
                return False
    touched = list(match.values.values())
    return aliases is None or not any(aliases.writes_to_alias(node, touched) for node in between)


def _replace(wanted: Graph, match: Match, body: Graph, moved: _Replaced) -> None:
    inputs = [match.values[value] for value in wanted.inputs]
    before = match.anchor.previous
    made = insert_graph(match.anchor, body, inputs)
    node = before.next
    while node is not match.anchor:
        node.source_range, node.scope = match.anchor.source_range, match.anchor.scope
        node = node.next
    for value, new in zip(wanted.outputs, made, strict=True):
        old: Value = match.values[value]
        moved[old] = new
        new.set_type(old.type)
        old.replace_all_uses_with(new)
    for actual in reversed(list(dict.fromkeys(sorted(match.nodes.values(), key=_order)))):
        if actual.block is not None and not actual.has_uses:
            actual.destroy()


def _order(node: Node) -> int:
    return node.position
