"""Jumps, loops, returns and generators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.instructions import PYTHON, Instruction
from rushlight.dynamo.opcodes.asserts import later_message
from rushlight.dynamo.opcodes.table import constant, opcode
from rushlight.dynamo.values import builtin
from rushlight.dynamo.values.assertions import assert_later
from rushlight.dynamo.values.base import NULL, Raised
from rushlight.dynamo.values.constant import NONE
from rushlight.dynamo.values.generators import GeneratorValue

if TYPE_CHECKING:
    from rushlight.dynamo.opcodes.table import Frame


@opcode("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
def _jump(tx: Frame, instruction: Instruction) -> None:
    tx.jump(instruction.target)


@opcode("POP_JUMP_IF_TRUE", "POP_JUMP_FORWARD_IF_TRUE", "POP_JUMP_BACKWARD_IF_TRUE")
def _jump_if_true(tx: Frame, instruction: Instruction) -> None:
    value = tx.pop()
    message = later_message(tx, value, tx.position)
    if message is not None:
        assert_later(tx, value, message)
        tx.jump(instruction.target)
    elif value.truth(tx):
        tx.jump(instruction.target)


@opcode("POP_JUMP_IF_FALSE", "POP_JUMP_FORWARD_IF_FALSE", "POP_JUMP_BACKWARD_IF_FALSE")
def _jump_if_false(tx: Frame, instruction: Instruction) -> None:
    if not tx.pop().truth(tx):
        tx.jump(instruction.target)


@opcode("JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP")
def _jump_or_pop(tx: Frame, instruction: Instruction) -> None:
    if tx.stack[-1].truth(tx) == (instruction.opname == "JUMP_IF_TRUE_OR_POP"):
        tx.jump(instruction.target)
    else:
        tx.pop()


@opcode("POP_JUMP_IF_NONE", "POP_JUMP_FORWARD_IF_NONE", "POP_JUMP_BACKWARD_IF_NONE")
def _jump_if_none(tx: Frame, instruction: Instruction) -> None:
    value = tx.pop()
    if value.is_constant() and value.constant() is None:
        tx.jump(instruction.target)


@opcode("POP_JUMP_IF_NOT_NONE", "POP_JUMP_FORWARD_IF_NOT_NONE", "POP_JUMP_BACKWARD_IF_NOT_NONE")
def _jump_if_not_none(tx: Frame, instruction: Instruction) -> None:
    value = tx.pop()
    if not (value.is_constant() and value.constant() is None):
        tx.jump(instruction.target)


@opcode("GET_ITER")
def _get_iter(tx: Frame, instruction: Instruction) -> None:
    tx.push(builtin.HANDLERS[iter](tx, tx.pop()))


@opcode("FOR_ITER")
def _for_iter(tx: Frame, instruction: Instruction) -> None:
    found = tx.next(tx.stack[-1])
    if found is not None:
        tx.push(found)
        return
    if PYTHON < (3, 12):
        tx.pop()
    else:
        tx.push(NULL)  # END_FOR pops it
    tx.jump(instruction.target)


# Frames and generators


@opcode("RETURN_VALUE")
def _return_value(tx: Frame, instruction: Instruction) -> None:
    from_stack = tx.pop()
    raise tx.returned(from_stack)


@opcode("RETURN_CONST")
def _return_const(tx: Frame, instruction: Instruction) -> None:
    raise tx.returned(constant(tx, instruction.argval))


@opcode("YIELD_VALUE")
def _yield_value(tx: Frame, instruction: Instruction) -> None:
    raise tx.yielded(tx.pop())


@opcode("GET_YIELD_FROM_ITER")
def _get_yield_from_iter(tx: Frame, instruction: Instruction) -> None:
    tx.push(builtin.HANDLERS[iter](tx, tx.pop()))


@opcode("SEND")
def _send(tx: Frame, instruction: Instruction) -> None:
    sent, iterator = tx.pop(), tx.stack[-1]
    is_generator = isinstance(iterator, GeneratorValue)
    if not (sent.is_constant() and sent.constant() is None) and not is_generator:
        raise GraphBreak(f"sending to {iterator}")
    found = iterator.send(sent) if is_generator else tx.next(iterator)
    if found is not None:
        tx.push(found)
        return
    if PYTHON < (3, 12):
        tx.pop()
    tx.push(iterator.result if is_generator else NONE)
    tx.jump(instruction.target)


@opcode("CLEANUP_THROW")
def _cleanup_throw(tx: Frame, instruction: Instruction) -> None:
    _, _, error = tx.popn(3)
    if not issubclass(error.python_type(), StopIteration):
        raise Raised(error)
    tx.push(NONE)
    tx.push(error.attribute(tx, "value"))


@opcode("END_SEND")
def _end_send(tx: Frame, instruction: Instruction) -> None:
    value = tx.pop()
    tx.pop()
    tx.push(value)
