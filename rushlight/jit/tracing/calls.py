"""The form of calls in graphs: the ATen operator, and its arguments in order.

In: an operator of the dispatcher and its arguments in its schema's order. Out: a `Call`, with the arguments that ATen's
overload takes and their types. Most follow the schema; the rules here are for operators that combine several of ATen's
overloads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from rushlight.core.device import device
from rushlight.core.dtype import dtype
from rushlight.core.tensor import Tensor
from rushlight.jit.tracing.numbers import TracedFloat, TracedInt
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.schema import Type

_TENSOR, _INT, _BOOL, _SCALAR = Type("Tensor"), Type("int"), Type("bool"), Type("Scalar")
_INTS, _DIMS = Type("int", is_list=True), Type("int", is_list=True, length=1, optional=True)
_DTYPE, _LAYOUT, _DEVICE, _FORMAT = Type("ScalarType"), Type("Layout"), Type("Device"), Type("MemoryFormat")
LAST = 9223372036854775807
"""The end of an open slice."""


class Call(NamedTuple):
    """An operator's name, and pairs of argument and type."""

    name: str
    arguments: list[tuple[object, Type]]


def call_of(op: OpOverload, stack: list) -> Call:
    """Return the graph's form of a call of `op` with these arguments."""
    rule = RULES.get(op.name)
    if rule is not None:
        return rule(stack)
    pairs = [(value, argument.type) for value, argument in zip(stack, op._schema.arguments, strict=True)]
    positions = op._schema.positions
    if "pin_memory" in positions and not any(argument.type.is_tensor for argument in op._schema.arguments):
        _complete_factory(pairs, positions)
    elif "pin_memory" in positions and pairs[positions["pin_memory"]][0] is None:
        pairs[positions["pin_memory"]] = (False, _BOOL)
    return Call(f"{op.namespace}::{op._opname}", pairs)


def _complete_factory(pairs: list, positions: dict[str, int]) -> None:
    """Fill in the device and pin_memory of a factory call: graphs always write them."""
    if pairs[positions["device"]][0] is None:
        pairs[positions["device"]] = (device("cpu"), _DEVICE)
    if pairs[positions["pin_memory"]][0] is None:
        pairs[positions["pin_memory"]] = (False, _BOOL)


def _conversion_call(stack: list) -> Call:
    """Return the call of ATen's overload of `to` for the given arguments."""
    self, dtype, layout, place, pin_memory, non_blocking, copy, form = stack
    place = device(place) if isinstance(place, str) else place
    flags = [(bool(non_blocking), _BOOL), (bool(copy), _BOOL), (form, _FORMAT)]
    if place is None and dtype is not None:
        return Call("aten::to", [(self, _TENSOR), (dtype, _DTYPE), *flags])
    if place is not None and dtype is not None:
        return Call("aten::to", [(self, _TENSOR), (place, _DEVICE), (dtype, _DTYPE), *flags])
    kind, place = self.dtype, self.device if place is None else place
    full = [(kind, _DTYPE), (self.layout if layout is None else layout, _LAYOUT), (place, _DEVICE), (pin_memory, _BOOL), *flags]
    return Call("aten::to", [(self, _TENSOR), *full])


def _slice_call(stack: list) -> Call:
    self, dim, start, end, step = stack
    bounds = [dim, 0 if start is None else start, LAST if end is None else end, step]
    return Call("aten::slice", [(self, _TENSOR), *((value, _INT) for value in bounds)])


def _scalar_operand(name: str, as_tensor: bool, alpha: bool = False) -> Callable[[list], Call]:
    """Return an operator whose second operand may be a number: as a tensor, or as the overload with a Scalar."""

    def rule(stack: list) -> Call:
        kind = _TENSOR if as_tensor or isinstance(stack[1], Tensor) else _SCALAR
        rest = [(stack[2], _SCALAR)] if alpha else []
        first = _TENSOR if isinstance(stack[0], Tensor) else _SCALAR
        return Call(f"aten::{name}", [(stack[0], first), (stack[1], kind), *rest])

    return rule


def _fill(stack: list) -> Call:
    """Return an indexed write of a number: a tensor of the target's dtype, or the tensor of a traced number."""
    traced = isinstance(stack[1], TracedFloat) or type(stack[1]) is TracedInt
    made = (stack[1] if traced else OfKind(stack[1], stack[0].dtype), _TENSOR)
    if not stack[0].dim():
        return Call("aten::copy_", [(stack[0], _TENSOR), made, (False, _BOOL)])
    return Call("aten::fill_", [(stack[0], _TENSOR), made])


