"""Primitive operators whose meaning depends on their node: its types and attributes. Each entry makes a function for a node."""

from __future__ import annotations

from collections.abc import Callable

from rushlight.core.dtype import bool_
from rushlight.core.lazy_module import LazyModule
from rushlight.core.tensor import Tensor
from rushlight.jit.ir.graph import Node
from rushlight.jit.runtime.conversions import from_script
from rushlight.jit.runtime.objects import ScriptObject
from rushlight.jit.runtime.type_checks import CannotConvert, to_script
from rushlight.jit.runtime.watching import fits, needs_gradient, watch
from rushlight.jit.types.kinds import TensorType

subgraphs = LazyModule("rushlight.jit.runtime.subgraphs")  # lazy: it imports passes and autograd


def _make_uninitialized(node: Node) -> Callable:
    return lambda: None


def _make_tuple_index(node: Node) -> Callable:
    def index(values: tuple, position: int) -> object:
        if not -len(values) <= position < len(values):
            raise IndexError("list index out of range")
        return values[position]

    return index


def _make_module_index(node: Node) -> Callable:
    def index(container: ScriptObject, key: int | str) -> object:
        name = str(key)
        found = container.slots.get(name)
        if found is None:
            raise RuntimeError(f"{container.type} does not have a field with name {name}")
        return found

    return index


def _make_tuple_slice(node: Node) -> Callable:
    begin, end = node["beg"], node["end"]
    return lambda values: tuple(values[begin:end])


def _make_profile(node: Node) -> Callable:
    graph = node.graph

    def count() -> None:
        graph.completed_runs += 1

    if not node.inputs:
        return count

    def see(value: object) -> object:
        watch(node, value)
        return value

    return see


def _make_type_check(node: Node) -> Callable:
    kinds = node["types"]
    return lambda *values: (*values, all(map(fits, values, kinds)))


def _make_grad_check(node: Node) -> Callable:
    kinds = node["types"]
    return lambda *values: (
        *values,
        all(isinstance(value, Tensor) and needs_gradient(value) == kind.requires_grad
            for value, kind in zip(values, kinds, strict=True)),
    )  # fmt: skip


def _make_dynamic_guard(node: Node) -> Callable:
    kinds = node["types"]
    return lambda *values: all(map(fits, values, kinds))


def _make_constant_chunk(node: Node) -> Callable:
    count, dim = node["chunks"], node["dim"]

    def chunk(value: Tensor) -> tuple[Tensor, ...]:
        parts = tuple(value.chunk(count, dim))
        if len(parts) != count:
            raise RuntimeError(f"Expected chunk to return at least {count} outputs, but got only {len(parts)}")
        return parts

    return chunk


def _make_tolist(node: Node) -> Callable:
    wanted = node.output.type

    def to_list(value: Tensor, depth: int, kind: int) -> object:
        if value.dim() != depth:
            raise RuntimeError(
                f"Output annotation list dimension and runtime tensor dimension must match for tolist(): got a tensor of "
                f"{value.dim()} dimensions for {wanted}"
            )
        whole = not value.is_floating_point() and not value.is_complex() and value.dtype is not bool_
        if not (whole, value.is_floating_point(), value.is_complex(), value.dtype is bool_)[kind]:
            raise RuntimeError(f"Output annotation element type and runtime tensor element type must match for tolist(): got "
                               f"{value.dtype} for {wanted}")  # fmt: skip
        return value.tolist()

    return to_list


def _make_python_op(node: Node) -> Callable:
    function, result = node["function"], node.output.type
    kinds = [value.type for value in node.inputs]

    def call(*values: object) -> object:
        found = function(*map(from_script, values, kinds))
        if found is None and isinstance(result, TensorType):
            return None  # the call of a function that returns nothing stands for an undefined tensor
        try:
            return to_script(found, result)
        except CannotConvert as error:
            given = f"but instead got value of type {type(found).__name__}"
            raise CannotConvert(f"{node['name']}() Expected to return a value of type '{result}' {given}: {error}") from None

    return call


PRIMITIVES: dict[str, Callable[[Node], Callable]] = {
    "prim::Uninitialized": _make_uninitialized,
    "prim::TupleIndex": _make_tuple_index,
    "prim::TupleSlice": _make_tuple_slice,
    "prim::ModuleContainerIndex": _make_module_index,
    "prim::profile": _make_profile,
    "prim::TypeCheck": _make_type_check,
    "prim::RequiresGradCheck": _make_grad_check,
    "prim::TensorExprDynamicGuard": _make_dynamic_guard,
    "prim::ConstantChunk": _make_constant_chunk,
    "prim::PythonOp": _make_python_op,
    "prim::tolist": _make_tolist,
    "prim::DifferentiableGraph": lambda node: subgraphs.differentiable(node),
    **dict.fromkeys(
        ("prim::FusionGroup", "prim::TensorExprGroup", "prim::FunctionalGraph", "prim::FallbackGraph"),
        lambda node: subgraphs.group(node),
    ),
}
