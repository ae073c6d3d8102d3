"""The stack machine that runs Code.

In: code and arguments. Out: results. Calls push frames onto a list of its own, so that deep recursion of scripted code does not
use Python's stack. An error leaves as the exception it is, or as JitException for one that scripted code raised, with the
traceback of scripted code put before its message.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rushlight.jit.errors import JitException
from rushlight.jit.runtime.code import Code, Instruction
from rushlight.jit.runtime.futures import Future, fork
from rushlight.jit.runtime.objects import ScriptObject
from rushlight.jit.runtime.type_checks import is_instance
from rushlight.jit.runtime.watching import fits
from rushlight.jit.types.kinds import TupleType

CodeOf = Callable[[object], Code]
"""Gives the code of a function that is called."""
_DEPTH = 10_000


@dataclass(slots=True)
class Frame:
    """A function that runs: its code, its registers, and the number of the next instruction."""

    code: Code
    registers: list
    counter: int = 0
    base: int = 0
    """How much of the stack belongs to its callers."""


class Interpreter:
    """Runs functions; `code_of` finds the code of those that are called."""

    def __init__(self, code_of: CodeOf):
        self.code_of = code_of

    def run(self, code: Code, arguments: list) -> list:
        """The results of a code for arguments."""
        stack: list = list(arguments)
        frames = [Frame(code, [None] * code.register_count)]
        entered: list = []
        try:
            while frames:
                self._run_frame(frames, stack, entered)
        except BaseException as error:
            self._leave(entered)
            raise _with_traceback(error, frames) from error
        return stack

    def _leave(self, entered: list) -> None:
        for manager in reversed(entered):
            method = manager.type.find_method("__exit__")
            self.run(self.code_of(method), [manager, None, None, None])

    def _run_frame(self, frames: list[Frame], stack: list, entered: list) -> None:
        """Run the innermost frame until it calls another or ends."""
        frame = frames[-1]
        code, registers, counter = frame.code, frame.registers, frame.counter
        instructions, operators, constants = code.instructions, code.operators, code.constants
        push, pop = stack.append, stack.pop
        while True:
            op, x, n = instructions[counter]
            frame.counter = counter
            if op == "LOAD":
                push(registers[x])
            elif op == "OPN":
                if n:
                    arguments = stack[-n:]
                    del stack[-n:]
                else:
                    arguments = ()
                stack += operators[x](arguments)
            elif op == "MOVE":
                push(registers[x])
                registers[x] = None
            elif op == "LOADC":
                push(constants[x])
            elif op == "STORE":
                registers[x] = pop()
            elif op == "JF":
                if not pop():
                    counter += x
                    continue
            elif op == "JMP":
                counter += x
                continue
            elif op == "LOOP":
                if not _next_round(stack, n):
                    counter += x
                    continue
            elif op == "DROP":
                pop()
            elif op == "RET":
                frames.pop()
                return
            elif op in ("CALL", "INTERFACE_CALL"):
                frame.counter = counter + 1
                function = code.functions[x] if op == "CALL" else stack[-n].type.find_method(code.names[x])
                called = self.code_of(function)
                if len(frames) > _DEPTH:
                    raise RecursionError("scripted functions call one another too deeply")
                frames.append(Frame(called, [None] * called.register_count, 0, len(stack) - called.input_count))
                return
            elif op == "GUARD":
                push(fits(stack[-1], code.types[x]))
            elif op == "FAIL_GUARD":
                instructions[counter] = Instruction("GUARD", x)
                push(False)
            elif op == "TAIL_CALL":
                frames[-1] = _continued(self.code_of(code.functions[x]), stack, frame.base)
                return
            else:
                self._rarely(op, x, n, code, stack, entered)
            counter += 1

    def _rarely(self, op: str, x: int, n: int, code: Code, stack: list, entered: list) -> None:
        """Instructions that are not worth a place in the loop."""
        if op == "GET_ATTR":
            stack.append(stack.pop().slots[code.names[x]])
        elif op == "SET_ATTR":
            value = stack.pop()
            stack.pop().slots[code.names[x]] = value
        elif op == "LIST_CONSTRUCT":
            stack.append(_take(stack, n))
        elif op == "TUPLE_CONSTRUCT":
            stack.append(tuple(_take(stack, x)))
        elif op == "NAMED_TUPLE_CONSTRUCT":
            stack.append(make_named_tuple(code.types[x], _take(stack, n)))
        elif op == "DICT_CONSTRUCT":
            parts = _take(stack, n)
            stack.append(dict(zip(parts[::2], parts[1::2], strict=True)))
        elif op == "LIST_UNPACK":
            _unpack(stack, x)
        elif op == "CREATE_OBJECT":
            stack.append(ScriptObject(code.types[x]))
        elif op == "ISINSTANCE":
            stack.append(any(is_instance(stack[-1], kind) for kind in code.types[x]))
            del stack[-2]
        elif op in ("TYPECHECK", "PROFILE_OP"):
            stack += code.operators[x](_take(stack, n))
        elif op == "FORK":
            stack.append(fork(self, code.codes[x], _take(stack, n)))
        elif op == "WAIT":
            stack.append(_wait(stack.pop()))
        elif op in ("ENTER", "EXIT"):
            self._manage(op, stack, entered)
        elif op == "RAISE_EXCEPTION":
            name = stack.pop() if n == 2 else None
            raise JitException(stack.pop(), name or "")
        else:
            raise RuntimeError(f"unknown instruction {op}")

    def _manage(self, op: str, stack: list, entered: list) -> None:
        manager = stack.pop()
        if op == "ENTER":
            entered.append(manager)
            stack += self.run(self.code_of(manager.type.find_method("__enter__")), [manager])
        else:
            entered.remove(manager)
            stack += self.run(self.code_of(manager.type.find_method("__exit__")), [manager, None, None, None])


def _continued(code: Code, stack: list, base: int) -> Frame:
    """A frame in the place of one whose values on the stack go, but for the arguments on top."""
    arguments = _take(stack, code.input_count)
    del stack[base:]
    stack += arguments
    return Frame(code, [None] * code.register_count, 0, base)


def _next_round(stack: list, inputs: int) -> bool:
    """The stack holds the count, its limit, the condition and the carried values. In the next round: the next count, the limit,
    this round's count and the carried values. After the last: the carried values."""
    base = len(stack) - inputs - 1
    count, limit, condition = stack[base : base + 3]
    if count < limit and condition:
        stack[base] = count + 1
        stack[base + 2] = count
        return True
    del stack[base : base + 3]
    return False


