"""ConstantPropagation: evaluate nodes that depend only on constants.

Requires: SSA. Guarantees: no pure node whose inputs are all constant, and whose results can be constants, is left; an if whose
condition is constant is the branch that it takes; a loop that never runs is gone; results of ifs and loops that are always one
outer value are that value.

Mutable results are only folded where nothing writes to them. `ConstantPropagationImmutableTypes` does not fold tensors, lists
and dicts, so it needs no alias analysis.
"""

from __future__ import annotations

from collections.abc import Callable

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.tensor import Tensor
from rushlight.jit.constants import constant_type
from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.operators.lookup import has_side_effects, operator_of, writes
from rushlight.jit.passes.alias_analysis import AliasDb, is_mutable
from rushlight.jit.passes.constant_pooling import frozen_constant
from rushlight.jit.passes.dead_code_elimination import eliminate_dead_code, eliminate_unused_code
from rushlight.jit.passes.helpers import is_nondeterministic, splice_block
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.runtime.primitives import PRIMITIVES
from rushlight.jit.types.kinds import ListType, OptionalType, TensorType, TupleType, Type
from rushlight.jit.types.relations import is_subtype

_LOG = PassLog(__file__)
_SKIPPED = frozenset(
    ("prim::If", "prim::Loop", "prim::Closure", "prim::Constant", "prim::AutogradZero", "prim::Uninitialized", "prim::Guard",
     "prim::profile", "prim::profile_ivalue", "prim::unchecked_unwrap_optional", "prim::awaitable", "aten::dequantize",
     "prim::unchecked_cast", "prim::isinstance", "aten::is_grad_enabled", "prim::CreateObject", "prim::GetAttr", "prim::fork",
     "prim::DifferentiableGraph", "prim::FusionGroup", "prim::TensorExprGroup", "aten::_get_tracing_state",
     "prim::CallFunction", "prim::CallMethod")
)  # fmt: skip
_MAX_CONSTANT = 1_000_000
"""Tensors of more elements are not kept as constants."""


@graph_pass("ConstantPropagation", "_jit_pass_constant_propagation")
def constant_propagation(graph: Graph) -> bool:
    """Fold constants; returns whether there was anything to fold."""
    changed = _propagate(graph, AliasDb(graph))
    eliminate_dead_code(graph)
    return changed


@graph_pass("ConstantPropagationImmutableTypes", "_jit_pass_constant_propagation_immutable_types")
def constant_propagation_immutable_types(graph: Graph) -> bool:
    """Fold constants of immutable types; returns whether there was anything to fold."""
    changed = _propagate(graph, None)
    if changed:
        eliminate_unused_code(graph)
    return changed


def _propagate(graph: Graph, aliases: AliasDb | None) -> bool:
    return _Propagator(graph, aliases).block(graph.block)


class _Propagator:
    def __init__(self, graph: Graph, aliases: AliasDb | None):
        self.graph = graph
        self.aliases = aliases

    def block(self, block: Block) -> bool:
        """Propagate through a block; returns whether anything changed."""
        changed = False
        for node in block.nodes:
            if node.kind == "prim::If":
                changed |= self._propagate_if(node)
            elif node.kind == "prim::Loop":
                changed |= self._propagate_loop(node)
            else:
                for inner in node.blocks:
                    changed |= self.block(inner)
                if not node.blocks and self._is_supported(node):
                    changed |= self._fold(node)
        return changed

    # Fold nodes

    def _is_supported(self, node: Node) -> bool:
        if node.kind in _SKIPPED or not node.outputs or not all(value.is_constant for value in node.inputs):
            return False
        if has_side_effects(node) or is_nondeterministic(node) or writes(node):
            return False
        if self.aliases is None:
            return not any(is_mutable(value.type) for value in (*node.inputs, *node.outputs))
        return not self.aliases.node_has_writers(node)

    def _fold(self, node: Node) -> bool:
        results = run_node(node)
        if results is None:
            return False
        pairs = list(zip(node.outputs, results, strict=True))
        kinds = [_kept_type(value, result) for value, result in pairs]
        if None in kinds or not _LOG.permits("{} gives {}", node, results):
            return False
        for (value, result), kind in zip(pairs, kinds, strict=True):
            made = self.graph.create("prim::Constant").insert_before(node)
            made.source_range, made.scope = node.source_range, node.scope
            if result is not None:
                made.set("value", result)
            made.output.set_type(kind)
            value.replace_all_uses_with(made.output)
        node.destroy()
        return True

    # Propagate through ifs

    def _propagate_if(self, node: Node) -> bool:
        condition = node.input().constant()
        if isinstance(condition, bool) and _LOG.permits("the condition of {} is {}", node, condition):
            taken = node.blocks[0 if condition else 1]
            self.block(taken)
            splice_block(node, taken)
            node.destroy()
            return True
        changed = False
        for block in node.blocks:
            changed |= self.block(block)
        return self._drop_if_outputs(node) or changed

    def _drop_if_outputs(self, node: Node) -> bool:
        """Drop results that both branches take from the same value, or that are equal constants."""
        changed = False
        for index in range(len(node.outputs) - 1, -1, -1):
            first, second = (block.outputs[index] for block in node.blocks)
            if first is second:
                node.outputs[index].replace_all_uses_with(first)
            elif _equal_constants(first, second):
                copy = self.graph.clone_node(first.node, lambda value: value).insert_before(node)
                node.outputs[index].replace_all_uses_with(copy.output)
            else:
                continue
            node.erase_output(index)
            for block in node.blocks:
                block.erase_output(index)
            changed = True
        return changed

    # Propagate through loops

    def _propagate_loop(self, node: Node) -> bool:
        trips, condition = node.input().constant(), node.input(1).constant()
        if (type(trips) is int and trips < 1) or condition is False:
            if _LOG.permits("{} never runs", node):
                for value, begin in zip(node.outputs, node.inputs[2:], strict=True):
                    value.replace_all_uses_with(begin)
                node.destroy()
                return True
        changed = self.block(node.blocks[0])
        return self._drop_carried(node) or changed

    def _drop_carried(self, node: Node) -> bool:
        """Drop carried values that the body passes on unchanged."""
        body, changed = node.blocks[0], False
        for index in range(len(node.outputs) - 1, -1, -1):
            begin, inside, end = node.input(index + 2), body.inputs[index + 1], body.outputs[index + 1]
            if end is not inside:
                continue
            node.outputs[index].replace_all_uses_with(begin)
            inside.replace_all_uses_with(begin)
            node.erase_output(index)
            node.remove_input(index + 2)
            body.erase_output(index + 1)
            body.erase_input(index + 1)
            changed = True
        return changed


