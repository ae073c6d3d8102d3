"""Call operators of straight-line pieces in other ways than the interpreter does.


Numbers that only the program knows come as 0-dim tensors. In-place operators return the tensor that they would write.

In: a node and its arguments, on fake tensors. Out: its result, recorded as operators on tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rushlight.core.dtype import FLOATING, bool_, dtype, float64, get_default_dtype
from rushlight.core.tensor import Tensor
from rushlight.jit.enumerations import dtype_of_number
from rushlight.jit.ir.graph import Node
from rushlight.jit.operators.lookup import schema_fits
from rushlight.jit.operators.registry import operators_named
from rushlight.jit.types.kinds import TensorType
from rushlight.ops.packet import find_packet
from rushlight.ops.promotion import result_type

_ARITHMETIC = frozenset(
    f"aten::{name}" for name in
    ("add", "sub", "mul", "div", "rsub", "eq", "ne", "lt", "le", "gt", "ge", "add_", "sub_", "mul_", "div_")
)  # fmt: skip
_BY_NAME = frozenset(
    f"aten::{name}" for name in ("where", "clamp", "pow", "remainder", "fmod", "floor_divide")
)
_FILLS = frozenset(("aten::tensor", "aten::full", "aten::full_like", "aten::fill_", "aten::masked_fill", "aten::masked_fill_"))


@dataclass(frozen=True)
class Number:
    """A number of the program, as a 0-dim tensor of the number's own dtype."""

    tensor: Tensor


def takes_number(node: Node, place: int) -> bool:
    """Return whether an operator may get a number that only the program knows as its argument at `place`."""
    if node.kind in _FILLS:
        return True
    if not any(isinstance(value.type, TensorType) for value in node.inputs):
        return False  # `aten::add.int` and the like
    return node.kind in _BY_NAME or (node.kind in _ARITHMETIC and place == 1)


def call_with_numbers(node: Node, arguments: list) -> object:
    """Return the result of an operator that has Numbers among its arguments."""
    if node.kind in ("aten::tensor", "aten::full", "aten::full_like", "aten::fill_"):
        return _make_filled(node, arguments)
    others = [each for each in arguments if isinstance(each, Tensor)]
    if node.kind == "aten::where":
        others = others[1:]
    kinds = {id(each): _dtype_for(each, node, others) for each in arguments if isinstance(each, Number)}
    chosen = [_as_dtype(each, kinds[id(each)]) if isinstance(each, Number) else each for each in arguments]
    if node.kind == "aten::clamp":
        return _clamp(*chosen)
    if node.kind in _BY_NAME:
        return find_packet(node.kind)(*chosen)
    return functional(node)(*chosen)


def _clamp(tensor: Tensor, low: object, high: object) -> Tensor:
    """Clamp a tensor between bounds, either of which may be a 0-dim tensor."""
    for name, bound in (("aten::maximum", low), ("aten::minimum", high)):
        if bound is not None:
            if not isinstance(bound, Tensor):
                raise TypeError("clamp between a number that is known and one that is not")
            tensor = find_packet(name)(tensor, bound)
    return tensor


def _dtype_for(number: Number, node: Node, others: Sequence[Tensor]) -> dtype:
    """Return the dtype to which an operator converts a number before it computes."""
    if node.kind.startswith("aten::masked_fill"):
        return others[0].dtype
    common = _common_dtype(number, others)
    is_true_division = node.kind in ("aten::div", "aten::div_") and node.input_count == 2
    return get_default_dtype() if is_true_division and common.category < FLOATING else common


def _common_dtype(number: Number, others: Sequence[Tensor]) -> dtype:
    """Return the dtype of arithmetic between a number and other operands."""
    kind = number.tensor.dtype
    sample = 1.0 if kind is float64 else True if kind.name == "bool" else 1
    return result_type(*others, sample)


def _as_dtype(number: Number, kind: dtype) -> Tensor:
    if number.tensor.dtype is float64 and kind.category < FLOATING:
        raise TypeError(f"a float can't be converted to {kind}")
    return number.tensor.to(kind)


def _make_filled(node: Node, arguments: list) -> Tensor:
    """Make a tensor filled with a number."""
    if node.kind == "aten::tensor":
        return _cast_number(arguments[0], arguments[1])
    number = arguments[1]
    if node.kind == "aten::full":
        return _cast_number(number, arguments[2]).expand(arguments[0]).clone()
    kind = arguments[2] if node.kind == "aten::full_like" and arguments[2] is not None else arguments[0].dtype
    return _cast_number(number, kind).expand_as(arguments[0]).clone()


def _cast_number(number: Number, kind: object) -> Tensor:
    """Cast a number to a dtype, by default the one that its Python type has."""
    if kind is None:
        kind = get_default_dtype() if number.tensor.dtype is float64 else number.tensor.dtype
    return number.tensor.to(dtype_of_number(kind))


def functional(node: Node):
    """Return the function that computes a node without writing to anything."""
    name = node.kind[:-1] if node.kind.endswith("_") and not node.kind.endswith("__") else node.kind
    for operator in operators_named(name):
        is_view = name != node.kind and bool(operator.schema.returns[0].alias)  # `t_` changes strides, not memory
        if schema_fits(operator.schema, node) and not is_view:
            return operator.function
    raise TypeError(f"{node.kind} has no form that gives a new tensor")


def written(node: Node, arguments: list) -> Tensor:
    """Return what an in-place operator would write to its first argument, as a new tensor of the same size and dtype."""
    target, others = arguments[0], arguments[1:]
    if node.kind == "aten::copy_":
        source = others[0].tensor if isinstance(others[0], Number) else others[0]
        return source.expand_as(target).to(target.dtype).clone()
    if node.kind == "aten::index_put_" and _is_mask(target, arguments):
        return find_packet("aten::where")(others[0][0], others[1].to(target.dtype), target)
    if node.kind in ("aten::zero_", "aten::fill_"):
        value = others[0] if others else 0
        if isinstance(value, Number):
            result = _make_filled(node, arguments)
        else:
            result = find_packet("aten::full_like")(target, _number(value))
    elif any(isinstance(each, Number) for each in others):
        result = call_with_numbers(node, arguments)
    else:
        result = functional(node)(*arguments)
    if result.shape != target.shape or (result.dtype.category > target.dtype.category and result.dtype is not target.dtype):
        raise TypeError(f"{node.kind} with a result that can't be written to its argument")
    return result.to(target.dtype)


def _is_mask(target: Tensor, arguments: list) -> bool:
    """Return whether `index_put_` puts one value at all places where a mask of the target's size is true."""
    indices, value = arguments[1], arguments[2]
    is_mask = len(indices) == 1 and isinstance(indices[0], Tensor) and indices[0].dtype is bool_
    return is_mask and indices[0].shape == target.shape and value.numel() == 1 and value.dim() == 0 and arguments[3] is not True


def _number(value: object) -> object:
    if isinstance(value, Tensor):
        raise TypeError("a tensor where a number is needed")
    return value
