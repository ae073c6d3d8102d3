"""Operators with Python numbers that change from call to call, as functions that take the numbers as 0-dim tensors, so that
another number does not need another graph.

In: an operator. Out: a function of the same arguments, whose floats may be tensors.
"""

from __future__ import annotations

from collections.abc import Callable

from rushlight.core.tensor import Tensor
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


def _scaled(tensor: Tensor | float, factor: object) -> object:
    return tensor if type(factor) is int and factor == 1 else tensor * factor


# Operators that multiply by a number, which has to become a product of tensors.
_WITH_FACTORS: dict[str, Callable] = {
    "add.Tensor": lambda self, other, *, alpha=1: aten.add.Tensor(self, _scaled(other, alpha)),
    "add_.Tensor": lambda self, other, *, alpha=1: aten.add_.Tensor(self, _scaled(other, alpha)),
    "sub.Tensor": lambda self, other, *, alpha=1: aten.sub.Tensor(self, _scaled(other, alpha)),
    "sub_.Tensor": lambda self, other, *, alpha=1: aten.sub_.Tensor(self, _scaled(other, alpha)),
    "addcmul": lambda self, one, two, *, value=1: aten.add.Tensor(self, _scaled(one * two, value)),
    "addcmul_": lambda self, one, two, *, value=1: aten.add_.Tensor(self, _scaled(one * two, value)),
    "addcdiv": lambda self, one, two, *, value=1: aten.add.Tensor(self, _scaled(one / two, value)),
    "addcdiv_": lambda self, one, two, *, value=1: aten.add_.Tensor(self, _scaled(one / two, value)),
}
# Operators whose second operand may be a number or a tensor.
_COMPARED = ("eq", "ne", "lt", "le", "gt", "ge")
_OPERANDS = frozenset(f"{name}.Tensor" for name in ("mul", "mul_", "div", "div_", *_COMPARED))
_BOUNDS = frozenset(("maximum", "minimum"))


def open_form(op: OpOverload) -> Callable | None:
    """Return a function of an operator's arguments that takes tensors in place of floats; None if there is none."""
    if op.namespace != "aten":
        return None
    name = op.__name__.removesuffix(".default")
    return op if name in _OPERANDS else _WITH_FACTORS.get(name)


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
