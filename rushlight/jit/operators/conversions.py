"""Overloads that the dispatcher does not need: those of `to`, which are a single overload there, `rsub` with a number, and
`_convolution`, which traced graphs call."""

from __future__ import annotations

from rushlight.core.device import device
from rushlight.core.layout import memory_format
from rushlight.core.tensor import Tensor
from rushlight.jit.enumerations import dtype_of_number, memory_format_of_number
from rushlight.jit.operators.registry import declare_operator, operators_named
from rushlight.ops.packet import find_packet

_FLAGS = "bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None"


def _format(number: int | None) -> memory_format | None:
    return None if number is None else memory_format_of_number(number)


def _to_device(self: Tensor, place: device, kind: int, non_blocking: bool, copy: bool, form: int | None) -> Tensor:
    return self.to(
        device=place, dtype=dtype_of_number(kind), non_blocking=non_blocking, copy=copy, memory_format=_format(form)
    )


def _to_dtype(self: Tensor, kind: int, non_blocking: bool, copy: bool, form: int | None) -> Tensor:
    return self.to(dtype=dtype_of_number(kind), non_blocking=non_blocking, copy=copy, memory_format=_format(form))


def _to_other(self: Tensor, other: Tensor, non_blocking: bool, copy: bool, form: int | None) -> Tensor:
    return self.to(other, non_blocking=non_blocking, copy=copy, memory_format=_format(form))


def _to_either(
    self: Tensor, place: device | None, kind: int | None = None, non_blocking: bool = False, copy: bool = False
) -> Tensor:
    chosen = None if kind is None else dtype_of_number(kind)
    return self.to(device=place, dtype=chosen, non_blocking=non_blocking, copy=copy)


def _convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, *flags) -> Tensor:
    """Return a convolution; the flags select backends that do not exist here."""
    convolve = find_packet("aten::convolution").default
    return convolve(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


def _register() -> None:
    given = ("Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, bool transposed, "
             "int[] output_padding, int groups, bool benchmark, bool deterministic, bool cudnn_enabled")  # fmt: skip
    if not operators_named("aten::_convolution"):
        declare_operator(f"aten::_convolution({given}, bool allow_tf32) -> Tensor", _convolution)
        declare_operator(f"aten::_convolution.deprecated({given}) -> Tensor", _convolution)
    known = {operator.schema.overload for operator in operators_named("aten::to")}
    for overload, schema, function in (
        ("dtype", f"(Tensor(a) self, ScalarType dtype, {_FLAGS}) -> Tensor(a)", _to_dtype),
        ("device", f"(Tensor(a) self, Device device, ScalarType dtype, {_FLAGS}) -> Tensor(a)", _to_device),
        ("other", f"(Tensor(a) self, Tensor other, {_FLAGS}) -> Tensor(a)", _to_other),
        ("prim_Device", "(Tensor(a) self, Device? device, int? dtype=None, bool non_blocking=False, bool copy=False) "
                        "-> Tensor(a|b)", _to_either),
    ):  # fmt: skip
        if overload not in known:
            declare_operator(f"aten::to.{overload}{schema}", function)
    rsub = find_packet("aten::rsub")
    declare_operator(
        "aten::rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
        lambda self, other, alpha=1: rsub(self, other, alpha=alpha),
    )


_register()
