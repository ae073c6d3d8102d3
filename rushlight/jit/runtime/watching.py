"""What profiling sees of tensors: their types, what several have in common, and whether one is as a type says."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.core.tensor import Tensor
from rushlight.jit.ir.graph import Node
from rushlight.jit.types.kinds import TENSOR, TensorType


def type_of_tensor(tensor: Tensor) -> TensorType:
    """All that is known of a tensor."""
    impl = tensor._impl
    return TensorType(impl.dtype, tuple(impl.sizes), tuple(impl.strides), tensor.requires_grad, str(impl.device))


def merged(first: TensorType, second: TensorType) -> TensorType:
    """What two types have in common."""
    return TensorType(
        first.dtype if first.dtype is second.dtype else None,
        _merged_sizes(first.sizes, second.sizes),
        _merged_sizes(first.strides, second.strides),
        first.requires_grad if first.requires_grad == second.requires_grad else None,
        first.device if first.device == second.device else None,
    )


def _merged_sizes(first: Sequence | None, second: Sequence | None) -> tuple | None:
    if first is None or second is None or len(first) != len(second):
        return None
    return tuple([one if one == other else None for one, other in zip(first, second, strict=True)])


def fits(tensor: object, kind: TensorType) -> bool:
    """Whether a tensor is as a type says."""
    if not isinstance(tensor, Tensor):
        return False
    impl = tensor._impl
    return (
        (kind.dtype is None or impl.dtype is kind.dtype)
        and _fit(kind.sizes, impl.sizes)
        and _fit(kind.strides, impl.strides)
        and (kind.requires_grad is None or tensor.requires_grad == kind.requires_grad)
        and (kind.device is None or str(impl.device) == kind.device)
    )


def _fit(expected: Sequence | None, found: Sequence) -> bool:
    if expected is None:
        return True
    return len(expected) == len(found) and all(
        want is None or want == have for want, have in zip(expected, found, strict=True)
    )


def watch(node: Node, value: object) -> None:
    """Note a value that a `prim::profile` node met."""
    if not isinstance(value, Tensor):
        node.attributes["seen_none"] = int(node.attributes.get("seen_none", 0) or value is None)
        return
    seen, known = type_of_tensor(value), node.attributes["profiled_type"]
    node.attributes["profiled_type"] = seen if known == TENSOR else merged(known, seen)
