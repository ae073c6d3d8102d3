"""Runs programs in eager and captured, and compares all effects.

In: a function, arguments and the globals of its module. Out: its result or exception with line numbers, and afterwards its
arguments, the module's capitalised variables and the grad mode.
"""

from __future__ import annotations

import collections
import copy
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import rushlight as torch
from rushlight import dynamo


@dataclass
class Program:
    """A function and how to call it.

    `graphs` is the number of graphs of its first call, on its own or inlined into a caller. `pieces` is the number on its own
    for functions with graph breaks. None: any number.
    """

    function: Callable
    args: tuple
    graphs: int | None
    pieces: int | None = None


@dataclass
class Programs:
    """The programs of one topic."""

    found: list[Program] = field(default_factory=list)

    def __call__(self, *args: Any, graphs: int | None = None) -> Callable[[Callable], Callable]:
        """Register a function with arguments, which each call gets a copy of."""

        def register(function: Callable) -> Callable:
            self.found.append(Program(function, args, graphs))
            return function

        return register

    def broken(self, *args: Any, pieces: int) -> Callable[[Callable], Callable]:
        """Like a call, for a function that breaks into this many graphs: capture resumes after each break."""

        def register(function: Callable) -> Callable:
            self.found.append(Program(function, args, None, pieces))
            return function

        return register

    def one(self, *args: Any) -> Callable[[Callable], Callable]:
        """Like a call, for a function that must be captured as one graph without a break."""
        return self(*args, graphs=1)


@dataclass
class Recorder:
    """A backend that runs graphs as they are."""

    graphs: list = field(default_factory=list)

    def __call__(self, module: Any, inputs: list) -> Any:
        self.graphs.append(module)
        return module


def differences(program: Program, captured: Callable, calls: int = 3) -> list[str]:
    """The differences between eager and a captured program over several calls."""
    state = program.function.__globals__
    before = {name: copy.deepcopy(value) for name, value in state.items() if _is_variable(name, value)}
    found = []
    for _ in range(calls):
        wanted = outcome(program.function, program, before)
        found.append(compare(wanted, outcome(captured, program, before), program.function.__name__))
    restore(state, before)
    return [difference for difference in found if difference is not None]


def check(program: Program, calls: int = 3) -> None:
    """Asserts that a program behaves the same captured and in eager, at the first call and at later ones, both on its own and
    inlined."""
    direct = _check(program, program.function, calls)
    name = program.function.__name__
    assert program.pieces in (None, direct), f"{name} made {direct} graphs, expected {program.pieces}"
    inlined = _check(program, beside_a_graph(program.function), calls)
    if program.graphs is not None:
        counts = (direct, inlined)
        assert direct in (0, program.graphs), f"{program.function.__name__} made {counts} graphs, expected {program.graphs}"
        assert inlined == program.graphs, f"{program.function.__name__} made {counts} graphs, expected {program.graphs}"


def beside_a_graph(function: Callable) -> Callable:
    """A function that calls another one and has a graph of its own."""

    def run(*args: Any) -> Any:
        torch.zeros(2) + 1
        return function(*args)

    return run


def _check(program: Program, function: Callable, calls: int) -> int:
    """Compares, and returns the number of graphs of the first call. If the number is known, later calls must make none."""
    backend = Recorder()
    warnings.filterwarnings("error", message="compile: capturing")
    dynamo.reset()
    captured = dynamo.optimize(dynamo.FrameCallback(backend))(function)
    state = program.function.__globals__
    before = {name: copy.deepcopy(value) for name, value in state.items() if _is_variable(name, value)}
    fresh = None
    for call in range(calls):
        wanted = outcome(program.function, program, before)
        found = outcome(captured, program, before)
        difference = compare(wanted, found, "outcome")
        assert difference is None, f"{program.function.__name__}, call {call}: {difference}\n{wanted}\n{found}"
        fresh = len(backend.graphs) if fresh is None else fresh
    restore(state, before)
    assert program.graphs is None or len(backend.graphs) == fresh, f"{program.function.__name__} was captured again"
    return fresh


