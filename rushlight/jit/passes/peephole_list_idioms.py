"""PeepholeListIdioms: fold operations on constructed lists that nothing writes to.

Requires: SSA. Guarantees: no `aten::len`, `aten::__getitem__` of known index, `prim::ListUnpack`, `aten::slice` of known bounds
or `aten::add` reads a `prim::ListConstruct` that is never written to. With `refine_list_len`, a branch that is only taken
where `len(x) == n` knows that length.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.passes.alias_analysis import AliasDb
from rushlight.jit.passes.dead_code_elimination import eliminate_dead_code
from rushlight.jit.passes.helpers import constant_before, insert_before, list_elements, nodes_inside_out
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass

_LOG = PassLog(__file__)


@graph_pass("PeepholeOptimizeListIdioms", "_jit_pass_peephole_list_idioms")
def peephole_optimize_list_idioms(graph: Graph, refine_list_len: bool = False) -> bool:
    """Fold what is known; returns whether there was anything."""
    aliases, changed = AliasDb(graph), False
    for node in list(nodes_inside_out(graph.block)):
        if not node.inputs or not any(each.node.kind == "prim::ListConstruct" for each in node.inputs):
            continue
        if node.kind in _RULES and not any(aliases.has_writers(value) for value in node.inputs if _is_made(value)):
            changed |= _RULES[node.kind](node, aliases)
    if refine_list_len:
        changed |= _refine(graph.block, aliases)
    if changed:
        eliminate_dead_code(graph)
    return changed


def _is_made(value: Value) -> bool:
    return value.node.kind == "prim::ListConstruct"


def _replace_by(node: Node, value: Value) -> bool:
    if not _LOG.permits("{} is replaced by %{}", node, value.debug_name):
        return False
    node.output.replace_all_uses_with(value)
    return True


def _simplify_length(node: Node, aliases: AliasDb) -> bool:
    elements = list_elements(node.input())
    return elements is not None and node.has_uses and _replace_by(node, constant_before(node, len(elements)))


def _simplify_element(node: Node, aliases: AliasDb) -> bool:
    elements, index = list_elements(node.input()), node.input(1).constant()
    if elements is None or type(index) is not int or not -len(elements) <= index < len(elements) or not node.has_uses:
        return False
    return _replace_by(node, elements[index])


def _simplify_unpack(node: Node, aliases: AliasDb) -> bool:
    elements = list_elements(node.input())
    if elements is None or len(elements) != len(node.outputs) or not node.has_uses:
        return False
    if not _LOG.permits("{} reads the elements directly", node):
        return False
    for value, element in zip(node.outputs, elements, strict=True):
        value.replace_all_uses_with(element)
    return True


def _simplify_slice(node: Node, aliases: AliasDb) -> bool:
    elements = list_elements(node.input())
    bounds = [value.constant(NotImplemented) for value in node.inputs[1:]]
    if elements is None or NotImplemented in bounds or not _may_be_made_anew(node, aliases):
        return False
    return _simplify_new_list(node, elements[slice(*bounds)])


def _simplify_sum(node: Node, aliases: AliasDb) -> bool:
    if node.input_count != 2:
        return False
    first, second = map(list_elements, node.inputs)
    if first is None or second is None or not _may_be_made_anew(node, aliases):
        return False
    return _simplify_new_list(node, first + second)


def _may_be_made_anew(node: Node, aliases: AliasDb) -> bool:
    return node.has_uses and not aliases.has_writers(node.output)


def _simplify_new_list(node: Node, elements: list[Value]) -> bool:
    return _replace_by(node, insert_before(node, "prim::ListConstruct", elements, node.output.type))


_RULES = {
    "aten::len": _simplify_length,
    "aten::__getitem__": _simplify_element,
    "prim::ListUnpack": _simplify_unpack,
    "aten::slice": _simplify_slice,
    "aten::add": _simplify_sum,
}


# Refine lengths in branches


def _refine(block: Block, aliases: AliasDb) -> bool:
    """Replace `len(x)` by n in the branch of `if len(x) == n`."""
    changed = False
    for node in block.nodes:
        if node.kind == "prim::If":
            found = _compared_length(node)
            if found is not None:
                values, length, branch = found
                changed |= _use_length(node.blocks[branch], values, length, aliases)
        for inner in node.blocks:
            changed |= _refine(inner, aliases)
    return changed


def _compared_length(node: Node) -> tuple[Value, int, int] | None:
    check = node.input().node
    if check.kind not in ("aten::eq", "aten::ne"):
        return None
    for own, other in (check.inputs, check.inputs[::-1]):
        if own.node.kind == "aten::len" and type(other.constant()) is int:
            return own.node.input(), other.constant(), 0 if check.kind == "aten::eq" else 1
    return None


def _use_length(block: Block, values: Value, length: int, aliases: AliasDb) -> bool:
    if aliases.has_writers(values):
        return False
    changed = False
    for node in list(block.all_nodes()):
        if node.kind == "aten::len" and node.input() is values and node.has_uses:
            changed |= _replace_by(node, constant_before(node, length))
    return changed
