"""RemoveListMutation and RemoveTensorMutation: merge writes into the creation of a new list or tensor.

Requires: SSA. Guarantees: no `append`, `insert` or item assignment to a list that is made in the same block and not read in
between; no in-place operator on a tensor that is made in the same block, is no view, and is not read in between, where an
operator exists that gives the result as a new tensor. Uses after the write read the new value.
"""

from __future__ import annotations

from collections.abc import Callable

from rushlight.jit.ir.graph import Graph, Node, Value
from rushlight.jit.passes.alias_analysis import AliasDb
from rushlight.jit.passes.functional_forms import functional_kind, insert_functional
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass

_LOG = PassLog(__file__)
_LIST_WRITES = frozenset(("aten::append", "aten::insert", "aten::_set_item"))


@graph_pass("RemoveListMutation")
def remove_list_mutation(graph: Graph) -> bool:
    """Merge writes into lists; returns whether there were any."""
    return _repeat(graph, _rewrite_list)


@graph_pass("RemoveTensorMutation")
def remove_tensor_mutation(graph: Graph, only: Callable[[Node], bool] | None = None) -> bool:
    """Merge writes into tensors; returns whether there were any. `only` selects among the writing nodes."""
    return _repeat(graph, lambda node, aliases: (only is None or only(node)) and _rewrite_tensor(node, aliases))


@graph_pass("RemoveMutation", "_jit_pass_remove_mutation")
def remove_mutation(graph: Graph) -> bool:
    """Remove the mutation of lists and of tensors; return whether the graph changed."""
    changed = remove_list_mutation(graph)
    return remove_tensor_mutation(graph) or changed


def _repeat(graph: Graph, rewrite: Callable[[Node, AliasDb], bool]) -> bool:
    """Rewrite nodes in order, with alias information updated after each change."""
    aliases, changed = AliasDb(graph), False
    for node in list(graph.all_nodes()):
        if rewrite(node, aliases):
            aliases, changed = AliasDb(graph), True
    return changed


def _is_made_for(node: Node, aliases: AliasDb) -> bool:
    """Return whether the written value is created in the same block, aliases nothing older, and is not read before."""
    written = node.input()
    maker = written.node
    if maker.block is not node.block or maker.kind in ("prim::Param", "prim::Constant", "prim::If", "prim::Loop"):
        return False
    if aliases.escapes(written) or any(aliases.may_alias(value, written) for value in maker.inputs):
        return False
    uses = [use for value in aliases.aliases_of(written) for use in value.uses]
    return all(use.user is node or use.user.is_after(node) for use in uses)


def _replace_written(node: Node, made: Value) -> None:
    """Make uses after the write read the new value."""
    written = node.input()
    for value in node.outputs:
        value.replace_all_uses_with(made)
    written.replace_uses_after(node, made)
    node.destroy()


# Writes to lists


def _rewrite_list(node: Node, aliases: AliasDb) -> bool:
    if node.kind not in _LIST_WRITES or node.input().node.kind != "prim::ListConstruct" or not _is_made_for(node, aliases):
        return False
    elements = _elements_after(node)
    if elements is None or not _LOG.permits("{} becomes part of the list's making", node):
        return False
    old = node.input()
    made = node.graph.create("prim::ListConstruct", elements).insert_before(node)
    made.source_range = node.source_range
    _replace_written(node, made.output.set_type(old.type))
    if not old.uses:
        old.node.destroy()
    return True


def _elements_after(node: Node) -> list[Value] | None:
    """Return a list's elements after a write; None if unknown."""
    elements = list(node.input().node.inputs)
    if node.kind == "aten::append":
        return [*elements, node.input(1)]
    index = node.input(1).constant()
    if type(index) is not int:
        return None
    if node.kind == "aten::insert":
        elements.insert(index, node.input(2))
        return elements
    if not -len(elements) <= index < len(elements):
        return None
    elements[index] = node.input(2)
    return elements


# Writes to tensors


def _rewrite_tensor(node: Node, aliases: AliasDb) -> bool:
    kind = functional_kind(node)
    if kind is None or not _is_made_for(node, aliases) or not _LOG.permits("{} becomes {}", node, kind):
        return False
    _replace_written(node, insert_functional(node, kind).output)
    return True
