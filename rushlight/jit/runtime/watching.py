"""Observations of profiling: the types of tensors, and whether a tensor fits a type."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.core.device import CPU
from rushlight.core.lazy_module import LazyModule
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.jit.ir.graph import Node
from rushlight.jit.types.kinds import TENSOR, TensorType

shape_analysis = LazyModule("rushlight.jit.passes.shape_analysis")


def type_of_tensor(tensor: Tensor) -> TensorType:
    """Return the complete type of a tensor; requires_grad is false while autograd is off."""
    impl = tensor._impl
    return TensorType(impl.dtype, tuple(impl.sizes), tuple(impl.strides), needs_gradient(tensor), str(impl.device))


def needs_gradient(tensor: Tensor) -> bool:
    """Return whether autograd records operations on a tensor now."""
    return state.grad_enabled and tensor.requires_grad


def fits(tensor: object, kind: TensorType) -> bool:
    """Return whether a tensor fits a type."""
    if not isinstance(tensor, Tensor):
        return False
    impl = tensor._impl
    return (
        (kind.dtype is None or impl.dtype is kind.dtype)
        and (kind.sizes is None or impl.sizes == kind.sizes or _sizes_fit(kind.sizes, impl.sizes))
        and (kind.strides is None or impl.strides == kind.strides or _sizes_fit(kind.strides, impl.strides))
        and (kind.requires_grad is None or needs_gradient(tensor) == kind.requires_grad)
        and (kind.device is None or (impl.device is CPU and kind.device == "cpu") or str(impl.device) == kind.device)
    )


def _sizes_fit(expected: Sequence, found: Sequence) -> bool:
    """Return whether sizes or strides equal the expected ones, as far as these are known."""
    return len(expected) == len(found) and all(
        want is None or want == have for want, have in zip(expected, found, strict=True)
    )


def watch(node: Node, value: object) -> None:
    """Record a value that a `prim::profile` node sees."""
    if not isinstance(value, Tensor):
        node.attributes["seen_none"] = int(node.attributes.get("seen_none", 0) or value is None)
        return
    seen, known = type_of_tensor(value), node.attributes["profiled_type"]
    node.attributes["profiled_type"] = seen if known == TENSOR else shape_analysis.merge_tensor_types(known, seen)
