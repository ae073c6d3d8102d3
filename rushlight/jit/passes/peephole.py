"""Peephole: small rewrites of a node and the producers of its inputs.

Requires: SSA. Guarantees: none of the patterns of `_RULES` is left, nor those of the idioms of lists, dicts, numbers and of
writes (`peephole_list_idioms.py`, `peephole_dict_idioms.py`, `peephole_non_tensor.py`, `peephole_alias_sensitive.py`), which it
runs, too. Rules that read sizes and dtypes from types are left out with `disable_shape_peepholes`: types of a trace hold for
its example alone.
"""

from __future__ import annotations

from collections.abc import Callable

from rushlight.core.device import device
from rushlight.jit.enumerations import dtype_number
from rushlight.jit.ir.graph import Graph, Node, Value
from rushlight.jit.passes.alias_analysis import AliasDb
from rushlight.jit.passes.dead_code_elimination import eliminate_dead_code
from rushlight.jit.passes.helpers import constant_before, insert_before, int_list_before, nodes_inside_out
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.peephole_alias_sensitive import peephole_optimize_alias_sensitive
from rushlight.jit.passes.peephole_dict_idioms import peephole_optimize_dict_idioms
from rushlight.jit.passes.peephole_list_idioms import peephole_optimize_list_idioms
from rushlight.jit.passes.peephole_non_tensor import peephole_optimize_non_tensor
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.types.kinds import (
    ANY,
    BOOL,
    NONE,
    EnumType,
    InterfaceType,
    NumberType,
    OptionalType,
    TensorType,
    Type,
    UnionType,
)
from rushlight.jit.types.relations import is_subtype, members_of

_LOG = PassLog(__file__)


@graph_pass("PeepholeOptimize", "_jit_pass_peephole")
def peephole_optimize(graph: Graph, disable_shape_peepholes: bool = False) -> bool:
    """Rewrite until nothing matches; returns whether anything did."""
    changed = _rewrite(graph, _RULES if disable_shape_peepholes else {**_SHAPE_RULES, **_RULES})
    changed |= not disable_shape_peepholes and _known_sizes(graph)
    changed |= peephole_optimize_list_idioms(graph)
    changed |= peephole_optimize_dict_idioms(graph)
    changed |= peephole_optimize_alias_sensitive(graph, not disable_shape_peepholes)
    changed |= peephole_optimize_non_tensor(graph)
    eliminate_dead_code(graph)
    return changed


def _rewrite(graph: Graph, rules: dict[str, Callable[[Node], Value | None]]) -> bool:
    changed = False
    for node in list(nodes_inside_out(graph.block)):
        rule = rules.get(node.kind)
        if node.kind != "prim::Constant":
            changed |= _simplify_none_for_none(node)
        if node.kind == "prim::If":
            changed |= _simplify_if(node)
        elif rule is not None and len(node.outputs) == 1 and node.has_uses:
            found = rule(node)
            if found is not None and _LOG.permits("{} is replaced by %{}", node, found.debug_name):
                node.output.replace_all_uses_with(found)
                changed = True
    return changed


def _simplify_none_for_none(node: Node) -> bool:
    """Replace a value that can only be None by the constant None."""
    changed = False
    for value in node.outputs:
        if value.type is NONE and value.uses and _LOG.permits("%{} can only be None", value.debug_name):
            value.replace_all_uses_with(constant_before(node, None))
            changed = True
    return changed


# Simplify ifs


def _simplify_if(node: Node) -> bool:
    """Rewrite `True if c else False` to `c`; with the branches swapped, to `not c`."""
    changed = False
    for index, value in enumerate(node.outputs):
        ends = tuple(block.outputs[index].constant() for block in node.blocks)
        if value.type != BOOL or not value.uses or ends not in ((True, False), (False, True)):
            continue
        if not _LOG.permits("the result %{} of an if is its condition", value.debug_name):
            continue
        if ends[0]:
            value.replace_all_uses_with(node.input())
        else:
            negated = insert_before(node, "aten::__not__", [node.input()], BOOL)
            value.replace_all_uses_with(negated)
        changed = True
    return changed


# Rules: each returns the replacement of a node's result, or None


def _simplify_twice_transposed(node: Node) -> Value | None:
    inner = node.input().node
    return inner.input() if inner.kind == "aten::t" else None


def _expand(node: Node) -> Value | None:
    """Return an expansion to the size that the tensor already has."""
    kind = node.input().type
    sizes = node.input(1).constant()
    known = isinstance(kind, TensorType) and kind.sizes is not None and None not in kind.sizes
    return node.input() if known and sizes == list(kind.sizes) else None


def _simplify_type_as(node: Node) -> Value | None:
    own, other = (value.type for value in node.inputs)
    known = all(isinstance(kind, TensorType) and kind.dtype is not None and kind.device is not None for kind in (own, other))
    return node.input() if known and own.dtype == other.dtype and own.device == other.device else None


def _number_of_tensor(node: Node) -> Value | None:
    """Return a number converted to a tensor and back to the same type."""
    made = node.input().node
    if made.kind != "prim::NumToTensor" or made.input().type != node.output.type:
        return None
    return made.input()


def _sum_to_size(node: Node) -> Value | None:
    """Return a sum to an unspecified size, or one whose only use is a sum to another size."""
    if node.input(1).is_none:
        return node.input()
    for use in list(node.output.uses):
        if use.user.kind == "aten::_grad_sum_to_size" and use.offset == 0:
            use.user.replace_input(0, node.input())
    return None


