"""PropagateInputShapes: infer tensors' dtypes, sizes and strides from the types of the graph's inputs.

Requires: SSA; the inputs' types hold all facts that may be used. Guarantees: the types of all values follow from them; unknown
ones are `Tensor`.

A node whose other arguments are known is run on meta tensors, which have sizes but no elements. For an unknown size it is run
with two sizes, and differences between the results are unknown, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.tensor import Tensor
from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.operators.lookup import operator_of
from rushlight.jit.passes.helpers import list_elements
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.types.kinds import ListType, OptionalType, TensorType, Type
from rushlight.jit.types.relations import unify, unshaped
from rushlight.ops.packet import find_packet

_LOG = PassLog(__file__)
_PROBES = (7, 11)
"""Sizes that stand for an unknown one."""
_UNKNOWN = object()
_MAX_SIZE = 1 << 40
_SAY_TYPES = frozenset(("prim::Constant", "prim::Guard", "prim::BailOut"))
"""Nodes whose results are of the types that stand there, whatever their inputs are."""


@graph_pass("PropagateInputShapes")
def propagate_input_shapes(graph: Graph) -> None:
    """Set the types of all values from those of the inputs."""
    _erase_block(graph.block)
    _Propagator().block(graph.block)


@graph_pass("CompleteShapeAnalysis", "_jit_pass_complete_shape_analysis")
def complete_shape_analysis(graph: Graph, inputs: Sequence[object], with_grad: bool = False) -> None:
    """Set the types of the inputs from example arguments, then all others."""
    for value, example in zip(graph.inputs, inputs, strict=True):
        if isinstance(example, Tensor):
            value.type = type_of_tensor(example, with_grad)
    propagate_input_shapes(graph)


def type_of_tensor(value: Tensor, with_grad: bool = True) -> TensorType:
    """Return the complete type of a tensor."""
    needs = bool(value.requires_grad) if with_grad else False
    return TensorType(value.dtype, tuple(value.shape), tuple(value.stride()), needs, str(value.device))


def _erase_block(block: Block) -> None:
    for node in block.nodes:
        if node.kind not in _SAY_TYPES:
            for value in node.outputs:
                value.type = unshaped(value.type)
        for inner in node.blocks:
            for value in inner.inputs:
                value.type = unshaped(value.type)
            _erase_block(inner)


class _Propagator:
    """Goes through nodes in order."""

    def block(self, block: Block) -> None:
        """Set the types of a block's nodes."""
        for node in block.nodes:
            if node.kind == "prim::If":
                self._analyze_if(node)
            elif node.kind == "prim::Loop":
                self._analyze_loop(node)
            else:
                for inner in node.blocks:
                    self.block(inner)
                self._analyze_node(node)

    def _analyze_if(self, node: Node) -> None:
        for inner in node.blocks:
            self.block(inner)
        for value, *ends in zip(node.outputs, *(inner.outputs for inner in node.blocks), strict=True):
            value.type = _merge_types(ends[0].type, ends[1].type)

    def _analyze_loop(self, node: Node) -> None:
        """Iterate the types of carried values to a fixed point: they must hold at the start and after each round."""
        body = node.blocks[0]
        for value, begin in zip(body.inputs[1:], node.inputs[2:], strict=True):
            value.type = begin.type
        for _ in range(len(body.inputs) * 4 + 2):
            self.block(body)
            merged = [_merge_types(value.type, end.type) for value, end in zip(body.inputs[1:], body.outputs[1:], strict=True)]
            if merged == [value.type for value in body.inputs[1:]]:
                break
            for value, kind in zip(body.inputs[1:], merged, strict=True):
                value.type = kind
        for value, inside in zip(node.outputs, body.inputs[1:], strict=True):
            value.type = inside.type

    def _analyze_node(self, node: Node) -> None:
        if node.kind == "prim::Constant" or not any(_holds_tensor(value.type) for value in node.outputs):
            return
        if node.kind in ("prim::profile", "prim::unchecked_cast", "prim::unchecked_unwrap_optional") and node.inputs:
            if isinstance(node.input().type, TensorType) and isinstance(node.output.type, TensorType):
                node.output.type = node.input().type
            return
        if node.kind == "prim::ListUnpack":
            self._set_unpacked_types(node)
            return
        results = _result_types(node)
        if results is None:
            return
        for value, kind in zip(node.outputs, results, strict=True):
            if kind is not None and isinstance(value.type, TensorType):
                value.type = kind
                _LOG.debug("{} has type {}", value, kind.ir_text)

    def _set_unpacked_types(self, node: Node) -> None:
        """Set the element types of a list from the node that makes the list."""
        elements = list_elements(node.input())
        maker = node.input().node
        kinds = [each.type for each in elements] if elements is not None else _list_results(maker)
        if kinds is not None and len(kinds) == len(node.outputs):
            for value, kind in zip(node.outputs, kinds, strict=True):
                if isinstance(kind, TensorType) and isinstance(value.type, TensorType):
                    value.type = kind


def _holds_tensor(kind: Type) -> bool:
    return isinstance(kind, TensorType)


def _merge_types(first: Type, second: Type) -> Type:
    """Return the common information of two types."""
    if isinstance(first, TensorType) and isinstance(second, TensorType):
        return merge_tensor_types(first, second)
    return first if first == second else unify(unshaped(first), unshaped(second), default_to_union=True) or unshaped(first)


