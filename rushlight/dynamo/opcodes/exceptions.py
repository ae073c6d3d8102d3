"""Raising and handling of exceptions; with statements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.instructions import Instruction
from rushlight.dynamo.opcodes.table import opcode
from rushlight.dynamo.values.base import Raised
from rushlight.dynamo.values.classes import ClassValue
from rushlight.dynamo.values.constant import ConstantValue, raised
from rushlight.dynamo.values.exceptions import HandledValue
from rushlight.dynamo.values.objects import ObjectValue

if TYPE_CHECKING:
    from rushlight.dynamo.opcodes.table import Frame


@opcode("LOAD_ASSERTION_ERROR")
def _load_assertion_error(tx: Frame, instruction: Instruction) -> None:
    tx.push(tx.wrap_class(AssertionError))


@opcode("RAISE_VARARGS")
def _raise_varargs(tx: Frame, instruction: Instruction) -> None:
    if instruction.arg == 0:
        frame = tx
        while frame is not None and not frame.handled:
            frame = frame.parent
        if frame is None:
            raise GraphBreak("a bare raise outside of a handler")
        raise Raised(frame.handled[-1])
    cause = tx.pop() if instruction.arg == 2 else None
    value = tx.pop()
    if isinstance(value, ClassValue):
        value = value.call(tx, [], {})
    if not issubclass(value.python_type(), BaseException):
        raise raised(TypeError("exceptions must derive from BaseException"))
    if isinstance(value, ObjectValue):
        raise GraphBreak(f"raising {value}")
    if cause is not None:
        value.set_attribute(tx, "__cause__", cause)
    raise Raised(value)


@opcode("RERAISE")
def _reraise(tx: Frame, instruction: Instruction) -> None:
    raise Raised(tx.pop())


@opcode("PUSH_EXC_INFO")
def _push_exc_info(tx: Frame, instruction: Instruction) -> None:
    value = tx.pop()
    tx.push(HandledValue(value))
    tx.handled.append(value)
    tx.push(value)


@opcode("POP_EXCEPT")
def _pop_except(tx: Frame, instruction: Instruction) -> None:
    tx.pop()
    tx.handled.pop()


@opcode("CHECK_EXC_MATCH")
def _check_exc_match(tx: Frame, instruction: Instruction) -> None:
    kinds = tx.pop().constant()
    try:
        tx.push(ConstantValue(issubclass(tx.stack[-1].python_type(), kinds)))
    except TypeError as error:
        raise raised(error) from None


@opcode("BEFORE_WITH")
def _before_with(tx: Frame, instruction: Instruction) -> None:
    manager = tx.pop()
    leave = manager.attribute(tx, "__exit__")
    entered = manager.attribute(tx, "__enter__").call(tx, [], {})
    tx.push(leave)
    tx.push(entered)


@opcode("WITH_EXCEPT_START")
def _with_except_start(tx: Frame, instruction: Instruction) -> None:
    # The stack from its top: the exception, the previous exception, the instruction offset, `__exit__`.
    error, leave = tx.stack[-1], tx.stack[-4]
    tx.push(leave.call(tx, [tx.wrap_class(error.python_type()), error, ConstantValue(None)], {}))
