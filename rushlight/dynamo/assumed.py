"""The guards of one capture as text: each assumption is an expression, and `explain` finds the one that fails.

In: expressions over a frame's values, and the objects that they mention by name. Out: their text as a Python function, and the
first expression that is false for given values.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from rushlight.core.tensor import Tensor
from rushlight.dynamo.guard_words import Words
from rushlight.dynamo.sources import parameter_text
from rushlight.dynamo.stability import is_stable
from rushlight.nn.modules.module import Module


class Stated(Protocol):
    """One assumption: an expression that must be true, an expression for the value it tests (None if it tests no single value),
    and the reason for it."""

    @property
    def expression(self) -> str:
        """Return an expression that must be true."""

    @property
    def place(self) -> str | None:
        """Return an expression that reaches the tested value."""

    @property
    def reason(self) -> str:
        """Return the kind of assumption, for messages."""


class Assumed:
    """The assumptions of one capture. `names` are the objects that their expressions mention, or weak references to them;
    `free_variables` are the names of the function's cells."""

    def __init__(self, parameters: tuple[str, ...], free_variables: tuple[str, ...] = ()) -> None:
        self.parameters = parameters
        self.free_variables = free_variables
        self.names: dict[str, Any] = {}
        self.guards: Sequence[Stated] = []
        self.died: list[Callable[[], None]] = []

    def refer(self, value: object, is_weak: bool) -> object:
        """Return the object itself, or a weak reference whose death invalidates the capture."""
        return weakref.ref(value, _DeathCallback(self.died)) if is_weak else value

    def when_an_object_dies(self, function: Callable[[], None]) -> None:
        """Call `function` when a weakly referenced object of the guards dies, because the guards cannot hold after that."""
        self.died.append(function)

    def text(self) -> str:
        """Return the guards as a Python function, and what the names in it stand for."""
        legend = "".join(f"# {line}\n" for line in self._words().legend())
        return self.function([guard.expression for guard in self.guards]) + (f"\n{legend}" if legend else "")

    def texts(self) -> list[str]:
        """Return each guard in the program's words."""
        words = self._words()
        return [words.text(guard.expression) for guard in self.guards]

    def _words(self) -> Words:
        return Words([guard.expression for guard in self.guards], self.names, self.free_variables)

    def function(self, expressions: list[str]) -> str:
        """Return the text of a Python function that takes the frame's values and tests all expressions."""
        tests = "\n        and ".join(expressions) or "True"
        parameters = ", ".join((*map(parameter_text, self.parameters), "__globals", "__closure"))
        return f"def guard({parameters}):\n    return (\n        {tests}\n    )\n"

    def explain(self, values: dict[str, Any]) -> str:
        """Return the first assumption that fails for a frame's values, in the program's words, and the value found."""
        values = {parameter_text(name): value for name, value in values.items()}
        for guard in self.guards:
            try:
                holds, found = eval(guard.expression, dict(self.names), values), ""
                if not holds and guard.place is not None:
                    found = f", found {_short(eval(guard.place, dict(self.names), values))}"
            except Exception as error:  # an object on the path to the value no longer exists
                holds, found = False, f", found {type(error).__name__}: {error}"
            if not holds:
                return f"{self._words().text(guard.expression)} ({guard.reason}){found}"
        return "all hold"


def is_referred_to_weakly(value: object) -> bool:
    """Return whether guards must refer to an object weakly: the program's modules, functions, code, classes and trained
    tensors. A capture must not keep those alive."""
    if isinstance(value, Tensor):
        return value.requires_grad and value.is_leaf
    if isinstance(value, (types.FunctionType, type)):
        return not is_stable(value)
    return isinstance(value, (Module, types.CodeType))


class _DeathCallback:
    """The callback of a weak reference: it calls the functions of a list. It holds nothing but that list."""

    __slots__ = ("functions",)

    def __init__(self, functions: list[Callable[[], None]]) -> None:
        self.functions = functions

    def __call__(self, reference: weakref.ref) -> None:
        while self.functions:
            self.functions.pop()()


def _short(value: object) -> str:
    """Describe a value in a line."""
    if isinstance(value, Tensor):
        shape = f"shape {list(value.shape)}, strides {list(value.stride())}"
        return f"a tensor of {shape}, {value.dtype}, requires_grad={value.requires_grad}"
    text = repr(value)
    return text if len(text) < 80 else text[:77] + "..."
