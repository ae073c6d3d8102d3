"""Calls, and functions that the program makes."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING

from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.instructions import PYTHON, Instruction
from rushlight.dynamo.opcodes.table import opcode
from rushlight.dynamo.values import operators
from rushlight.dynamo.values.base import NULL, Value
from rushlight.dynamo.values.builtin import BuiltinValue
from rushlight.dynamo.values.constant import ConstantValue
from rushlight.dynamo.values.exceptions import ExceptionValue
from rushlight.dynamo.values.function import FunctionValue
from rushlight.dynamo.values.mappings import DictValue
from rushlight.dynamo.values.sequences import SequenceValue

if TYPE_CHECKING:
    from rushlight.dynamo.opcodes.table import Frame


@opcode("KW_NAMES")
def _kw_names(tx: Frame, instruction: Instruction) -> None:
    tx.keyword_names = instruction.argval


def take_call(tx: Frame, count: int, names: tuple[str, ...]) -> tuple[Value, list[Value], dict[str, Value]]:
    """Return the callable and arguments of a call instruction, taken from the stack."""
    values = tx.popn(count)
    first, second = tx.popn(2)
    if PYTHON >= (3, 13):
        function, owner = first, second
    else:
        function, owner = (second, NULL) if first is NULL else (first, second)
    args = values if owner is NULL else [owner, *values]
    if not names:
        return function, args, {}
    positional = len(args) - len(names)
    return function, args[:positional], dict(zip(names, args[positional:], strict=True))


@opcode("CALL")
def _call(tx: Frame, instruction: Instruction) -> None:
    names, tx.keyword_names = tx.keyword_names, ()
    function, args, kwargs = take_call(tx, instruction.arg, names)
    tx.push(function.call(tx, args, kwargs))


@opcode("CALL_KW")
def _call_kw(tx: Frame, instruction: Instruction) -> None:
    names = tx.pop().constant()
    function, args, kwargs = take_call(tx, instruction.arg, names)
    tx.push(function.call(tx, args, kwargs))


@opcode("CALL_FUNCTION_EX")
def _call_function_ex(tx: Frame, instruction: Instruction) -> None:
    kwargs = tx.pop() if instruction.arg & 1 else None
    args = tx.pop().items_of(tx)
    first = tx.pop()
    second = tx.pop()
    function = second if first is NULL else first
    named = {} if kwargs is None else {str(key): value for key, value in _mapping(kwargs).items()}
    tx.push(function.call(tx, args, named))


def _mapping(value: Value) -> dict:
    if isinstance(value, DictValue):
        return value.items
    raise GraphBreak(f"** of {value}")


@opcode("MAKE_FUNCTION")
def _make_function(tx: Frame, instruction: Instruction) -> None:
    code = tx.pop().constant()
    flags = instruction.arg or 0
    cells = [] if PYTHON >= (3, 13) or not flags & 8 else tx.pop().items_of(tx)
    annotations = tx.pop().items_of(tx) if PYTHON < (3, 13) and flags & 4 else []
    keyword_defaults = _mapping(tx.pop()) if PYTHON < (3, 13) and flags & 2 else {}
    defaults = tx.pop().items_of(tx) if PYTHON < (3, 13) and flags & 1 else []
    made = FunctionValue(code, tx.module_globals, code.co_qualname, defaults, dict(keyword_defaults), cells)
    made.annotate(annotations)
    tx.push(made)


@opcode("SET_FUNCTION_ATTRIBUTE")
def _set_function_attribute(tx: Frame, instruction: Instruction) -> None:
    value, function = tx.popn(2)
    if instruction.arg == 1:
        function.defaults = value.items_of(tx)
    elif instruction.arg == 2:
        function.keyword_defaults = dict(_mapping(value))
    elif instruction.arg == 4:
        function.annotate(value.items_of(tx))
    elif instruction.arg == 8:
        function.cells = value.items_of(tx)
    tx.push(function)


@opcode("LOAD_BUILD_CLASS")
def _load_build_class(tx: Frame, instruction: Instruction) -> None:
    tx.push(BuiltinValue(builtins.__build_class__))


@opcode("CALL_INTRINSIC_1")
def _call_intrinsic_1(tx: Frame, instruction: Instruction) -> None:
    if instruction.arg == 5:
        tx.push(operators.unary(tx, "+", tx.pop()))
    elif instruction.arg == 6:
        tx.push(SequenceValue(tx.pop().items_of(tx), tuple))
    elif instruction.arg == 3:
        _stop_iteration_error(tx)
    else:
        raise GraphBreak(f"intrinsic {instruction.argval}")


def _stop_iteration_error(tx: Frame) -> None:
    value = tx.stack[-1]
    if issubclass(value.python_type(), StopIteration):
        tx.stack[-1] = ExceptionValue(RuntimeError, [ConstantValue("generator raised StopIteration")])
