"""PropagateRequiresGrad: infer which tensors need gradients, from the types of the graph's inputs.

Requires: SSA, PropagateInputShapes: dtypes as far as they are known. Guarantees: `requires_grad` of each tensor's type is true
where the tensor is calculated from one that needs gradients by an operator that passes them on, and false elsewhere. An input
without this information is assumed to need them.
"""

from __future__ import annotations

from dataclasses import replace

from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.passes.helpers import list_elements
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.types.kinds import ListType, TensorType, Type

_STOPS = frozenset(("aten::lt", "aten::le", "aten::gt", "aten::ge", "aten::eq", "aten::ne", "aten::detach", "aten::argmax",
                    "aten::argmin", "aten::isnan", "aten::isinf", "aten::isfinite", "aten::sign", "aten::floor", "aten::ceil",
                    "aten::round", "aten::zeros_like", "aten::ones_like", "aten::empty_like", "aten::nonzero",
                    "aten::logical_and",
                    "aten::logical_or", "aten::logical_not", "aten::full_like", "aten::rand_like", "aten::randn_like",
                    "prim::NumToTensor", "aten::new_zeros", "aten::new_ones", "aten::new_empty", "aten::new_full"))  # fmt: skip
"""Operators that pass no gradient to their inputs."""


@graph_pass("PropagateRequiresGrad")
def propagate_requires_grad(graph: Graph) -> None:
    """Set `requires_grad` in all types."""
    _analyze_block(graph.block)


def _needs(value: Value) -> bool:
    """Return whether a tensor, or one in a list, needs a gradient."""
    if isinstance(value.type, TensorType):
        return value.type.requires_grad is not False and not _is_integral(value.type)
    elements = list_elements(value)
    return any(map(_needs, elements)) if elements is not None else _holds_tensors(value.type)


def _holds_tensors(kind: Type) -> bool:
    return isinstance(kind, ListType) and isinstance(kind.element, TensorType)


def _is_integral(kind: TensorType) -> bool:
    return kind.dtype is not None and not (kind.dtype.is_floating_point or kind.dtype.is_complex)


def _set_requires_grad(value: Value, needs: bool) -> None:
    if isinstance(value.type, TensorType):
        value.type = replace(value.type, requires_grad=needs and not _is_integral(value.type))


def _analyze_block(block: Block) -> None:
    for node in block.nodes:
        if node.kind == "prim::If":
            _analyze_if(node)
        elif node.kind == "prim::Loop":
            _analyze_loop(node)
        elif node.kind in ("prim::Guard", "prim::BailOut"):
            continue  # the results of a type check have the types that it checks
        else:
            for inner in node.blocks:
                _analyze_block(inner)
            needs = node.kind not in _STOPS and node.kind != "prim::Constant" and any(map(_needs, node.inputs))
            for value in node.outputs:
                _set_requires_grad(value, needs)


def _analyze_if(node: Node) -> None:
    for inner in node.blocks:
        _analyze_block(inner)
    for value, *ends in zip(node.outputs, *(inner.outputs for inner in node.blocks), strict=True):
        _set_requires_grad(value, any(map(_needs, ends)))


def _analyze_loop(node: Node) -> None:
    """Analyze a loop. A carried value needs a gradient if it needs one at the beginning or after any round."""
    body = node.blocks[0]
    needs = [_needs(value) for value in node.inputs[2:]]
    while True:
        for value, each in zip(body.inputs[1:], needs, strict=True):
            _set_requires_grad(value, each)
        _analyze_block(body)
        after = [before or _needs(end) for before, end in zip(needs, body.outputs[1:], strict=True)]
        if after == needs:
            break
        needs = after
    for value, each in zip(node.outputs, needs, strict=True):
        _set_requires_grad(value, each)
