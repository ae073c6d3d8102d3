"""Operators with Python numbers that change from call to call, as functions that take the numbers as 0-dim tensors, so that
another number does not need another graph.

In: an operator. Out: a function of the same arguments, whose floats may be tensors.
"""

from __future__ import annotations

from collections.abc import Callable

from rushlight.core.dtype import bfloat16, float16, float64
from rushlight.core.tensor import Tensor
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


def _scaled(tensor: Tensor | float, factor: object) -> object:
    return tensor if type(factor) is int and factor == 1 else tensor * factor


_HALVES = (bfloat16, float16)


def _is_number(value: object) -> bool:
    """Return whether a value is a number, or the tensor of one."""
    return not isinstance(value, Tensor) or (value.dtype is float64 and not value._impl.sizes)


def _rounding_once(function: Callable) -> Callable:
    """Return a function that calculates with 16-bit floats and numbers in float32, so that numbers are not rounded to 16 bits,
    and results once."""

    def run(*args: object, **kwargs: object) -> Tensor:
        given = (*args, *kwargs.values())
        kinds = {value.dtype for value in given if not _is_number(value)}
        has_numbers = any(_is_number(value) and type(value) is not int for value in given)
        if not has_numbers or len(kinds) != 1 or not kinds.issubset(_HALVES):
            return function(*args, **kwargs)
        wide = [value if _is_number(value) else value.float() for value in args]
        return function(*wide, **kwargs).to(kinds.pop())

    return run


def _inplace(function: Callable) -> Callable:
    """Return the form of a function that writes to its first argument."""
    return lambda self, *args, **kwargs: self.copy_(function(self, *args, **kwargs))


def _inplace_name(name: str) -> str:
    base, dot, overload = name.partition(".")
    return f"{base}_{dot}{overload}"


_scaled_sum = _rounding_once(lambda self, other, alpha: aten.add.Tensor(self, other * alpha))


def _sum(self: Tensor, other: Tensor | float, *, alpha: object = 1) -> Tensor:
    return aten.add.Tensor(self, other) if type(alpha) is int and alpha == 1 else _scaled_sum(self, other, alpha)


def _difference(self: Tensor, other: Tensor | float, *, alpha: object = 1) -> Tensor:
    return aten.sub.Tensor(self, other) if type(alpha) is int and alpha == 1 else _scaled_sum(self, other, -alpha)


_COMPARED = ("eq", "ne", "lt", "le", "gt", "ge")
_FORMS: dict[str, Callable] = {
    "add.Tensor": _sum,
    "sub.Tensor": _difference,
    "mul.Tensor": _rounding_once(lambda self, other: aten.mul.Tensor(self, other)),
    "div.Tensor": _rounding_once(lambda self, other: aten.div.Tensor(self, other)),
    "addcmul": _rounding_once(lambda self, one, two, *, value=1: aten.add.Tensor(self, _scaled(one * two, value))),
    "addcdiv": _rounding_once(lambda self, one, two, *, value=1: aten.add.Tensor(self, _scaled(one / two, value))),
}
_FORMS |= {_inplace_name(name): _inplace(form) for name, form in _FORMS.items()}
# Operators whose second operand may be a number or a tensor.
_OPERANDS = frozenset(f"{name}.Tensor" for name in _COMPARED)
_BOUNDS = frozenset(("maximum", "minimum"))


def open_form(op: OpOverload) -> Callable | None:
    """Return a function of an operator's arguments that takes tensors in place of floats; None if there is none."""
    if op.namespace != "aten":
        return None
    name = op.__name__.removesuffix(".default")
    return op if name in _OPERANDS else _FORMS.get(name)


def open_form_in_graphs(op: OpOverload) -> Callable | None:
    """Return the same for a node of a captured graph, in which numbers are bounds and tensors without dimensions, too."""
    name = op.__name__.removesuffix(".default") if op.namespace == "aten" else ""
    if name == "full":
        return _filled
    return op if name in _BOUNDS else open_form(op)


def _filled(size: tuple, value: Tensor | float, *, dtype: object = None, **kwargs: object) -> Tensor:
    """Return a tensor that is filled with a number, which may be a tensor."""
    if not isinstance(value, Tensor):
        return aten.full.default(size, value, dtype=dtype, **kwargs)
    made = value if dtype is None else value.to(dtype)
    return made.expand(size) if size else made
