"""Overloads of tensor operators that the dispatcher lacks: those with a number in place of a tensor, and queries that are
methods in Python. Each calls the library's function or method of the same name."""

from __future__ import annotations

import operator
from collections.abc import Callable

from rushlight.core.dtype import float16, float32, float64, int32, int64
from rushlight.core.symbolic import SymInt
from rushlight.core.tensor import Tensor
from rushlight.jit.enumerations import dtype_number, memory_format_of_number
from rushlight.jit.operators.registry import declare_operator
from rushlight.ops.packet import OpOverloadPacket, find_packet
from rushlight.ops.promotion import result_type

_WITH_ALPHA = ("add", "sub")
_ARITHMETIC = ("mul", "div", "remainder", "fmod", "floor_divide", "copysign", "true_divide", "multiply", "divide")
_COMPARISONS = ("eq", "ne", "lt", "gt", "le", "ge", "less", "greater", "less_equal", "greater_equal", "not_equal")
_NUMBER_FIRST = {"remainder": operator.mod, "bitwise_and": operator.and_, "bitwise_or": operator.or_,
                 "bitwise_xor": operator.xor}  # fmt: skip
_BITS = ("bitwise_and", "bitwise_or", "bitwise_xor")
_IN_PLACE_BITS = {"__iand__": "bitwise_and_", "__ior__": "bitwise_or_", "__ixor__": "bitwise_xor_",
                  "__ilshift__": "bitwise_left_shift_", "__irshift__": "bitwise_right_shift_"}  # fmt: skip
_BIT_OPERATORS = {"__and__": "bitwise_and", "__or__": "bitwise_or", "__xor__": "bitwise_xor", 
                  "__lshift__": "bitwise_left_shift",                  "__rshift__": "bitwise_right_shift"}  # fmt: skip


def _packet(name: str) -> OpOverloadPacket:
    return find_packet(f"aten::{name}")


def _calling(name: str) -> Callable:
    packet = _packet(name)
    return lambda *args: packet(*args)


def _with_alpha(name: str) -> Callable:
    packet = _packet(name)
    return lambda self, other, alpha=1: packet(self, other) if alpha == 1 else packet(self, other, alpha=alpha)


def _register_scalars() -> None:
    for name in _WITH_ALPHA:
        declare_operator(f"aten::{name}.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", _with_alpha(name))
        declare_operator(
            f"aten::{name}_.Scalar(Tensor(a!) self, Scalar other, Scalar alpha=1) -> Tensor(a!)", _with_alpha(f"{name}_")
        )
    for name in (*_ARITHMETIC, *_COMPARISONS, *_BITS):
        declare_operator(f"aten::{name}.Scalar(Tensor self, Scalar other) -> Tensor", _calling(name))
        if _has(f"{name}_"):
            declare_operator(f"aten::{name}_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)", _calling(f"{name}_"))
    for name, plain in _BIT_OPERATORS.items():
        declare_operator(f"aten::{name}.Tensor(Tensor self, Tensor other) -> Tensor", _calling(plain))
        declare_operator(f"aten::{name}.Scalar(Tensor self, Scalar other) -> Tensor", _calling(plain))
    for name, plain in _IN_PLACE_BITS.items():
        declare_operator(f"aten::{name}.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", _calling(plain))
        declare_operator(f"aten::{name}.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)", _calling(plain))
    _register_reversed()


def _has(name: str) -> bool:
    return bool(_packet(name).overloads()) if _exists(name) else False


def _exists(name: str) -> bool:
    try:
        return find_packet(f"aten::{name}") is not None
    except (AttributeError, KeyError):
        return False


def _register_reversed() -> None:
    """Register operators whose left operand is a number: Python's operators and `rsub`."""
    for name, function in _NUMBER_FIRST.items():
        declare_operator(f"aten::{name}.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", function)
    declare_operator("aten::floor_divide.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", lambda a, b: a // b)


def _number(size: int | SymInt) -> int | SymInt:
    """Return a size as a plain int. It stays symbolic in a capture, and traced ints keep their graph value."""
    return size if type(size) is SymInt else int(size)


def _register_questions() -> None:
    register = declare_operator
    register("aten::size.int(Tensor self, int dim) -> int", lambda self, dim: _number(self.size(dim)))
    register("aten::stride.int(Tensor self, int dim) -> int", lambda self, dim: _number(self.stride(dim)))
    register("aten::sym_size.int(Tensor self, int dim) -> int", lambda self, dim: _number(self.size(dim)))
    for name in ("is_contiguous", "is_floating_point", "is_complex", "is_signed", "is_conj", "is_neg", "is_inference"):
        register(f"aten::{name}(Tensor self) -> bool", lambda self, name=name: bool(getattr(self, name)()))
    register("aten::is_contiguous.memory_format(Tensor self, MemoryFormat memory_format) -> bool",
             lambda self, form: self.is_contiguous(memory_format=memory_format_of_number(form)))  # fmt: skip
    register("aten::storage_offset(Tensor self) -> int", lambda self: self.storage_offset())
    register("aten::get_device(Tensor self) -> int", lambda self: self.get_device())
    register("aten::element_size(Tensor self) -> int", lambda self: self.element_size())
    register("aten::is_nonzero(Tensor self) -> bool", bool)
    register("aten::is_same_size(Tensor self, Tensor other) -> bool", lambda self, other: self.shape == other.shape)
    register("aten::requires_grad_(Tensor(a!) self, bool requires_grad=True) -> Tensor(a!)", Tensor.requires_grad_)
    register("aten::retain_grad(Tensor(a!) self) -> ()", Tensor.retain_grad)
    register("aten::cpu(Tensor(a) self) -> Tensor(a|b)", lambda self: self.cpu())
    register("aten::numpy_T.a(Tensor(a) self) -> Tensor(a)", lambda self: self.T)
    register("aten::_shape_as_tensor(Tensor self) -> Tensor", lambda self: self.new_tensor(list(self.shape)))
    register(
        "aten::result_type.Tensor(Tensor tensor, Tensor other) -> ScalarType", lambda a, b: dtype_number(result_type(a, b))
    )
    for name, kind in (("Float", float32), ("Double", float64), ("Int", int32), ("Long", int64), ("Half", float16)):
        register(f"aten::_cast_{name}(Tensor self, bool non_blocking=False) -> Tensor",
                 lambda self, non_blocking=False, kind=kind: self.to(kind))  # fmt: skip


_register_scalars()
_register_questions()
