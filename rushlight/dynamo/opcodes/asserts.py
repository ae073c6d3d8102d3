"""Asserts of tensors, found by their bytecode: a graph that holds the condition goes on, and generated code checks it later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.core.thread_state import state
from rushlight.dynamo.values.tensor import TensorValue

if TYPE_CHECKING:
    from rushlight.dynamo.opcodes.table import Frame
    from rushlight.dynamo.values.base import Value


def later_message(tx: Frame, value: Value, position: int) -> str | None:
    """Return the message of an assert that is to be checked after the graph has run, or "" for an assert without a message.

    `position` is that of the instruction behind the jump. None unless this is an assert, with a constant message, of a tensor
    with one element and an unknown value. None, too, if the program may catch its error.
    """
    if not isinstance(value, TensorValue) or value.fake.numel() != 1 or value.known() is not None:
        return None
    return None if tx.has_handler() or state.exporting else _message(tx, position)


def is_checked_later(tx: Frame, value: Value) -> bool:
    """Return whether the next instruction is the jump of an assert that is to be checked after the graph has run."""
    following = tx.instructions[tx.position] if tx.position < len(tx.instructions) else None
    is_jump = following is not None and following.opname == "POP_JUMP_IF_TRUE"
    return is_jump and later_message(tx, value, tx.position + 1) is not None


def _message(tx: Frame, position: int) -> str | None:
    """Return the message if the instructions raise an AssertionError with a constant one, or with none; else None."""
    names = [(instruction.opname, instruction.argval) for instruction in tx.instructions[position : position + 5]]
    if len(names) < 2 or names[0][0] != "LOAD_ASSERTION_ERROR":
        return None
    if names[1][0] == "RAISE_VARARGS":
        return ""
    name, message = names[1]
    is_raised = next((other for other, _ in names[2:] if other not in ("PRECALL", "CALL", "CACHE")), None) == "RAISE_VARARGS"
    return message if name == "LOAD_CONST" and isinstance(message, str) and is_raised else None