def _simplify_unwrap(node: Node) -> Value | None:
    value = node.input()
    return value if not _may_be_none(value.type) else None


def _may_be_none(kind: Type) -> bool:
    return kind is ANY or kind is NONE or isinstance(kind, OptionalType) or NONE in members_of(kind)


def _simplify_cast(node: Node) -> Value | None:
    value = node.input()
    if value.type == node.output.type:
        return value
    keeps = not isinstance(value.type, OptionalType | UnionType | NumberType | InterfaceType) and value.type is not ANY
    return value if keeps and is_subtype(value.type, node.output.type) else None


def _is_none(node: Node) -> Value | None:
    """Return a comparison with None that static types decide."""
    negated = node.kind == "aten::__isnot__"
    kinds = [value.type for value in node.inputs]
    if NONE not in kinds:
        return None
    other = kinds[1] if kinds[0] is NONE else kinds[0]
    if other is NONE:
        return constant_before(node, not negated)
    return constant_before(node, negated) if not _may_be_none(other) and not _is_undefined_tensor(other) else None


def _is_undefined_tensor(kind: Type) -> bool:
    """Return an absent tensor is None at run time."""
    return isinstance(kind, TensorType) and kind.undefined is not None and kind.undefined


def _simplify_dim(node: Node) -> Value | None:
    kind = node.input().type
    return constant_before(node, len(kind.sizes)) if isinstance(kind, TensorType) and kind.sizes is not None else None


def _simplify_size_of_dimension(node: Node) -> Value | None:
    if node.input_count != 2:
        return None
    kind, dim = node.input().type, node.input(1).constant()
    if not isinstance(kind, TensorType) or kind.sizes is None or type(dim) is not int:
        return None
    if not -len(kind.sizes) <= dim < len(kind.sizes) or kind.sizes[dim] is None:
        return None
    return constant_before(node, kind.sizes[dim])


def _simplify_dtype(node: Node) -> Value | None:
    kind = node.input().type
    return constant_before(node, dtype_number(kind.dtype)) if isinstance(kind, TensorType) and kind.dtype is not None else None


def _simplify_device(node: Node) -> Value | None:
    kind = node.input().type
    return constant_before(node, device(kind.device)) if isinstance(kind, TensorType) and kind.device is not None else None


def _simplify_on_device(name: str) -> Callable[[Node], Value | None]:
    def rule(node: Node) -> Value | None:
        kind = node.input().type
        if not isinstance(kind, TensorType) or kind.device is None:
            return None
        return constant_before(node, kind.device.partition(":")[0] == name)

    return rule


def _simplify_of_dtype(attribute: str) -> Callable[[Node], Value | None]:
    def rule(node: Node) -> Value | None:
        kind = node.input().type
        if not isinstance(kind, TensorType) or kind.dtype is None:
            return None
        return constant_before(node, getattr(kind.dtype, attribute))

    return rule


def _is_enum_member(node: Node) -> Value | None:
    """Return the name or value of a constant enumeration member."""
    value = node.input()
    member = value.constant()
    if not value.is_constant or not isinstance(value.type, EnumType):
        return None
    found = getattr(member, "name" if node.kind == "prim::EnumName" else "value", None)
    return None if found is None else constant_before(node, found)


def _known_sizes(graph: Graph) -> bool:
    """Replace sizes of tensors with complete types by constants, where nothing writes to the lists."""
    asked = [node for node in graph.all_nodes() if node.kind == "aten::size" and node.input_count == 1]
    if not asked:
        return False
    aliases, changed = AliasDb(graph), False
    for node in asked:
        kind = node.input().type
        known = isinstance(kind, TensorType) and kind.sizes is not None and None not in kind.sizes
        if not known or not node.has_uses or aliases.has_writers(node.output):
            continue
        if _LOG.permits("{} is {}", node, kind.sizes):
            node.output.replace_all_uses_with(int_list_before(node, kind.sizes))
            changed = True
    return changed


_RULES: dict[str, Callable[[Node], Value | None]] = {
    "aten::t": _simplify_twice_transposed,
    "aten::_grad_sum_to_size": _sum_to_size,
    "aten::Float": _number_of_tensor,
    "aten::Int": _number_of_tensor,
    "aten::Bool": _number_of_tensor,
    "aten::Complex": _number_of_tensor,
    "aten::FloatImplicit": _number_of_tensor,
    "aten::IntImplicit": _number_of_tensor,
    "aten::ScalarImplicit": _number_of_tensor,
    "aten::_unwrap_optional": _simplify_unwrap,
    "prim::unchecked_unwrap_optional": _simplify_unwrap,
    "prim::unchecked_cast": _simplify_cast,
    "aten::__is__": _is_none,
    "aten::__isnot__": _is_none,
    "prim::EnumName": _is_enum_member,
    "prim::EnumValue": _is_enum_member,
}
_SHAPE_RULES: dict[str, Callable[[Node], Value | None]] = {
    "aten::expand": _expand,
    "aten::type_as": _simplify_type_as,
    "aten::dim": _simplify_dim,
    "aten::size": _simplify_size_of_dimension,
    "prim::dtype": _simplify_dtype,
    "prim::device": _simplify_device,
    "prim::is_cuda": _simplify_on_device("cuda"),
    "prim::is_cpu": _simplify_on_device("cpu"),
    "aten::is_floating_point": _simplify_of_dtype("is_floating_point"),
    "aten::is_complex": _simplify_of_dtype("is_complex"),
}