class OfKind(NamedTuple):
    """A number that a graph holds as a tensor of a dtype."""

    number: object
    dtype: dtype


def _split_sizes(stack: list) -> Call:
    return Call("aten::split_with_sizes", [(stack[0], _TENSOR), (stack[1], _INTS), (stack[2], _INT)])


def _variance_rule(name: str) -> Callable[[list], Call]:
    """Return the rule for `var` and `std`: graphs write `unbiased` unless another correction is given."""

    def rule(stack: list) -> Call:
        self, dim, correction, keepdim = stack
        if correction is None:
            flags = [(True, _BOOL), (keepdim, _BOOL)] if dim is not None else [(True, _BOOL)]
            return Call(f"aten::{name}", [(self, _TENSOR), *([(dim, _DIMS)] if dim is not None else []), *flags])
        return Call(f"aten::{name}", [(self, _TENSOR), (dim, _DIMS), (correction, _SCALAR), (keepdim, _BOOL)])

    return rule


def _convolution_rule(dims: int) -> Callable[[list], Call]:
    def rule(stack: list) -> Call:
        return _convolution_call(*stack[:3], *stack[3:6], False, [0] * dims, stack[6])

    return rule


def _transposed_call(stack: list) -> Call:
    input, weight, bias, stride, padding, output_padding, groups, dilation = stack
    return _convolution_call(input, weight, bias, stride, padding, dilation, True, output_padding, groups)


def _convolution_call(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups) -> Call:
    tensors = [(input, _TENSOR), (weight, _TENSOR), (bias, Type("Tensor", optional=True))]
    sizes = [(value, _INTS) for value in (stride, padding, dilation)]
    flags = [(value, _BOOL) for value in (False, False, True, True)]
    return Call("aten::_convolution", [*tensors, *sizes, (transposed, _BOOL), (output_padding, _INTS), (groups, _INT), *flags])


def _range_call(stack: list) -> Call:
    start, end, step, dtype, layout, place, _ = stack
    steps = [] if step == 1 else [(step, _SCALAR)]
    options = [(dtype, _DTYPE), (layout, _LAYOUT), (device("cpu") if place is None else place, _DEVICE), (False, _BOOL)]
    return Call("aten::arange", [(start, _SCALAR), (end, _SCALAR), *steps, *options])


def _normalization_call(stack: list) -> Call:
    """Batch normalisation passes cudnn_enabled=True, as PyTorch does everywhere."""
    kinds = [_TENSOR, *[Type("Tensor", optional=True)] * 4, _BOOL, Type("float"), Type("float"), _BOOL]
    return Call("aten::batch_norm", list(zip([*stack[:8], True], kinds, strict=True)))


RULES: dict[str, Callable[[list], Call]] = {
    "aten::to.dtype_layout": _conversion_call,
    "aten::slice.Tensor": _slice_call,
    "aten::batch_norm": _normalization_call,
    "aten::fill_.Scalar": _fill,
    "aten::split.sizes": _split_sizes,
    "aten::arange.start_step": _range_call,
    "aten::rsub.Tensor": _scalar_operand("rsub", False, True),
    **{f"aten::{name}.correction": _variance_rule(name) for name in ("var", "std", "var_mean", "std_mean")},
    **{f"aten::conv{dims}d": _convolution_rule(dims) for dims in (1, 2, 3)},
    "aten::conv_transpose1d": _transposed_call, "aten::conv_transpose2d.input": _transposed_call,
    "aten::conv_transpose3d.input": _transposed_call,
    **{f"aten::{name}.Tensor": _scalar_operand(name, True, True) for name in ("add", "sub", "add_", "sub_")},
    **{f"aten::{name}.Tensor": _scalar_operand(name, True) for name in ("mul", "div", "mul_", "div_")},
    **{f"aten::{name}": _scalar_operand(name, True) for name in ("floor_divide", "floor_divide_")},
    **{f"aten::{name}.Tensor": _scalar_operand(name, False) for name in
       ("remainder", "fmod", "eq", "ne", "lt", "le", "gt", "ge", "remainder_", "fmod_", "copysign", "copysign_")},
    **{f"aten::bitwise_{name}.Tensor": _scalar_operand(f"__{name}__", False) for name in ("and", "or", "xor")},
}  # fmt: skip


