"""Instructions: the bytecode of a code object as a list that can be followed by index.

In: a code object of CPython 3.11 to 3.13. Out: instructions with resolved arguments, jump targets and handlers as indices. The
only file of this stage that knows how the interpreters' versions differ in reading; `resume` knows how they differ in writing.
"""

from __future__ import annotations

import dis
import sys
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any

PYTHON = sys.version_info[:2]


@dataclass(slots=True)
class Handler:
    """Where an exception goes: the handler's instruction, the stack depth there, and whether the failing offset is pushed."""

    target: int
    depth: int
    push_lasti: bool


@dataclass(slots=True)
class Instruction:
    """One instruction. `target` is the index of a jump's target; `argval` is the argument as `dis` resolves it."""

    opname: str
    arg: int | None
    argval: Any
    offset: int
    line: int | None
    target: int | None
    handler: Handler | None

    def __str__(self) -> str:
        return f"{self.opname} {self.argval if self.arg is not None else ''}".rstrip()


@lru_cache(maxsize=2048)
def decode(code: CodeType) -> tuple[Instruction, ...]:
    """The instructions of a code object, without caches and extended arguments."""
    read = [item for item in dis.get_instructions(code) if item.opname not in ("CACHE", "EXTENDED_ARG")]
    index_of = _index_by_offset(code, read)
    handlers = [
        (entry.start, entry.end, Handler(index_of[entry.target], entry.depth, entry.lasti))
        for entry in sorted(dis._parse_exception_table(code), key=lambda entry: entry.start, reverse=True)
    ]
    found = []
    for item in read:
        is_jump = item.opcode in dis.hasjrel or item.opcode in dis.hasjabs
        while handlers and handlers[-1][1] <= item.offset:
            handlers.pop()
        handler = handlers[-1][2] if handlers and handlers[-1][0] <= item.offset else None
        line = item.positions.lineno if item.positions is not None else None
        target = index_of[item.argval] if is_jump else None
        found.append(Instruction(item.opname, item.arg, item.argval, item.offset, line, target, handler))
    return tuple(found)


def _index_by_offset(code: CodeType, read: list[dis.Instruction]) -> dict[int, int]:
    """The index of the instruction at or after each offset (a jump may go to an EXTENDED_ARG before its instruction)."""
    offsets = {item.offset: index for index, item in enumerate(read)}
    found, following = {}, len(read)
    for offset in range(len(code.co_code), -1, -2):
        following = offsets.get(offset, following)
        found[offset] = following
    return found


def parameter_names(code: CodeType) -> tuple[str, ...]:
    """All parameters in the order of the frame's locals: positional, keyword-only, `*args`, `**kwargs`."""
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
    return code.co_varnames[:count]


def live_locals(code: CodeType, index: int) -> frozenset[str]:
    """The local variables that may be read at or after an instruction before they are written."""
    live, names = _live_sets(code)[index], code.co_varnames
    return frozenset(name for position, name in enumerate(names) if live >> position & 1)


@lru_cache(maxsize=2048)
def _live_sets(code: CodeType) -> tuple[int, ...]:
    """For each instruction the variables that are live before it, as bits by their number: a fixed point, found backwards."""
    instructions = decode(code)
    bit_of = {name: 1 << position for position, name in enumerate(code.co_varnames)}
    accesses = [tuple(sum(bit_of.get(name, 0) for name in names) for names in _accesses(item)) for item in instructions]
    live = [0] * (len(instructions) + 1)
    is_changing = True
    while is_changing:
        is_changing = False
        for index in range(len(instructions) - 1, -1, -1):
            instruction, (reads, writes) = instructions[index], accesses[index]
            after = 0 if instruction.opname in _ENDS else live[index + 1]
            if instruction.target is not None:
                after |= live[instruction.target]
            found = reads | after & ~writes
            if instruction.handler is not None:  # which may be reached before anything is written
                found |= live[instruction.handler.target]
            is_changing |= found != live[index]
            live[index] = found
    return tuple(live)


_ENDS = frozenset({
    "RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE", "JUMP_FORWARD", "JUMP_BACKWARD",
    "JUMP_BACKWARD_NO_INTERRUPT",
})  # fmt: skip


def _accesses(instruction: Instruction) -> tuple[set[str], set[str]]:
    name, value = instruction.opname, instruction.argval
    if name in ("LOAD_FAST", "LOAD_FAST_CHECK", "DELETE_FAST", "LOAD_CLOSURE"):
        return {value}, set()
    if name == "STORE_FAST":
        return set(), {value}
    if name == "LOAD_FAST_AND_CLEAR":
        return {value}, {value}
    if name == "LOAD_FAST_LOAD_FAST":
        return set(value), set()
    if name == "STORE_FAST_LOAD_FAST":
        return {value[1]} - {value[0]}, {value[0]}
    if name == "STORE_FAST_STORE_FAST":
        return set(), set(value)
    return set(), set()
