"""Attributes, items, operators and formatted texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rushlight.dynamo.instructions import PYTHON, Instruction
from rushlight.dynamo.opcodes.asserts import is_checked_later
from rushlight.dynamo.opcodes.table import opcode
from rushlight.dynamo.values import operators
from rushlight.dynamo.values.base import NULL, Value
from rushlight.dynamo.values.constant import ConstantValue
from rushlight.dynamo.values.construction import SuperValue
from rushlight.dynamo.values.sequences import SliceValue
from rushlight.dynamo.values.texts import formatted

if TYPE_CHECKING:
    from rushlight.dynamo.opcodes.table import Frame


# Attributes and items


@opcode("LOAD_ATTR")
def _load_attr(tx: Frame, instruction: Instruction) -> None:
    if PYTHON >= (3, 12) and instruction.arg & 1:
        _load_method(tx, instruction)
        return
    tx.push(tx.pop().attribute(tx, instruction.argval))


@opcode("LOAD_METHOD")
def _load_method(tx: Frame, instruction: Instruction) -> None:
    found = tx.pop().attribute(tx, instruction.argval)
    pair = [NULL, found] if PYTHON < (3, 13) else [found, NULL]
    tx.stack.extend(pair)


@opcode("LOAD_SUPER_ATTR")
def _load_super_attr(tx: Frame, instruction: Instruction) -> None:
    _, kind, owner = tx.popn(3)
    found = SuperValue(kind.constant(), owner).attribute(tx, instruction.argval)
    if instruction.arg & 1:
        tx.stack.extend([NULL, found] if PYTHON < (3, 13) else [found, NULL])
    else:
        tx.push(found)


@opcode("STORE_ATTR")
def _store_attr(tx: Frame, instruction: Instruction) -> None:
    value, owner = tx.popn(2)
    owner.set_attribute(tx, instruction.argval, value)


@opcode("DELETE_ATTR")
def _delete_attr(tx: Frame, instruction: Instruction) -> None:
    tx.pop().delete_attribute(tx, instruction.argval)


@opcode("BINARY_SUBSCR")
def _binary_subscr(tx: Frame, instruction: Instruction) -> None:
    owner, key = tx.popn(2)
    tx.push(tx.item(owner, key))


@opcode("BINARY_SLICE")
def _binary_slice(tx: Frame, instruction: Instruction) -> None:
    owner, start, stop = tx.popn(3)
    tx.push(tx.item(owner, SliceValue([start, stop, ConstantValue(None)])))


@opcode("STORE_SUBSCR")
def _store_subscr(tx: Frame, instruction: Instruction) -> None:
    value, owner, key = tx.popn(3)
    owner.set_item(tx, key, value)


@opcode("STORE_SLICE")
def _store_slice(tx: Frame, instruction: Instruction) -> None:
    value, owner, start, stop = tx.popn(4)
    owner.set_item(tx, SliceValue([start, stop, ConstantValue(None)]), value)


@opcode("DELETE_SUBSCR")
def _delete_subscr(tx: Frame, instruction: Instruction) -> None:
    owner, key = tx.popn(2)
    owner.delete_item(tx, key)


# Arithmetic and comparison operators


@opcode("BINARY_OP")
def _binary_op(tx: Frame, instruction: Instruction) -> None:
    left, right = tx.popn(2)
    tx.push(operators.binary(tx, BINARY_SYMBOLS[instruction.arg], left, right))


BINARY_SYMBOLS = (
    "+", "&", "//", "<<", "@", "*", "%", "|", "**", ">>", "-", "/", "^",
    "+=", "&=", "//=", "<<=", "@=", "*=", "%=", "|=", "**=", ">>=", "-=", "/=", "^=",
)  # fmt: skip


@opcode("UNARY_NEGATIVE", "UNARY_POSITIVE", "UNARY_INVERT")
def _unary(tx: Frame, instruction: Instruction) -> None:
    symbols = {"UNARY_NEGATIVE": "-", "UNARY_POSITIVE": "+", "UNARY_INVERT": "~"}
    tx.push(operators.unary(tx, symbols[instruction.opname], tx.pop()))


@opcode("UNARY_NOT")
def _unary_not(tx: Frame, instruction: Instruction) -> None:
    tx.push(ConstantValue(not tx.pop().truth(tx)))


@opcode("TO_BOOL")
def _to_bool(tx: Frame, instruction: Instruction) -> None:
    value = tx.pop()
    tx.push(value if is_checked_later(tx, value) else ConstantValue(value.truth(tx)))


@opcode("COMPARE_OP")
def _compare_op(tx: Frame, instruction: Instruction) -> None:
    left, right = tx.popn(2)
    symbol = instruction.argval.removeprefix("bool(").removesuffix(")")
    found = operators.compare(tx, symbol, left, right)
    is_bool = PYTHON >= (3, 13) and instruction.arg & 16 and not is_checked_later(tx, found)
    tx.push(ConstantValue(found.truth(tx)) if is_bool else found)


@opcode("IS_OP")
def _is_op(tx: Frame, instruction: Instruction) -> None:
    left, right = tx.popn(2)
    if right.is_constant() and right.constant() is None and not left.is_constant():
        same = False
    elif left.is_constant() and left.constant() is None and not right.is_constant():
        same = False
    else:
        same = left.same_as(right)
    tx.push(ConstantValue(same != bool(instruction.arg)))


@opcode("CONTAINS_OP")
def _contains_op(tx: Frame, instruction: Instruction) -> None:
    wanted, values = tx.popn(2)
    tx.push(ConstantValue(tx.contains(values, wanted).truth(tx) != bool(instruction.arg)))


# Format strings


@opcode("FORMAT_VALUE")
def _format_value(tx: Frame, instruction: Instruction) -> None:
    specification = tx.pop() if instruction.arg & 4 else ConstantValue("")
    _format(tx, tx.pop(), (None, str, repr, ascii)[instruction.arg & 3], specification)


def _format(tx: Frame, value: Value, conversion: Callable | None, specification: Value) -> None:
    tx.push(formatted(tx, value, conversion, specification))


@opcode("CONVERT_VALUE")
def _convert_value(tx: Frame, instruction: Instruction) -> None:
    _format(tx, tx.pop(), (None, str, repr, ascii)[instruction.arg], ConstantValue(""))


@opcode("FORMAT_SIMPLE")
def _format_simple(tx: Frame, instruction: Instruction) -> None:
    _format(tx, tx.pop(), None, ConstantValue(""))


@opcode("FORMAT_WITH_SPEC")
def _format_with_spec(tx: Frame, instruction: Instruction) -> None:
    value, specification = tx.popn(2)
    _format(tx, value, None, specification)


@opcode("BUILD_STRING")
def _build_string(tx: Frame, instruction: Instruction) -> None:
    tx.push(ConstantValue("".join(value.constant() for value in tx.popn(instruction.arg))))