def _take(stack: list, count: int) -> list:
    if not count:
        return []
    taken = stack[-count:]
    del stack[-count:]
    return taken


def _unpack(stack: list, count: int) -> None:
    values = stack.pop()
    if len(values) != count:
        raise RuntimeError(f"Expected {count} elements in a list but found {len(values)}")
    stack.extend(values)


def _wait(value: object) -> object:
    return value.wait() if isinstance(value, Future) else value


def make_named_tuple(kind: TupleType, values: list) -> tuple:
    """A NamedTuple: of the user's class where there is one."""
    return kind.python_class(*values) if kind.python_class is not None else tuple(values)


def _with_traceback(error: BaseException, frames: list[Frame]) -> BaseException:
    """The error with where scripted code was."""
    if getattr(error, "_has_script_traceback", False) or not isinstance(error, Exception):
        return error
    lines = [
        "The following operation failed in the TorchScript interpreter.",
        "Traceback of TorchScript (most recent call last):",
    ]
    for depth, frame in enumerate(frames):
        position = frame.counter if depth == len(frames) - 1 else frame.counter - 1
        lines.append(frame.code.nodes[position].source_range.highlight().rstrip("\n"))
    name = getattr(error, "python_class", "").rpartition(".")[2] or type(error).__name__
    lines.append(f"{'RuntimeError' if name == 'JitException' else name}: {error}")
    made = JitException("\n".join(lines) + "\n", getattr(error, "python_class", f"builtins.{type(error).__name__}"))
    made._has_script_traceback = True
    return made
