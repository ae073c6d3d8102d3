"""replace_pattern: find the subgraphs that match a pattern, and replace them.

In: a GraphModule, a pattern and a replacement (functions, modules or graphs). Out: the module, changed in place, and the
matches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, map_arg
from rushlight.fx.passes.utils.matcher_utils import InternalMatch, SubgraphMatcher
from rushlight.fx.tracer import symbolic_trace
from rushlight.nn.modules.module import Module


@dataclass(frozen=True)
class Match:
    """One place: its last node, and for each node of the pattern what stands for it (for inputs, any value)."""

    anchor: Node
    nodes_map: dict[Node, Any]


@dataclass
class ReplacedPatterns:
    """One place, as `Match`, and the nodes that are there now."""

    anchor: Node
    nodes_map: dict[Node, Any]
    replacements: list[Node]


def replace_pattern(
    gm: GraphModule, pattern: Callable | Module | Graph, replacement: Callable | Module | Graph
) -> list[Match]:
    """Replace every match of `pattern` in `gm` that overlaps no earlier one, and recompile. Returns the matches, in order.

    A match is a set of nodes with the pattern's targets and arguments, of which only the results are used outside. The
    inputs of pattern and replacement correspond by position; RuntimeError where their number, or that of results, differs.
    """
    return [Match(done.anchor, done.nodes_map) for done in replace_pattern_with_filters(gm, pattern, replacement)]


def replace_pattern_with_filters(
    gm: GraphModule, pattern: Callable | Module | Graph, replacement: Callable | Module | Graph | None = None,
    match_filters: list[Callable[[InternalMatch, Graph, Graph], bool]] | None = None, ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
) -> list[ReplacedPatterns]:  # fmt: skip
    """As `replace_pattern`, where the matches are chosen, and the replacement may depend on the match.

    Args:
        match_filters: functions of (match, graph, pattern's graph); a match is replaced where all of them return True.
        ignore_literals: have constants of the pattern match any constant.
        replacement_callback: gives the replacement's graph for a match, in place of `replacement`; ValueError without either.
    """
    if replacement is None and replacement_callback is None:
        raise ValueError("Must provide either replacement or replacement_callback")
    wanted = _graph_of(pattern)
    if not all(isinstance(value, Node) for value in _results(wanted)):
        raise RuntimeError("a pattern must return values that it computes")
    found = [
        match for match in SubgraphMatcher(wanted, ignore_literals=ignore_literals).match(gm.graph)
        if all(chooses(match, gm.graph, wanted) for chooses in match_filters or ())
    ]  # fmt: skip
    fixed = None if replacement is None else _graph_of(replacement)
    if fixed is not None:
        _check_same_interface(wanted, fixed)
    done, replaced = [], {}
    for match in found:
        made = fixed if replacement_callback is None else replacement_callback(match, gm.graph, wanted)
        _check_same_interface(wanted, made)
        for node in made.nodes:
            if node.op in ("call_module", "get_attr"):
                _provide(gm, replacement if replacement is not None else made.owning_module, node.target)
        nodes = _replace(gm.graph, wanted, made, match, replaced)
        done.append(ReplacedPatterns(match.anchors[0], match.nodes_map, nodes))
    gm.delete_all_unused_submodules()
    gm.graph.lint()
    gm.recompile()
    return done


def _graph_of(program: Callable | Module | Graph) -> Graph:
    if isinstance(program, Graph):
        return program
    return (program if isinstance(program, GraphModule) else symbolic_trace(program)).graph


def _inputs(graph: Graph) -> list[Node]:
    return graph.find_nodes(op="placeholder")


def _inner_nodes(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if node.op not in ("placeholder", "output")]


def _results(graph: Graph) -> tuple:
    value = graph.output_node().args[0]
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _check_same_interface(wanted: Graph, made: Graph) -> None:
    for what, one, other in (
        ("inputs", len(_inputs(wanted)), len(_inputs(made))), ("results", len(_results(wanted)), len(_results(made))),
    ):  # fmt: skip
        if one != other:
            raise RuntimeError(f"the pattern has {one} {what} and the replacement {other}; they must be as many")


def _provide(gm: GraphModule, replacement: Any, target: str) -> None:
    """Give `gm` the submodule or attribute that the replacement names, if it lacks it."""
    try:
        gm.get_submodule(target)
        return
    except AttributeError:
        pass
    owner = gm
    for atom in target.split("."):
        owner = getattr(owner, atom, None)
    if owner is not None:
        return
    if not isinstance(replacement, Module):
        raise RuntimeError(f"the replacement uses {target}, which the module that it goes into lacks")
    found: Any = replacement
    for atom in target.split("."):
        found = getattr(found, atom)
    if isinstance(found, Module):
        gm.add_submodule(target, found)
    else:
        setattr(gm, target, found)


def _replace(graph: Graph, pattern: Graph, made: Graph, match: InternalMatch, replaced: dict[Node, Any]) -> list[Node]:
    """Insert the replacement after the match's last node, use its results, and erase the match. Return the new nodes."""
    for old in _inputs(pattern):
        found = match.nodes_map.get(old)
        match.nodes_map[old] = replaced.get(found, found) if isinstance(found, Node) else found
    current = {new: match.nodes_map[old] for old, new in zip(_inputs(pattern), _inputs(made), strict=True)}
    inner = [match.nodes_map[node] for node in _inner_nodes(pattern)]
    last = max(inner, key={node: position for position, node in enumerate(graph.nodes)}.__getitem__)
    with graph.inserting_after(last):
        for node in _inner_nodes(made):
            current[node] = graph.node_copy(node, current.__getitem__)
    new_results = map_arg(_results(made), current.__getitem__)
    for old, new in zip(_results(pattern), new_results, strict=True):
        node = match.nodes_map[old]
        node.replace_all_uses_with(new, delete_user_cb=lambda user: user not in inner)
        replaced[node] = new
    for node in reversed([node for node in graph.nodes if node in inner]):
        graph.erase_node(node)
    return [current[node] for node in _inner_nodes(made)]