def _equal_constants(first: Value, second: Value) -> bool:
    if not (first.is_constant and second.is_constant and first.type == second.type) or is_mutable(first.type):
        return False
    try:
        return frozen_constant(first.constant()) == frozen_constant(second.constant())
    except TypeError:
        return False


def _kept_type(value: Value, result: object) -> Type | None:
    """Return the type of a result as a constant; None if it can't be one."""
    found = _type_of(result)
    if isinstance(result, Tensor):
        return found if isinstance(value.type, TensorType | OptionalType) else None
    if result == [] and isinstance(value.type, ListType):
        return value.type
    if found is None or (isinstance(found, TupleType | ListType) and _holds_tensors(found)):
        return None
    if isinstance(value.type, OptionalType) or result is None:
        return found if is_subtype(found, value.type) else None
    return value.type if is_subtype(found, value.type) and value.type.ir_text != "Scalar" else found


def _holds_tensors(kind: Type) -> bool:
    return any(isinstance(part, TensorType) or _holds_tensors(part) for part in kind.contained())


def _type_of(result: object) -> Type | None:
    if not isinstance(result, Tensor):
        return constant_type(result)
    if result.requires_grad or result.numel() > _MAX_CONSTANT or result.device.type != "cpu":
        return None
    return TensorType(result.dtype, tuple(result.shape), tuple(result.stride()), False, "cpu")


def run_node(node: Node) -> list | None:
    """Return the results of a node whose inputs are constants; None if they can't be computed, for example because it
    raises.
    """
    function = _function_of(node)
    if function is None:
        return None
    arguments = [_copy_constant(value.constant()) for value in node.inputs]
    try:
        with no_grad():
            result = function(*arguments)
    except Exception as error:  # the node stays, and raises the error at run time if it is reached
        _LOG.debug("{} raises {}", node, error)
        return None
    if len(node.outputs) == 1:
        return [result]
    return list(result) if isinstance(result, list | tuple) and len(result) == len(node.outputs) else None


def _function_of(node: Node) -> Callable | None:
    made = _MAKERS.get(node.kind)
    if made is not None:
        return made(node)
    if node.kind in PRIMITIVES:
        return PRIMITIVES[node.kind](node)
    operator = operator_of(node)
    return None if operator is None or operator.schema.is_vararg else operator.function


def _make_tuple(node: Node) -> Callable | None:
    kind = node.output.type
    return None if isinstance(kind, TupleType) and kind.name is not None else lambda *values: tuple(values)


_MAKERS: dict[str, Callable[[Node], Callable | None]] = {
    "prim::ListConstruct": lambda node: lambda *values: list(values),
    "prim::TupleConstruct": _make_tuple,
    "prim::DictConstruct": lambda node: lambda *parts: dict(zip(parts[::2], parts[1::2], strict=True)),
    "prim::TupleUnpack": lambda node: lambda values: list(values) if len(node.outputs) > 1 else values[0],
    "prim::ListUnpack": lambda node: lambda values: list(values) if len(node.outputs) > 1 else values[0],
}


def _copy_constant(value: object) -> object:
    """Return a copy of a constant, which an operator may keep."""
    if isinstance(value, list):
        return list(map(_copy_constant, value))
    return dict(value) if isinstance(value, dict) else value
