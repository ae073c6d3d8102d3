"""Python's operators on tensors: `a + b`, `2 ** a`, `a @= b`, `~a`, with numbers and NumPy arrays on either side."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rushlight._C import BinaryMethod
from rushlight.core.overrides import asks_modes, call_override, is_overriding, overriding_arguments, refuse_foreign_tensor
from rushlight.core.tensor import Tensor, tensor_from_array
from rushlight.ops.numbers import as_wrapped_operand
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")
NUMBERS = (bool, int, float, complex, np.number, np.bool_)


# The name of the function that overriding types and modes receive, if it differs from the Python operator's name.
_PUBLIC_NAMES = {
    "truediv": "div", "floordiv": "floor_divide", "mod": "remainder", "and": "bitwise_and", "or": "bitwise_or",
    "xor": "bitwise_xor",
}  # fmt: skip


def unknown(other: object) -> object:
    """Return NotImplemented for an unknown operand; TypeError for PyTorch's tensors, whose reflected operator would fail
    confusingly."""
    refuse_foreign_tensor(other, "an operator")
    return NotImplemented


def _binary(op: Callable) -> Callable:
    def operate(self, other):
        if isinstance(other, Tensor) or isinstance(other, NUMBERS):
            return op(self, other)
        if isinstance(other, np.ndarray):
            return op(self, tensor_from_array(other))
        return unknown(other)

    return operate


def _make_reflected_method(name: str, op: Callable) -> Callable:
    """Return the method for `other op self`. Subclasses of Tensor may override it first."""
    packet = getattr(aten, op._opname)

    @_rename(name)
    def operate(self, other):
        if _has_override(self, other):
            return _call_override(operate, self, other)
        if isinstance(other, NUMBERS) or isinstance(other, Tensor):
            return packet(as_wrapped_operand(other, self), self)
        if isinstance(other, np.ndarray):
            return packet(tensor_from_array(other), self)
        return unknown(other)

    return operate


def _in_place(op: Callable) -> Callable:
    def update(self, other):
        if isinstance(other, Tensor) or isinstance(other, NUMBERS):
            return op(self, other)
        return unknown(other)

    return update


def _rename(name: str) -> Callable:
    """Set a method's name, which overriding types see."""

    def decorate(method: Callable) -> Callable:
        method.__name__, method.__qualname__ = name, f"Tensor.{name}"
        return method

    return decorate


def _has_override(self: Tensor, other: object = None) -> bool:
    return is_overriding(type(self)) or (isinstance(other, Tensor) and is_overriding(type(other))) or asks_modes()


def _call_override(method: Callable, *operands: object) -> object:
    return call_override(method, overriding_arguments(operands, {}), operands, {})


@_rename("__rdiv__")
def _divide_number(self: Tensor, other: object) -> Tensor:
    if _has_override(self, other):
        return _call_override(_divide_number, self, other)
    if isinstance(other, np.ndarray):
        return aten.div(tensor_from_array(other), self)
    if isinstance(other, NUMBERS) or isinstance(other, Tensor):
        return aten.reciprocal(self) * other
    return unknown(other)


@_rename("__rpow__")
def _raise_number(self: Tensor, other: object) -> Tensor:
    if _has_override(self, other):
        return _call_override(_raise_number, self, other)
    if isinstance(other, np.ndarray):
        return aten.pow(tensor_from_array(other), self)
    return aten.pow(other, self) if isinstance(other, NUMBERS) or isinstance(other, Tensor) else unknown(other)


@_rename("__invert__")
def _invert(self: Tensor) -> Tensor:
    if _has_override(self):
        return _call_override(_invert, self)
    if not self.dtype.is_integral:
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return aten.bitwise_not(self)


def _set_operator(name: str, op: Callable, otherwise: Callable, asked: str | None = None) -> None:
    """Make a method of Tensor: `op` for a tensor and a tensor or Python number, `otherwise` for anything else.

    Subclasses of Tensor may override it first; they receive the method named `asked`, as in PyTorch, or this one.
    """

    def asking(self: Tensor, other: object) -> object:
        if _has_override(self, other):
            return _call_override(made if asked is None else getattr(Tensor, asked), self, other)
        return otherwise(self, other)

    made = BinaryMethod(name, op, asking)
    setattr(Tensor, name, made)


def install() -> None:
    """Attach the operators to Tensor."""
    binary = {
        "add": aten.add.Tensor, "sub": aten.sub.Tensor, "mul": aten.mul.Tensor, "truediv": aten.div.Tensor,
        "floordiv": aten.floor_divide.default, "mod": aten.remainder.Tensor, "eq": aten.eq.Tensor, "ne": aten.ne.Tensor,
        "lt": aten.lt.Tensor, "le": aten.le.Tensor, "gt": aten.gt.Tensor, "ge": aten.ge.Tensor,
        "and": aten.bitwise_and.Tensor, "or": aten.bitwise_or.Tensor, "xor": aten.bitwise_xor.Tensor, "pow": aten.pow,
        "matmul": aten.matmul.default, "lshift": aten.bitwise_left_shift.Tensor, "rshift": aten.bitwise_right_shift.Tensor,
    }  # fmt: skip
    in_place = {
        "add": aten.add_.Tensor, "sub": aten.sub_.Tensor, "mul": aten.mul_.Tensor, "truediv": aten.div_.Tensor,
        "and": aten.bitwise_and_.Tensor, "or": aten.bitwise_or_.Tensor, "xor": aten.bitwise_xor_.Tensor,
        "lshift": aten.bitwise_left_shift_.Tensor, "rshift": aten.bitwise_right_shift_.Tensor,
        "mod": aten.remainder_.Tensor, "floordiv": aten.floor_divide_.Tensor, "pow": aten.pow_,
    }  # fmt: skip
    for name, op in binary.items():
        own = name in ("floordiv", "eq", "and", "or", "xor", "lshift", "rshift")
        _set_operator(f"__{name}__", op, _binary(op), None if own else _PUBLIC_NAMES.get(name, name))
    for name in ("add", "mul", "and", "or", "xor"):
        _set_operator(f"__r{name}__", binary[name], _binary(binary[name]), _PUBLIC_NAMES.get(name, name))
    for name in ("sub", "floordiv", "mod", "matmul", "lshift", "rshift"):
        setattr(Tensor, f"__r{name}__", _make_reflected_method(f"__r{name}__", binary[name]))
    for name, op in in_place.items():
        own = name in ("and", "or", "xor", "lshift", "rshift")
        _set_operator(f"__i{name}__", op, _in_place(op), None if own else f"{_PUBLIC_NAMES.get(name, name)}_")
    Tensor.__div__, Tensor.__idiv__, Tensor.__rdiv__ = Tensor.__truediv__, Tensor.__itruediv__, _divide_number
    Tensor.__rtruediv__, Tensor.__rpow__, Tensor.__invert__ = _divide_number, _raise_number, _invert
    Tensor.__neg__ = lambda self: aten.neg(self)
    Tensor.__pos__ = lambda self: self
    Tensor.__abs__ = lambda self: aten.abs(self)
