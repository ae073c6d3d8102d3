"""The table of instruction handlers, which the modules of this package fill, and the constants of code objects."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from types import CodeType
from typing import TYPE_CHECKING, Any, Protocol

from rushlight.dynamo.instructions import Instruction, decode
from rushlight.dynamo.values.base import Following, Value
from rushlight.dynamo.values.constant import ConstantValue
from rushlight.dynamo.values.sequences import SequenceValue, SliceValue
from rushlight.dynamo.values.sets import SetValue

if TYPE_CHECKING:
    from rushlight.dynamo.values.function import CellValue

HANDLERS: dict[str, Callable[[Any, Instruction], None]] = {}


class Frame(Following, Protocol):
    """The frame whose instructions are followed: the interface for values, plus its stack and variables."""

    code: CodeType
    stack: list[Value]
    push: Callable[[Value], None]
    pop: Callable[[], Value]
    locals: dict[str, Value]
    cells: dict[str, CellValue]
    keyword_names: tuple[str, ...]
    handled: list[Value]
    instructions: tuple[Instruction, ...]
    position: int  # the index of the instruction to follow next

    def popn(self, count: int) -> list[Value]:
        """Pop the top `count` values, in the order in which they were pushed."""

    def jump(self, index: int) -> None:
        """Continue at an instruction."""

    def has_handler(self) -> bool:
        """Return whether this frame or a caller is inside a block that may catch an exception."""

    def load_global(self, name: str) -> Value:
        """Return a global variable or builtin."""

    def returned(self, value: Value) -> Exception:
        """Return the exception that ends the frame with a result."""

    def yielded(self, value: Value) -> Exception:
        """Return the exception that suspends the frame with a value."""


def opcode(*names: str) -> Callable:
    """Register a function as handler of instructions."""

    def register(function: Callable) -> Callable:
        for name in names:
            HANDLERS[name] = function
        return function

    return register


@lru_cache(maxsize=2048)
def handled(code: CodeType) -> tuple[tuple[Instruction, ...], tuple[Callable[[Any, Instruction], None] | None, ...]]:
    """Return the instructions of a code object, and their handlers; None for those that break the graph."""
    instructions = decode(code)
    return instructions, tuple([HANDLERS.get(instruction.opname) for instruction in instructions])


def constant(tx: Frame, value: Any) -> Value:
    """Return the tracked value of an instruction's constant."""
    if isinstance(value, tuple):
        return SequenceValue([constant(tx, item) for item in value], tuple)
    if isinstance(value, frozenset):
        return SetValue(value, frozenset)
    if isinstance(value, slice):
        return SliceValue([constant(tx, part) for part in (value.start, value.stop, value.step)])
    return ConstantValue(value)
