"""Updates of one parameter by an optimizer, recorded as graphs.

In: the function by which an optimizer updates a parameter, and a row of a parameter, its gradient and its state. Out: a
`RecordedUpdate`: the graph, and the numbers in it, such as the learning rate, which are calculated when the update is recorded.
Other numbers are found by a replay, which calls the function again and compares its operators with the recorded ones.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from rushlight.autograd.grad_mode import set_grad_enabled
from rushlight.compiler.open_graphs import form_of, numbers_of
from rushlight.compiler.open_numbers import open_form_in_graphs
from rushlight.core.dtype import dtype
from rushlight.core.tensor import Tensor
from rushlight.fx.proxy_tensor import capture
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.modes import DispatchMode
from rushlight.optim.device_steps import Row, Update


class _Number:
    """A number of a state, such as the count of steps, while an update is recorded: it is calculated with at once. It stands
    for a CPU tensor without dimensions, and is rounded like it."""

    is_cuda = False

    def __init__(self, value: float, kind: dtype):
        self._round = kind.numpy.type
        self._value = self._round(value)

    def item(self) -> float:
        """Return the number."""
        return self._value.item()

    def fill_(self, value: float) -> _Number:
        """Replace the number."""
        self._value = self._round(value)
        return self

    def add_(self, value: float) -> _Number:
        """Add to the number."""
        return self.fill_(self.item() + value)

    def mul_(self, factor: float) -> _Number:
        """Multiply the number."""
        return self.fill_(self.item() * factor)


class _Call(NamedTuple):
    """A call of an operator. Arguments are a flat list in which tensors stand for themselves."""

    op: OpOverload
    arguments: list[object]
    result: object
    is_open: bool


class _Tape(DispatchMode):
    """Records calls of operators, which outer modes answer."""

    def __init__(self) -> None:
        self.calls: list[_Call] = []

    def __torch_dispatch__(self, op: OpOverload, types: tuple, args: tuple, kwargs: dict) -> object:
        result = op(*args, **kwargs)
        self.calls.append(_Call(op, _flat(args, kwargs), result, open_form_in_graphs(op) is not None))
        return result

    def numbers(self) -> list[float]:
        """Return the numbers that a graph of these calls takes as tensors."""
        return [value for call in self.calls if call.is_open for value in call.arguments if type(value) is float]


class _Changed(Exception):
    """A replay calls other operators than those that were recorded."""


class _Replay(DispatchMode):
    """Answers calls with recorded results, and collects the numbers among their arguments."""

    def __init__(self, calls: list[_Call]):
        self._left = iter(calls)
        self.numbers: list[float] = []

    def __torch_dispatch__(self, op: OpOverload, types: tuple, args: tuple, kwargs: dict) -> object:
        recorded = next(self._left, None)
        given = _flat(args, kwargs)
        if recorded is None or op is not recorded.op or len(given) != len(recorded.arguments):
            raise _Changed
        for value, other in zip(given, recorded.arguments, strict=True):
            if recorded.is_open and type(value) is float and type(other) is float:
                self.numbers.append(value)
            elif not _is_same(value, other):
                raise _Changed
        return recorded.result

    def is_at_end(self) -> bool:
        """Return whether all recorded calls were made."""
        return next(self._left, None) is None


def _flat(args: tuple, kwargs: dict) -> list[object]:
    found: list[object] = []
    for value in (*args, *kwargs.items()):
        found += _flat(tuple(value), {}) if isinstance(value, tuple | list) else [value]
    return found


def _is_same(value: object, other: object) -> bool:
    if isinstance(value, Tensor):
        return isinstance(other, Tensor) and value._impl is other._impl
    return type(value) is type(other) and value == other


class RecordedUpdate:
    """The update of one row. `after` are the numbers of the row's state after it."""

    def __init__(self, update: Update, row: Row, options: dict[str, Any]):
        """Record the update of a row. DataDependentError if the update depends on the values of tensors."""
        parameter, gradient, state = row
        there = {name: value for name, value in state.items() if not is_number(value)}
        shared = {name: value for name, value in options.items() if isinstance(value, Tensor) and value.is_cuda}
        self._tape = _Tape()

        def run(*fakes: Any) -> tuple:
            self._fakes = fakes
            with self._tape:
                self._run(update, numbers, options)
            return ()

        numbers = {name: _Number(value.item(), value.dtype) for name, value in state.items() if is_number(value)}
        with set_grad_enabled(False):
            self.module = capture(run, (parameter.detach(), gradient.detach(), there, shared)).module
        self.after = {name: number.item() for name, number in numbers.items()}
        self.form, self.numbers = form_of(self.module), numbers_of(self.module)
        recorded = [node.target for node in self.module.graph.nodes if node.op == "call_function"]
        in_step = [call.op for call in self._tape.calls] == recorded and self._tape.numbers() == self.numbers
        self._calls = self._tape.calls if in_step else None

    def _run(self, update: Update, numbers: dict[str, _Number], options: dict[str, Any]) -> None:
        parameter, gradient, there, shared = self._fakes
        update(parameter, gradient, {**there, **numbers}, {**options, **shared})

    def replay(
        self, update: Update, state: dict[str, tuple[float, dtype]], options: dict[str, Any]
    ) -> list[float] | None:  # fmt: skip
        """Set `after`, and return the graph's numbers, for other numbers in the state and in the options. None if the update
        calls other operators now."""
        if self._calls is None:
            return None
        numbers = {name: _Number(value, kind) for name, (value, kind) in state.items()}
        replayed = _Replay(self._calls)
        try:
            with set_grad_enabled(False), replayed:
                self._run(update, numbers, options)
        except _Changed:
            return None
        if not replayed.is_at_end():
            return None
        self.after = {name: number.item() for name, number in numbers.items()}
        return replayed.numbers


def is_number(value: object) -> bool:
    """Return whether a value of a state is a number, such as a count of steps, that the program counts with."""
    return isinstance(value, Tensor) and not value.is_cuda and not value.dim()
