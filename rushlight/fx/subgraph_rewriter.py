"""replace_pattern: find every place where a graph does what a pattern does, and put a replacement there.

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
from rushlight.fx.tracer import symbolic_trace
from rushlight.nn.modules.module import Module


@dataclass(frozen=True)
class Match:
    """One place: its last node, and for each node of the pattern what stands for it (for inputs, any value)."""

    anchor: Node
    nodes_map: dict[Node, Any]


def replace_pattern(
    gm: GraphModule, pattern: Callable | Module | Graph, replacement: Callable | Module | Graph
) -> list[Match]:
    """Replace every match of `pattern` in `gm` that overlaps no earlier one, and recompile. Returns the matches, in order.

    A match is a set of nodes with the pattern's targets and arguments, of which only the results are used outside. The
    inputs of pattern and replacement correspond by position; RuntimeError where their number, or that of results, differs.
    """
    wanted, made = _graph_of(pattern), _graph_of(replacement)
    _check_same_interface(wanted, made)
    for node in made.nodes:
        if node.op in ("call_module", "get_attr"):
            _provide(gm, replacement, node.target)
    matches, taken = [], set()
    for anchor in list(gm.graph.nodes):
        found = _match_at(wanted, anchor)
        inner = {found.nodes_map[node] for node in _inner_nodes(wanted)} if found else set()
        if found is None or inner & taken:
            continue
        taken |= inner
        matches.append(found)
    replaced: dict[Node, Any] = {}
    for match in matches:
        _replace(gm.graph, wanted, made, match, replaced)
    gm.graph.lint()
    gm.recompile()
    return matches


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
    if not all(isinstance(value, Node) for value in _results(wanted)):
        raise RuntimeError("a pattern must return values that it computes")


def _provide(gm: GraphModule, replacement: Any, target: str) -> None:
    """Give `gm` the submodule or attribute that the replacement names, where it lacks it."""
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


def _match_at(pattern: Graph, anchor: Node) -> Match | None:
    """The match whose node for the pattern's last result is `anchor`."""
    results = _results(pattern)
    bound: dict[Node, Any] = {}
    if not _bind(results[-1], anchor, bound):
        return None
    inner = _inner_nodes(pattern)
    if any(result not in bound for result in results) or len(set(_bound_inner(pattern, bound))) < len(inner):
        return None
    return Match(anchor, bound) if _is_closed(pattern, results, bound) else None


def _bound_inner(pattern: Graph, bound: dict[Node, Any]) -> list[Any]:
    return [bound[node] for node in _inner_nodes(pattern) if node in bound]


def _bind(wanted: Any, value: Any, bound: dict[Node, Any]) -> bool:
    """Whether `value` can stand for `wanted`, which is a node of the pattern or a constant; notes what stands for what."""
    if not isinstance(wanted, Node):
        return _bind_constant(wanted, value, bound)
    if wanted in bound:
        known = bound[wanted]
        return known is value or (not isinstance(known, Node) and not isinstance(value, Node) and known == value)
    if isinstance(value, Node) and any(known is value for known in bound.values()):
        return False  # which stands for another node of the pattern
    if wanted.op == "placeholder":
        bound[wanted] = value
        return True
    if not isinstance(value, Node) or value.op != wanted.op or value.target != wanted.target:
        return False
    if len(value.args) != len(wanted.args) or set(value.kwargs) != set(wanted.kwargs):
        return False
    bound[wanted] = value
    pairs = [*zip(wanted.args, value.args, strict=True), *((wanted.kwargs[key], value.kwargs[key]) for key in wanted.kwargs)]
    return all(_bind(one, other, bound) for one, other in pairs)


def _bind_constant(wanted: Any, value: Any, bound: dict[Node, Any]) -> bool:
    if isinstance(wanted, list | tuple):
        same_kind = isinstance(value, list | tuple) and len(value) == len(wanted)
        return same_kind and all(_bind(one, other, bound) for one, other in zip(wanted, value, strict=True))
    if isinstance(wanted, slice):
        return isinstance(value, slice) and all(
            _bind(getattr(wanted, part), getattr(value, part), bound) for part in ("start", "stop", "step")
        )
    return not isinstance(value, Node) and type(value) is type(wanted) and value == wanted


def _is_closed(pattern: Graph, results: tuple, bound: dict[Node, Any]) -> bool:
    """Whether no value inside the match, other than its results, is used outside."""
    inner = set(_bound_inner(pattern, bound))
    return all(
        set(bound[node].users) <= inner for node in _inner_nodes(pattern) if node not in results
    )


def _replace(graph: Graph, pattern: Graph, made: Graph, match: Match, replaced: dict[Node, Any]) -> None:
    """Insert the replacement after the match's last node, use its results, and erase the match."""
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
