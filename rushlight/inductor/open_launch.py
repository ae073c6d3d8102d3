"""Sizes of native launches that vary between calls: how they are read from the inputs, the conditions on them, and code that
depends on them.

In: `SizeSymbols` and a program. Out: `OpenSizes`, the size arguments of a `GraphLaunch`. csrc/graph_plan.c evaluates them at
the first call with new sizes. Stage: inductor, calling. As text:
    input 0: torch.float32[s0, 8] by [8, 1]
    s0 = i0.sizes[0]
    s0 >= 2
    i0.sizes[1] == 8
    i0.strides[0] == 8
    i0.strides[1] == 1
    32*s0 <= 1152921504606846976
    long: 16*s0 > 20000
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

from rushlight.core.algebra import Expr
from rushlight.core.algebra.postfix import to_postfix
from rushlight.core.symbolic import Relation
from rushlight.core.symbolic.relations import DIFFERENT, EQUAL, NOT_NEGATIVE
from rushlight.inductor.build import Library
from rushlight.inductor.codegen.cpp.program import Program
from rushlight.inductor.launch import Code, NoNativeForm, input_text
from rushlight.inductor.plan import Plan
from rushlight.inductor.planning import LONG_WORK, work_of
from rushlight.inductor.size_symbols import SizeSymbols, TensorInput
from rushlight.inductor.sizes import Size

LARGEST = 1 << 60  # limits all counts of generated code, far below the limits of 64-bit integers

# Relations to zero, numbered as in csrc/size_program.h.
_RELATIONS = (EQUAL, DIFFERENT, NOT_NEGATIVE)


class OpenSizes:
    """The sizes of a GraphLaunch with symbols. NoNativeForm if a size cannot be expressed."""

    def __init__(self, symbols: SizeSymbols, program: Program, plan: Plan, library: Library | None = None):
        self._symbols = symbols
        self._work = work_of(program)
        self._counts = [*plan.outputs.values(), *counts_of(program)]
        tensors = [position for position, given in enumerate(symbols.inputs) if isinstance(given, TensorInput)]
        self.positions = {given.name: position for given, position in zip(plan.inputs, tensors, strict=True)}
        sources = [source for source in symbols.sources if not _is_known(symbols.inputs[source.position])]
        variables = [*(source.variable for source in sources), *symbols.definitions]
        self._numbers = {variable: number for number, variable in enumerate(variables)}
        self.inputs = tuple(map(_input_arguments, symbols.inputs))
        self.symbols = (
            tuple((source.kind, source.position, source.dim) for source in sources),
            tuple(map(self.code, symbols.definitions.values())),
            tuple((_RELATIONS.index(each.kind), self.code(each.expression)) for each in self.conditions()),
        )
        self.work = 1 if self._work is None else self.code(self._work - LONG_WORK)
        sizing = library.arena_bytes_for if library else None
        self.arena_bytes_for = None if sizing is None else ctypes.cast(sizing, ctypes.c_void_p).value

    def code(self, size: Size) -> Code:
        """Return a number, or postfix code over the numbers read from the inputs and the symbols."""
        found = size if isinstance(size, int) else to_postfix(size, self._numbers)
        if found is None or isinstance(size, int) and abs(size) > LARGEST:
            raise NoNativeForm(str(size))
        return found

    def conditions(self) -> Iterator[Relation]:
        """Yield the conditions on inputs and symbols, apart from the symbols' definitions."""
        symbols = self._symbols
        yield from symbols.relations
        for symbol in symbols.definitions:
            if symbol.least is not None:
                yield Relation(NOT_NEGATIVE, symbol - symbol.least)
            if symbol.extent is not None:
                yield Relation(NOT_NEGATIVE, symbol.extent - symbol - 1)
        for source in symbols.sources:
            is_definition = symbols.definitions.get(source.expected) is source.variable
            if not is_definition and not _is_known(symbols.inputs[source.position]):
                yield Relation(EQUAL, source.variable - source.expected)
        for count in dict.fromkeys(self._counts):
            if isinstance(count, Expr):
                yield Relation(NOT_NEGATIVE, LARGEST - count)

    def lines(self) -> list[str]:
        """Return the inputs, symbols and conditions, and when a run counts as long."""
        lines = [f"input {position}: {_input_text(given)}" for position, given in enumerate(self._symbols.inputs)]
        lines += [f"{symbol} = {value}" for symbol, value in self._symbols.definitions.items()]
        lines += map(str, self.conditions())
        return [*lines, "long" if self._work is None else f"long: {self._work} > {LONG_WORK}"]


def counts_of(program: Program) -> list[Size]:
    """Return the counts in a program with open sizes: bytes of arena blocks, and loop iterations."""
    return [block.nbytes for slot in program.arena.slots for block in slot.blocks] + [group.numel for group in program.groups]


def _is_known(given: TensorInput | Size) -> bool:
    """Return whether all sizes and strides of an input are known, so that native code checks them as numbers."""
    if not isinstance(given, TensorInput):
        return False
    return len(given.stepped) == len(given.size) and all(isinstance(number, int) for number in (*given.size, *given.stride))


def _input_arguments(given: TensorInput | Size) -> tuple | None:
    if not isinstance(given, TensorInput):
        return None
    return (given.dtype, given.size, given.stride) if _is_known(given) else (given.dtype, len(given.size))


def _input_text(given: TensorInput | Size) -> str:
    return input_text(given.dtype, given.size, given.stride) if isinstance(given, TensorInput) else f"int {given}"
