"""PeepholeNonTensor: fold trivial arithmetic and comparisons of numbers.

Requires: SSA. Guarantees: no `x + 0`, `x - 0`, `x * 1`, `x // 1` or `x / 1.` of ints or floats is left where it is `x`, no
comparison of an int with itself, no `not` of a comparison of ints, no double `not`, no rounding of an int, no sum of an
int and two constants, and no constant before an int in a sum or product.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Graph, Node, Value
from rushlight.jit.operators.numbers import wrapped
from rushlight.jit.passes.helpers import constant_before, insert_before, nodes_inside_out
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.types.kinds import BOOL, FLOAT, INT, STRING

_LOG = PassLog(__file__)
_NEUTRAL = {"aten::add": 0, "aten::sub": 0, "aten::mul": 1, "aten::floordiv": 1, "aten::div": 1}
_SUMS = frozenset(("aten::add", "aten::sub"))
_COMMUTES = frozenset(("aten::add", "aten::mul"))
_REFLEXIVE = {"aten::eq": True, "aten::le": True, "aten::ge": True, "aten::ne": False, "aten::lt": False, "aten::gt": False}
_OPPOSITE = {"aten::eq": "aten::ne", "aten::ne": "aten::eq", "aten::lt": "aten::ge", "aten::ge": "aten::lt",
             "aten::gt": "aten::le", "aten::le": "aten::gt"}  # fmt: skip


@graph_pass("PeepholeOptimizeNonTensor")
def peephole_optimize_non_tensor(graph: Graph) -> bool:
    """Simplify expressions of numbers; returns whether there were any."""
    changed = False
    for node in list(nodes_inside_out(graph.block)):
        if len(node.outputs) != 1 or not node.has_uses:
            continue
        changed |= _move_constant_last(node)
        found = next((each for each in (rule(node) for rule in _RULES) if each is not None), None)
        if found is not None and _LOG.permits("{} is replaced by %{}", node, found.debug_name):
            node.output.replace_all_uses_with(found)
            changed = True
    return changed


def _move_constant_last(node: Node) -> bool:
    """Canonicalize `3 * x` of ints to `x * 3`."""
    if node.kind not in _COMMUTES or node.input_count != 2 or any(value.type != INT for value in (*node.inputs, node.output)):
        return False
    first, second = node.inputs
    if not first.is_constant or second.is_constant or not _LOG.permits("{} has its constant last", node):
        return False
    node.replace_input(0, second)
    node.replace_input(1, first)
    return True


def _without_neutral(node: Node) -> Value | None:
    neutral = _NEUTRAL.get(node.kind)
    if neutral is None or node.input_count != 2 or node.output.type not in (INT, FLOAT):
        return None
    first, second = node.inputs
    if _is_constant(second, neutral) and first.type == node.output.type and not _changes_float(node, first):
        return first
    commuted = node.kind in _COMMUTES and _is_constant(first, neutral) and second.type == node.output.type
    return second if commuted and not _changes_float(node, second) else None


def _changes_float(node: Node, kept: Value) -> bool:
    """Return whether dropping the neutral operand would change a float result: `-0. + 0.` is `0.`, and `7.5 // 1` is 7."""
    return kept.type == FLOAT and node.kind in ("aten::add", "aten::floordiv")


def _is_constant(value: Value, number: int) -> bool:
    constant = value.constant()
    return type(constant) in (int, float) and constant == number


def _fold_self_comparison(node: Node) -> Value | None:
    known = _REFLEXIVE.get(node.kind)
    if known is None or node.input_count != 2 or node.input() is not node.input(1) or node.input().type not in (INT, STRING):
        return None
    return constant_before(node, known)


def _remove_negation(node: Node) -> Value | None:
    """Rewrite `not (a < b)` to `a >= b` for ints, which have no NaN."""
    if node.kind != "aten::__not__":
        return None
    inner = node.input().node
    if inner.kind == "aten::__not__":
        return inner.input()
    opposite = _OPPOSITE.get(inner.kind)
    if opposite is None or inner.input_count != 2 or any(value.type != INT for value in inner.inputs):
        return None
    return insert_before(node, opposite, inner.inputs, BOOL)


def _simplify_rounding(node: Node) -> Value | None:
    """Remove `ceil` and `floor` of an int."""
    is_rounding = node.kind in ("aten::ceil", "aten::floor") and node.input_count == 1
    return node.input() if is_rounding and node.input().type == node.output.type == INT else None


def _combine_constants(node: Node) -> Value | None:
    """Rewrite `x + a - b` to `x - (b - a)`."""
    if node.kind not in _SUMS or not _is_sum_with_constant(node) or not _is_sum_with_constant(node.input().node):
        return None
    inner = node.input().node
    sign = 1 if inner.kind == node.kind else -1
    number = wrapped(node.input(1).constant() + sign * inner.input(1).constant())
    return insert_before(node, node.kind, [inner.input(), constant_before(node, number)], INT)


def _is_sum_with_constant(node: Node) -> bool:
    if node.kind not in _SUMS or node.input_count != 2 or node.output.type != INT:
        return False
    return node.input().type == INT and type(node.input(1).constant()) is int


_RULES = (_without_neutral, _fold_self_comparison, _remove_negation, _simplify_rounding, _combine_constants)
