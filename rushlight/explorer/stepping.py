"""A run of the stack machine, instruction by instruction, as the page plays it back.

In: the code of a TorchScript function, and arguments. Out: each step with the stack before it and the registers. Functions that
are called run as a whole.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from rushlight.explorer.places import Files, Place
from rushlight.explorer.texts import short_text
from rushlight.jit.runtime.code import Code
from rushlight.jit.runtime.executor import run_function
from rushlight.jit.runtime.interpreter import make_named_tuple
from rushlight.jit.runtime.objects import ScriptObject
from rushlight.jit.runtime.type_checks import is_instance

MAX_STEPS = 3_000
MAX_SECONDS = 5.0  # a run is cut there: a page of a large model is to be made quickly


class _Unknown(Exception):
    """An instruction that depends on what was seen in earlier runs, or on threads."""


class _Machine:
    """The stack and registers of one function."""

    def __init__(self, code: Code, arguments: Sequence[object]):
        self.code = code
        self.stack = list(arguments)
        self.registers: dict[int, object] = {}
        self.position = 0

    def step(self) -> None:
        """Run an instruction."""
        op, x, n = self.code.instructions[self.position]
        taken, given = self.code.counts[self.position]
        self.position += 1
        if op in ("LOAD", "MOVE"):
            self.stack.append(self.registers.pop(x, None) if op == "MOVE" else self.registers.get(x))
        elif op == "LOADC":
            self.stack.append(self.code.constants[x])
        elif op == "STORE":
            self.registers[x] = self.stack.pop()
        elif op == "DROP":
            self.stack.pop()
        elif op == "JF":
            self.position += 0 if self.stack.pop() else x - 1
        elif op == "JMP":
            self.position += x - 1
        elif op == "LOOP":
            self._loop(x, n + 1)
        else:
            self._call(op, x, n, taken, given)

    def _loop(self, jump: int, count: int) -> None:
        """Begin the next round, which takes its number and the carried values, or leave the loop."""
        first = len(self.stack) - count
        number, limit, goes_on = self.stack[first : first + 3]
        if number < limit and goes_on:
            self.stack[first : first + 3] = [number + 1, limit, number]
        else:
            del self.stack[first : first + 3]
            self.position += jump - 1

    def _call(self, op: str, x: int, n: int, taken: int, given: int) -> None:
        """Run an instruction that takes values and gives others."""
        code = self.code
        if op == "OPN":
            results = code.operators[x].function(*self._pop(n))
            self.stack += [] if given == 0 else [results] if given == 1 else list(results)
        elif op == "CALL":
            self._push(run_function(code.functions[x], self._pop(taken)), given)
        elif op == "INTERFACE_CALL":
            arguments = self._pop(n)
            self._push(run_function(arguments[0].type.find_method(code.names[x]), arguments), given)
        elif op == "GET_ATTR":
            self.stack.append(self.stack.pop().slots[code.names[x]])
        elif op == "SET_ATTR":
            owner, value = self._pop(2)
            owner.slots[code.names[x]] = value
        elif op == "LIST_UNPACK":
            self.stack += list(self.stack.pop())
        elif op in _MAKERS:
            self.stack.append(_MAKERS[op](code, x, self._pop(_taken(op, x, n))))
        else:
            raise _Unknown(op)

    def _pop(self, count: int) -> list:
        start = len(self.stack) - count
        values = self.stack[start:]
        del self.stack[start:]
        return values

    def _push(self, result: object, given: int) -> None:
        self.stack += [result] if given == 1 else list(result) if given else []


def _taken(op: str, x: int, n: int) -> int:
    return {"TUPLE_CONSTRUCT": x, "ISINSTANCE": 1, "CREATE_OBJECT": 0}.get(op, n)


def _dict_of(code: Code, x: int, values: list) -> dict:
    return dict(zip(values[::2], values[1::2], strict=True))


_MAKERS = {
    "LIST_CONSTRUCT": lambda code, x, values: values, "TUPLE_CONSTRUCT": lambda code, x, values: tuple(values),
    "NAMED_TUPLE_CONSTRUCT": lambda code, x, values: make_named_tuple(code.types[x], values), "DICT_CONSTRUCT": _dict_of,
    "ISINSTANCE": lambda code, x, values: any(is_instance(values[0], kind) for kind in code.types[x]),
    "CREATE_OBJECT": lambda code, x, values: ScriptObject(code.types[x]),
}  # fmt: skip


def steps_of(code: Code, arguments: Sequence[object], files: Files) -> dict:
    """A run for arguments as a recording has it, up to its end, its first error, or a limit."""
    machine, steps, began = _Machine(code, arguments), [], time.perf_counter()
    while code.instructions[machine.position][0] != "RET":
        if len(steps) == MAX_STEPS or time.perf_counter() - began > MAX_SECONDS:
            return _described(code, steps, True, files)
        steps.append(_state(machine))
        try:
            machine.step()
        except Exception:  # the program's own, or an instruction that can't be shown alone
            return _described(code, steps, True, files)
    return _described(code, [*steps, _state(machine)], False, files)


def _state(machine: _Machine) -> list:
    registers = [[f"%{number}", short_text(value)] for number, value in sorted(machine.registers.items())]
    return [machine.position, [short_text(value) for value in machine.stack], registers]



def _described(code: Code, steps: list, cut: bool, files: Files) -> dict:
    return {
        "instructions": [line.partition(" ")[2] for line in str(code).splitlines()],
        "places": [place_of(node.source_range, files) for node in code.nodes], "steps": steps, "cut": cut,
    }  # fmt: skip


def place_of(range: object, files: Files) -> Place | None:
    """The place of a range of source; None for one of no file."""
    found = None if range is None else range.file_line_column()
    return None if found is None else files.place(found[0], found[1])