def merge_tensor_types(first: TensorType, second: TensorType) -> TensorType:
    """Return the common information of two tensor types."""
    if first == second:
        return first
    same_rank = first.sizes is not None and second.sizes is not None and len(first.sizes) == len(second.sizes)
    return TensorType(
        first.dtype if first.dtype == second.dtype else None,
        _common_sizes(first.sizes, second.sizes) if same_rank else None,
        first.strides if first.strides == second.strides and same_rank else None,
        first.requires_grad if first.requires_grad == second.requires_grad else None,
        first.device if first.device == second.device else None,
        first.undefined if first.undefined == second.undefined else None,
    )


def _common_sizes(first: Sequence[int | None], second: Sequence[int | None]) -> tuple[int | None, ...]:
    return tuple(one if one == other else None for one, other in zip(first, second, strict=True))


# Infer the result types of one node


def _result_types(node: Node) -> list[TensorType | None] | None:
    """Return the types of a node's results; None if nothing is known."""
    found = _probe(node)
    if found is None:
        return None
    return [kind if isinstance(kind, TensorType) else None for kind in found] if len(found) == len(node.outputs) else None


def probed_types(node: Node) -> list[TensorType | None] | None:
    """Return the types of an operator's results, from those of its inputs; None if nothing is known."""
    return _result_types(node)


def _list_results(node: Node) -> list[Type] | None:
    """Return the element types of a node with one list of tensors as result."""
    if len(node.outputs) != 1 or not isinstance(node.output.type, ListType):
        return None
    return _probe(node)


def _probe(node: Node) -> list[TensorType | None] | None:
    operator = operator_of(node)
    if operator is None or operator.schema.is_mutable and not operator.schema.returns:
        return None
    if not any(_tensors_of(value) for value in node.inputs):
        return None
    runs = []
    for probe in _PROBES if _has_unknown(node) else _PROBES[:1]:
        run = _run(node, operator.function, probe)
        if run is None:
            return None
        runs.append(run)
    merged = runs[0] if len(runs) == 1 else [_same_or_none(one, other) for one, other in zip(*runs, strict=False)]
    if len(runs) == 2 and len(runs[0]) != len(runs[1]):
        return None
    return merged


def _tensors_of(value: Value) -> list[Value]:
    if isinstance(value.type, TensorType):
        return [value]
    return [each for each in list_elements(value) or () if isinstance(each.type, TensorType)]


def _has_unknown(node: Node) -> bool:
    kinds = [each.type for value in node.inputs for each in _tensors_of(value)]
    return any(kind.sizes is None or None in kind.sizes for kind in kinds)


def _run(node: Node, function, probe: int) -> list[TensorType | None] | None:
    arguments = [_probe_argument(value, probe) for value in node.inputs]
    if any(each is _UNKNOWN for each in arguments):
        return None
    try:
        with no_grad():
            result = function(*arguments)
    except Exception as error:  # the kernel needs a tensor's elements, or rejects the sizes of the probe
        _LOG.debug("{} has no known shape: {}", node, error)
        return None
    device = _device_of(node)
    if len(node.outputs) == 1 and not isinstance(node.output.type, ListType):
        return [_type(result, device, _keeps_strides(node))]
    return [_type(each, device, _keeps_strides(node)) for each in result] if isinstance(result, list | tuple) else None


def _type(result: object, device: str | None, with_strides: bool) -> TensorType | None:
    if not isinstance(result, Tensor):
        return None
    return TensorType(result.dtype, tuple(result.shape), tuple(result.stride()) if with_strides else None, None, device)


def _same_or_none(first: TensorType | None, second: TensorType | None) -> TensorType | None:
    if first is None or second is None:
        return None
    if len(first.sizes) != len(second.sizes):
        return TensorType(first.dtype if first.dtype == second.dtype else None, device=first.device)
    merged = merge_tensor_types(first, second)
    return merged if None not in merged.sizes else replace(merged, strides=None)


def _keeps_strides(node: Node) -> bool:
    """Return whether the inputs' strides, which determine the result's, are known."""
    return all(each.type.strides is not None for value in node.inputs for each in _tensors_of(value))


def _device_of(node: Node) -> str | None:
    devices = {each.type.device for value in node.inputs for each in _tensors_of(value)}
    return devices.pop() if len(devices) == 1 else None


def _probe_argument(value: Value, probe: int) -> object:
    """Return the probe for an input: a constant, or a meta tensor of the known type."""
    if value.is_constant:
        constant = value.constant()
        return _make_meta_tensor(type_of_tensor(constant), probe) if isinstance(constant, Tensor) else constant
    if isinstance(value.type, TensorType):
        return _make_meta_tensor(value.type, probe)
    elements = list_elements(value)
    if elements is not None:
        found = [_probe_argument(each, probe) for each in elements]
        return _UNKNOWN if any(each is _UNKNOWN for each in found) else found
    if isinstance(value.type, OptionalType) and value.is_none:
        return None
    return _UNKNOWN


def _make_meta_tensor(kind: TensorType, probe: int) -> object:
    if kind.dtype is None or kind.sizes is None or kind.undefined:
        return _UNKNOWN
    sizes = [probe if size is None else size for size in kind.sizes]
    if any(size > _MAX_SIZE for size in sizes):
        return _UNKNOWN
    known = kind.strides is not None and None not in kind.strides and None not in kind.sizes
    if known:
        return find_packet("aten::empty_strided")(sizes, list(kind.strides), dtype=kind.dtype, device="meta")
    return find_packet("aten::empty")(sizes, dtype=kind.dtype, device="meta")