def outcome(function: Callable, program: Program, before: dict) -> dict:
    """All observable effects of a call."""
    state = program.function.__globals__
    restore(state, before)
    args = copy.deepcopy(program.args)
    torch.manual_seed(0)
    found: dict[str, Any] = {"result": None, "error": None}
    try:
        found["result"] = function(*args)
    except Exception as error:
        found["error"] = described(error, program.function.__code__.co_filename)
    found |= {"args": args, "grad": torch.is_grad_enabled(), "state": {name: state.get(name) for name in before}}
    found["extra"] = sorted(name for name, value in state.items() if _is_variable(name, value) and name not in before)
    torch.set_grad_enabled(True)
    try:
        return copy.deepcopy(found)
    except (TypeError, RuntimeError):  # a generator, or a tensor with autograd history
        return found


def described(error: BaseException, filename: str) -> list:
    """An exception's class and arguments, its line numbers within a file, and its causes."""
    lines, step = [], error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == filename:
            lines.append((step.tb_frame.f_code.co_name, step.tb_lineno))
        step = step.tb_next
    following = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return [type(error), error.args, lines, None if following is None else described(following, filename)[:2]]


def _is_variable(name: str, value: Any) -> bool:
    return name.isupper() and not isinstance(value, type | types.ModuleType | types.FunctionType | torch.nn.Module | Programs)


def restore(state: dict, before: dict) -> None:
    """Restores a module's variables; lists, dicts and objects keep their identity."""
    for name in [name for name, value in state.items() if _is_variable(name, value) and name not in before]:
        del state[name]
    for name, value in before.items():
        value, held = copy.deepcopy(value), state.get(name)
        if type(held) is not type(value):
            state[name] = value
        elif isinstance(held, list):
            held[:] = value
        elif isinstance(held, dict | set):
            held.clear()
            held.update(value)
        elif hasattr(held, "__dict__") and not isinstance(held, torch.Tensor):
            vars(held).clear()
            vars(held).update(vars(value))
        else:
            state[name] = value


def compare(wanted: Any, found: Any, where: str) -> str | None:
    """The difference between two values, or None. Values that contain themselves are followed to a limited depth."""
    if where.count("[") > 12:
        return None
    if type(wanted) is not type(found) and not (_is_class_like(wanted, found)):
        return f"{where}: {type(wanted)} and {type(found)}"
    if isinstance(wanted, torch.Tensor):
        alike = (wanted.shape, wanted.dtype, wanted.requires_grad, wanted.stride()) == (
            found.shape, found.dtype, found.requires_grad, found.stride())  # fmt: skip
        return None if alike and torch.equal(wanted.nan_to_num(), found.nan_to_num()) else f"{where}: {wanted} and {found}"
    if isinstance(wanted, dict):
        if list(wanted) != list(found):
            return f"{where}: keys {list(wanted)} and {list(found)}"
        return _first(compare(wanted[key], found[key], f"{where}[{key!r}]") for key in wanted)
    if isinstance(wanted, list | tuple):
        if len(wanted) != len(found):
            return f"{where}: {wanted} and {found}"
        return _first(compare(one, other, f"{where}[{i}]") for i, (one, other) in enumerate(zip(wanted, found, strict=True)))
    if isinstance(wanted, set | frozenset):  # sets are compared without order, since string hashes differ between processes
        return compare(sorted(wanted, key=repr), sorted(found, key=repr), where)
    if isinstance(wanted, collections.deque):
        return compare(list(wanted), list(found), where)
    if isinstance(wanted, types.MethodType):
        return compare([wanted.__func__, wanted.__self__], [found.__func__, found.__self__], where)
    if isinstance(wanted, types.FunctionType):
        return compare(wanted.__qualname__, found.__qualname__, where)
    if isinstance(wanted, type):
        return compare(wanted.__qualname__, found.__qualname__, where)
    if hasattr(wanted, "__dict__") and (type(wanted).__module__.startswith("tests.") or isinstance(wanted, types.SimpleNamespace)):
        return compare(vars(wanted), vars(found), f"{where}[vars]")
    if hasattr(type(wanted), "__next__"):
        return compare(list(wanted), list(found), where)
    if type(wanted).__repr__ is object.__repr__:
        return None
    return None if wanted == found or repr(wanted) == repr(found) else f"{where}: {wanted!r} and {found!r}"


def _is_class_like(wanted: Any, found: Any) -> bool:
    """Whether two classes that a program creates at each call differ in identity only."""
    return type(wanted).__qualname__ == type(found).__qualname__ and "<locals>" in type(wanted).__qualname__


def _first(differences: Any) -> str | None:
    return next((difference for difference in differences if difference is not None), None)
