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
        for entry in dis._parse_exception_table(code)
    ]
    found = []
    for item in read:
        is_jump = item.opcode in dis.hasjrel or item.opcode in dis.hasjabs
        handler = next((handler for start, end, handler in handlers if start <= item.offset < end), None)
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


@lru_cache(maxsize=2048)
def live_locals(code: CodeType, index: int) -> frozenset[str]:
    """The local variables that may be read at or after an instruction before they are written."""
    instructions = decode(code)
    reads: set[str] = set()
    seen: dict[int, set[frozenset[str]]] = {}
    work = [(index, frozenset())]
    while work:
        position, written = work.pop()
        while position < len(instructions):
            known = seen.setdefault(position, set())
            if any(other <= written for other in known):
                break
            known.add(written)
            instruction = instructions[position]
            read, wrote = _accesses(instruction)
            reads |= read - written
            written |= wrote
            for following in (instruction.target, instruction.handler and instruction.handler.target):
                if following is not None:
                    work.append((following, written - wrote if instruction.handler else written))
            if instruction.opname in _ENDS:
                break
            position += 1
    return frozenset(reads)


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
