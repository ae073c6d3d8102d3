"""The table of what instructions do, which the modules of this package fill, and the constants of code objects."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from types import CodeType
from typing import TYPE_CHECKING, Any

from rushlight.dynamo.instructions import Instruction, decode
from rushlight.dynamo.values.base import Value
from rushlight.dynamo.values.constant import ConstantValue
from rushlight.dynamo.values.sequences import SequenceValue, SliceValue
from rushlight.dynamo.values.sets import SetValue

if TYPE_CHECKING:
    from rushlight.dynamo.translator import Translator

HANDLERS: dict[str, Callable[[Any, Instruction], None]] = {}


def opcode(*names: str) -> Callable:
    """Register what instructions do."""

    def register(function: Callable) -> Callable:
        for name in names:
            HANDLERS[name] = function
        return function

    return register


@lru_cache(maxsize=2048)
def handled(code: CodeType) -> tuple[tuple[Instruction, ...], tuple[Callable[[Any, Instruction], None] | None, ...]]:
    """The instructions of a code object, and what each does; None for those that break the graph."""
    instructions = decode(code)
    return instructions, tuple([HANDLERS.get(instruction.opname) for instruction in instructions])


def constant(tx: Translator, value: Any) -> Value:
    """The tracked value of an instruction's constant."""
    if isinstance(value, tuple):
        return SequenceValue([constant(tx, item) for item in value], tuple)
    if isinstance(value, frozenset):
        return SetValue(value, frozenset)
    if isinstance(value, slice):
        return SliceValue([constant(tx, part) for part in (value.start, value.stop, value.step)])
    return ConstantValue(value)
