"""What one capture assumed, for people: each assumption as an expression, and which of them does not hold.

In: expressions over a frame's values, and the objects that they mention by name. Out: their text as a function, and, for values
that do not fit, the first expression that is not true of them.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from rushlight.core.tensor import Tensor
from rushlight.dynamo.sources import parameter_text
from rushlight.dynamo.stability import is_stable
from rushlight.nn.modules.module import Module


class Stated(Protocol):
    """One assumption: an expression that must be true, an expression for the value that it is about (None for no single one),
    and why it was made."""

    @property
    def expression(self) -> str:
        """What must be true."""

    @property
    def place(self) -> str | None:
        """Where the value is."""

    @property
    def reason(self) -> str:
        """What kind of assumption it is."""


class Assumed:
    """The assumptions of one capture. `names` are the objects that their expressions mention, or weak references to them."""

    def __init__(self, parameters: tuple[str, ...]) -> None:
        self.parameters = parameters
        self.names: dict[str, Any] = {}
        self.guards: Sequence[Stated] = []
        self.died: list[Callable[[], None]] = []

    def refer(self, value: object, is_weak: bool) -> object:
        """What `names` has for an object: itself, or a weak reference, whose end ends the assumptions."""
        return weakref.ref(value, _Farewell(self.died)) if is_weak else value

    def when_an_object_dies(self, function: Callable[[], None]) -> None:
        """Have a function called when an object dies to which the guards refer weakly: they will not hold again."""
        self.died.append(function)

    def text(self) -> str:
        """The guards as a Python function."""
        return self.function([guard.expression for guard in self.guards])

    def function(self, expressions: list[str]) -> str:
        """The text of a function of the frame's values that says whether all expressions are true."""
        tests = "\n        and ".join(expressions) or "True"
        parameters = ", ".join((*map(parameter_text, self.parameters), "__globals", "__closure"))
        return f"def guard({parameters}):\n    return (\n        {tests}\n    )\n"

    def explain(self, values: dict[str, Any]) -> str:
        """The first assumption that does not hold for a frame's values, and what was found instead."""
        values = {parameter_text(name): value for name, value in values.items()}
        for guard in self.guards:
            try:
                holds, found = eval(guard.expression, dict(self.names), values), ""
                if not holds and guard.place is not None:
                    found = f", found {_short(eval(guard.place, dict(self.names), values))}"
            except Exception as error:  # the path to the value is gone
                holds, found = False, f", found {type(error).__name__}: {error}"
            if not holds:
                return f"{guard.expression} ({guard.reason}){found}"
        return "all hold"


def is_referred_to_weakly(value: object) -> bool:
    """Whether a capture must not keep an object alive: the program's own modules, functions, their code, classes, and tensors
    that are trained."""
    if isinstance(value, Tensor):
        return value.requires_grad and value.is_leaf
    if isinstance(value, (types.FunctionType, type)):
        return not is_stable(value)
    return isinstance(value, (Module, types.CodeType))


class _Farewell:
    """What a weak reference calls at its object's end: the functions of a list, which is all that it holds."""

    __slots__ = ("functions",)

    def __init__(self, functions: list[Callable[[], None]]) -> None:
        self.functions = functions

    def __call__(self, reference: weakref.ref) -> None:
        while self.functions:
            self.functions.pop()()


def _short(value: object) -> str:
    if isinstance(value, Tensor):
        shape = f"shape {list(value.shape)}, strides {list(value.stride())}"
        return f"a tensor of {shape}, {value.dtype}, requires_grad={value.requires_grad}"
    text = repr(value)
    return text if len(text) < 80 else text[:77] + "..."
