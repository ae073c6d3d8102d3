"""The Python part of the stack machine that runs Code; its loop is `Machine` in C (`csrc/machine_loop.c`).

In: code and arguments. Out: results. Calls push frames onto the machine's own stack, so deep recursion of scripted code does
not use Python's stack. Exceptions propagate unchanged, or as JitException if scripted code raised them, with the traceback of
scripted code prepended to the message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rushlight._C import Machine, MachineCode
from rushlight.jit.errors import JitException
from rushlight.jit.runtime.assembly import assembled
from rushlight.jit.runtime.code import Code, Instruction
from rushlight.jit.runtime.futures import Future, fork
from rushlight.jit.runtime.objects import ScriptObject
from rushlight.jit.runtime.type_checks import is_instance
from rushlight.jit.runtime.watching import fits
from rushlight.jit.types.kinds import TupleType

CodeOf = Callable[[object], Code]
"""Gives the code of a function that is called."""
Place = tuple[Code, int]
"""An instruction that a frame is at: its code and its number."""


class Interpreter:
    """Runs functions; `code_of` returns the code of called functions."""

    def __init__(self, code_of: CodeOf):
        self.code_of = code_of
        self._machine = Machine(self._machine_code, self._method_code, self._execute_rare, self._handle_error, ScriptObject)

    def run(
        self, code: Code, arguments: list, gives_up: Callable[[], bool] | None = None, seconds: float = 0.0
    ) -> list | None:
        """Return the results of a code for arguments. Once a loop has taken `seconds`, `gives_up` decides whether to stop,
        without results."""
        machine_code = code.machine_code or assembled(code)
        if gives_up is None:
            return self._machine.run(machine_code, arguments)
        return self._machine.run(machine_code, arguments, gives_up, seconds)

    def _machine_code(self, function: object) -> MachineCode:
        return assembled(self.code_of(function))

    def _method_code(self, value: ScriptObject, name: str) -> MachineCode:
        return assembled(self.code_of(value.type.find_method(name)))

    def _execute_rare(self, code: Code, position: int, values: list, entered: list) -> Sequence:
        """Execute a rare instruction, which has no operation in the machine."""
        op, x, n = code.instructions[position]
        if op == "GUARD":
            return values[0], fits(values[0], code.types[x])
        if op == "FAIL_GUARD":
            code.instructions[position] = Instruction("GUARD", x)
            return values[0], False
        if op == "CREATE_OBJECT":
            return (ScriptObject(code.types[x]),)
        if op == "ISINSTANCE":
            return (any(is_instance(values[0], kind) for kind in code.types[x]),)
        if op == "NAMED_TUPLE_CONSTRUCT":
            return (make_named_tuple(code.types[x], values),)
        if op == "FORK":
            return (fork(self, code.codes[x], values),)
        if op == "WAIT":
            return (_wait(values[0]),)
        if op in ("ENTER", "EXIT"):
            return self._enter_or_exit(op, values[0], entered)
        if op == "RAISE_EXCEPTION":
            raise JitException(values[0], (values[1] if n == 2 else None) or "")
        raise RuntimeError(f"unknown instruction {op}")

    def _enter_or_exit(self, op: str, manager: ScriptObject, entered: list) -> list:
        if op == "ENTER":
            entered.append(manager)
            return self.run(self.code_of(manager.type.find_method("__enter__")), [manager])
        if manager in entered:  # else an earlier piece of split code has entered it
            entered.remove(manager)
        return self.run(self.code_of(manager.type.find_method("__exit__")), [manager, None, None, None])

    def _handle_error(self, error: BaseException, places: list[Place], entered: list) -> None:
        """Exit the entered contexts, and raise the error."""
        for manager in reversed(entered):
            self.run(self.code_of(manager.type.find_method("__exit__")), [manager, None, None, None])
        raise _with_traceback(error, places) from error


def _wait(value: object) -> object:
    return value.wait() if isinstance(value, Future) else value


def make_named_tuple(kind: TupleType, values: list) -> tuple:
    """Return a NamedTuple, of the user's class if there is one."""
    return kind.python_class(*values) if kind.python_class is not None else tuple(values)


def _with_traceback(error: BaseException, places: list[Place]) -> BaseException:
    """Return the error with the traceback of scripted code."""
    if getattr(error, "_has_script_traceback", False) or not isinstance(error, Exception):
        return error
    lines = [
        "The following operation failed in the TorchScript interpreter.",
        "Traceback of TorchScript (most recent call last):",
    ]
    for code, position in places:
        frames = code.nodes[position].source_range.frames(code.name.rpartition(".")[2])
        lines += [frame.rstrip("\n") for frame in frames]
    name = getattr(error, "python_class", "").rpartition(".")[2] or type(error).__name__
    lines.append(f"{'RuntimeError' if name == 'JitException' else name}: {error}")
    made = JitException("\n".join(lines) + "\n", getattr(error, "python_class", f"builtins.{type(error).__name__}"))
    made._has_script_traceback = True
    return made
