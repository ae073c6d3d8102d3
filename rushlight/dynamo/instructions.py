"""Instructions: the bytecode of a code object as a list that is followed by index.

In: a code object of CPython 3.11 to 3.13. Out: instructions with resolved arguments; jump targets and handlers are indices.
Only this file knows how the Python versions differ in reading bytecode; `resume` knows how they differ in writing it.
"""

from __future__ import annotations

import dis
import sys
from functools import lru_cache
from types import CodeType
from typing import Any

PYTHON = sys.version_info[:2]


class Handler:
    """An exception handler: its first instruction, the stack depth there, and whether the offset of the failing instruction is
    pushed."""

    __slots__ = ("target", "depth", "push_lasti")

    def __init__(self, target: int, depth: int, push_lasti: bool) -> None:
        self.target = target
        self.depth = depth
        self.push_lasti = push_lasti


class Instruction:
    """One instruction. `target` is the index that a jump goes to; `argval` is the argument as `dis` resolves it."""

    __slots__ = ("opname", "arg", "argval", "offset", "line", "target", "handler")

    def __init__(
        self, opname: str, arg: int | None, argval: Any, offset: int, line: int | None, target: int | None,
        handler: Handler | None,
    ) -> None:  # fmt: skip
        self.opname = opname
        self.arg = arg
        self.argval = argval
        self.offset = offset
        self.line = line
        self.target = target
        self.handler = handler

    def __str__(self) -> str:
        return f"{self.opname} {self.argval if self.arg is not None else ''}".rstrip()


_CACHE, _EXTENDED_ARG = dis.opmap["CACHE"], dis.opmap["EXTENDED_ARG"]
_HAS_ARGUMENT = frozenset(dis.hasarg if PYTHON >= (3, 12) else range(dis.HAVE_ARGUMENT, 256))
_CONSTANTS, _NAMES, _JUMPS = frozenset(dis.hasconst), frozenset(dis.hasname), frozenset(dis.hasjrel)
_VARIABLES, _COMPARISONS = frozenset(dis.haslocal + dis.hasfree), frozenset(dis.hascompare)
_BACKWARD = frozenset(number for name, number in dis.opmap.items() if "JUMP_BACKWARD" in name)
# Number of flag bits at the low end of an argument; the higher bits select the name or the comparison.
_NAME_BITS = {"LOAD_GLOBAL": 1} if PYTHON < (3, 12) else {"LOAD_GLOBAL": 1, "LOAD_ATTR": 1, "LOAD_SUPER_ATTR": 2}
_COMPARISON_BITS = {(3, 11): 0, (3, 12): 4}.get(PYTHON, 5)
_ON_TWO_VARIABLES = frozenset({"LOAD_FAST_LOAD_FAST", "STORE_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST"})


def _read_code(code: CodeType) -> list[tuple[int, int, int | None]]:
    """Return offset, opcode and argument of each instruction. (`dis` takes five times as long, mostly to format texts.)"""
    found, raw, high = [], code.co_code, 0
    for offset in range(0, len(raw), 2):
        number = raw[offset]
        if number == _EXTENDED_ARG:
            high = (high | raw[offset + 1]) << 8
        elif number != _CACHE:
            found.append((offset, number, raw[offset + 1] | high if number in _HAS_ARGUMENT else None))
            high = 0
    return found


def _resolve_argument(code: CodeType, offset: int, number: int, argument: int | None) -> Any:
    """Resolve an argument to a constant, a name, or the offset of a jump's target."""
    name = dis.opname[number]
    if argument is None:
        return None
    if number in _CONSTANTS:
        return code.co_consts[argument]
    if number in _NAMES:
        return code.co_names[argument >> _NAME_BITS.get(name, 0)]
    if number in _JUMPS:
        return _next_offset(code.co_code, offset) + (-2 if number in _BACKWARD else 2) * argument
    if name in _ON_TWO_VARIABLES:
        return code._varname_from_oparg(argument >> 4), code._varname_from_oparg(argument & 15)
    if number in _VARIABLES:
        return code._varname_from_oparg(argument)
    return dis.cmp_op[argument >> _COMPARISON_BITS] if number in _COMPARISONS else argument


def _next_offset(raw: bytes, offset: int) -> int:
    """Return the offset after an instruction and its inline caches."""
    offset += 2
    while offset < len(raw) and raw[offset] == _CACHE:
        offset += 2
    return offset


@lru_cache(maxsize=2048)
def decode(code: CodeType) -> tuple[Instruction, ...]:
    """Return the instructions of a code object, without caches and extended arguments."""
    read = _read_code(code)
    index_of = _index_by_offset(code, [offset for offset, _, _ in read])
    lines = [line for line, _, _, _ in code.co_positions()]
    handlers = [
        (entry.start, entry.end, Handler(index_of[entry.target], entry.depth, entry.lasti))
        for entry in sorted(dis._parse_exception_table(code), key=lambda entry: entry.start, reverse=True)
    ]
    found = []
    for offset, number, argument in read:
        while handlers and handlers[-1][1] <= offset:
            handlers.pop()
        handler = handlers[-1][2] if handlers and handlers[-1][0] <= offset else None
        value = _resolve_argument(code, offset, number, argument)
        target = index_of[value] if number in _JUMPS else None
        found.append(Instruction(dis.opname[number], argument, value, offset, lines[offset // 2], target, handler))
    return tuple(found)


def _index_by_offset(code: CodeType, offsets: list[int]) -> dict[int, int]:
    """Return the index of the instruction at or after each offset (a jump may go to an EXTENDED_ARG before its instruction)."""
    found, following = {}, len(offsets)
    for offset in range(len(code.co_code), -1, -2):
        if following and offsets[following - 1] == offset:
            following -= 1
        found[offset] = following
    return found


def parameter_names(code: CodeType) -> tuple[str, ...]:
    """Return all parameters in the order of the frame's locals: positional, keyword-only, `*args`, `**kwargs`."""
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
    return code.co_varnames[:count]


def live_locals(code: CodeType, index: int) -> frozenset[str]:
    """Return the local variables that are live before an instruction: it or a later one may read them before writing them."""
    live, names = _live_variables(code)[index], code.co_varnames
    return frozenset(name for position, name in enumerate(names) if live >> position & 1)


@lru_cache(maxsize=2048)
def _live_variables(code: CodeType) -> tuple[int, ...]:
    """Return the variables live before each instruction, as bit sets: a backward data-flow fixed point."""
    instructions = decode(code)
    bit_of = {name: 1 << position for position, name in enumerate(code.co_varnames)}
    accesses = [tuple(sum(bit_of.get(name, 0) for name in names) for names in _accesses_of(item)) for item in instructions]
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
            if instruction.handler is not None:  # the handler may run before the write happens
                found |= live[instruction.handler.target]
            is_changing |= found != live[index]
            live[index] = found
    return tuple(live)


_ENDS = frozenset({
    "RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE", "JUMP_FORWARD", "JUMP_BACKWARD",
    "JUMP_BACKWARD_NO_INTERRUPT",
})  # fmt: skip


def _accesses_of(instruction: Instruction) -> tuple[set[str], set[str]]:
    """Return the variables that an instruction reads, and those that it writes."""
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
