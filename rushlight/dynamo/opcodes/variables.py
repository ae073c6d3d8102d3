"""The stack, constants, local, global and closure variables, and imports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.instructions import PYTHON, Instruction
from rushlight.dynamo.opcodes.table import constant, opcode
from rushlight.dynamo.values.base import NULL, PendingValue, Raised, Value, has_finalizer
from rushlight.dynamo.values.constant import ConstantValue, is_constant_value, raised
from rushlight.dynamo.values.function import CellValue
from rushlight.dynamo.values.tensor import TensorValue

if TYPE_CHECKING:
    from rushlight.dynamo.opcodes.table import Frame


@opcode("RESUME", "NOP", "PRECALL", "CACHE", "COPY_FREE_VARS", "RETURN_GENERATOR", "EXTENDED_ARG")
def _nothing(tx: Frame, instruction: Instruction) -> None:
    if instruction.opname == "RETURN_GENERATOR":
        tx.push(NULL)  # the POP_TOP that follows removes it


@opcode("POP_TOP", "END_FOR")
def _pop_top(tx: Frame, instruction: Instruction) -> None:
    tx.pop()
    if instruction.opname == "END_FOR" and PYTHON == (3, 12):
        tx.pop()


@opcode("PUSH_NULL")
def _push_null(tx: Frame, instruction: Instruction) -> None:
    tx.push(NULL)


@opcode("COPY")
def _copy(tx: Frame, instruction: Instruction) -> None:
    tx.push(tx.stack[-instruction.arg])


@opcode("SWAP")
def _swap(tx: Frame, instruction: Instruction) -> None:
    stack, other = tx.stack, -instruction.arg
    stack[-1], stack[other] = stack[other], stack[-1]


# Load and store variables


@opcode("LOAD_CONST")
def _load_const(tx: Frame, instruction: Instruction) -> None:
    value = instruction.argval
    if is_constant_value(value):
        tx.push(ConstantValue(value))
    else:
        tx.push(constant(tx, value))


_LOADS_CELLS = PYTHON >= (3, 13)  # LOAD_FAST loads cells for closures


def _local(tx: Frame, name: str) -> Value:
    if _LOADS_CELLS and name in tx.cells:
        return tx.cells[name]
    found = tx.locals.get(name)
    if type(found) is PendingValue:
        found = tx.locals[name] = found.realize()
    if found is None:
        raise raised(UnboundLocalError(f"cannot access local variable '{name}' where it is not associated with a value"))
    return found


@opcode("LOAD_FAST", "LOAD_FAST_CHECK")
def _load_fast(tx: Frame, instruction: Instruction) -> None:
    tx.push(_local(tx, instruction.argval))


@opcode("LOAD_FAST_LOAD_FAST")
def _load_fast_load_fast(tx: Frame, instruction: Instruction) -> None:
    for name in instruction.argval:
        tx.push(_local(tx, name))


@opcode("STORE_FAST_LOAD_FAST")
def _store_fast_load_fast(tx: Frame, instruction: Instruction) -> None:
    _store(tx, instruction.argval[0])
    tx.push(_local(tx, instruction.argval[1]))


@opcode("STORE_FAST_STORE_FAST")
def _store_fast_store_fast(tx: Frame, instruction: Instruction) -> None:
    for name in instruction.argval:
        _store(tx, name)


@opcode("LOAD_FAST_AND_CLEAR")
def _load_fast_and_clear(tx: Frame, instruction: Instruction) -> None:
    name = instruction.argval
    if name in tx.code.co_freevars and instruction.arg < len(tx.code.co_varnames):
        raise GraphBreak("a comprehension that hides a variable of an outer function")
    hidden = tx.cells.pop(name, None)  # a comprehension's variable may share the slot of a captured one
    tx.push(tx.locals.pop(name, NULL) if hidden is None else hidden)


def _store(tx: Frame, name: str) -> None:
    if has_finalizer(tx.locals.get(name)) and tx.locals[name] is not tx.stack[-1]:
        raise GraphBreak(f"{name} is set, which was an object whose class defines __del__")
    value = tx.pop()
    if isinstance(value, CellValue) and name in (*tx.code.co_cellvars, *tx.code.co_freevars):
        tx.locals.pop(name, None)
        tx.cells[name] = value
    elif value is NULL:
        tx.locals.pop(name, None)
    else:
        tx.locals[name] = value
        if isinstance(value, TensorValue):
            tx.graph.name_after(value.graph_node, name)


@opcode("STORE_FAST")
def _store_fast(tx: Frame, instruction: Instruction) -> None:
    _store(tx, instruction.argval)


@opcode("DELETE_FAST")
def _delete_fast(tx: Frame, instruction: Instruction) -> None:
    name = instruction.argval
    if has_finalizer(tx.locals.get(name)) and not name.startswith("__"):  # generated code uses names that begin with __
        raise GraphBreak(f"{name} is deleted, whose class defines __del__")
    if type(tx.locals.get(name)) is not PendingValue:
        _local(tx, name)
    del tx.locals[name]


@opcode("MAKE_CELL")
def _make_cell(tx: Frame, instruction: Instruction) -> None:
    name = instruction.argval
    tx.cells[name] = CellValue(tx.locals.pop(name, None), None, name)


@opcode("LOAD_CLOSURE")
def _load_closure(tx: Frame, instruction: Instruction) -> None:
    tx.push(tx.cells[instruction.argval])


@opcode("LOAD_DEREF", "LOAD_CLASSDEREF")
def _load_deref(tx: Frame, instruction: Instruction) -> None:
    tx.push(tx.cells[instruction.argval].load(instruction.argval))


@opcode("STORE_DEREF")
def _store_deref(tx: Frame, instruction: Instruction) -> None:
    tx.cells[instruction.argval].store(tx, tx.pop())


@opcode("DELETE_DEREF")
def _delete_deref(tx: Frame, instruction: Instruction) -> None:
    tx.cells[instruction.argval].load(instruction.argval)
    tx.cells[instruction.argval].store(tx, None)


@opcode("LOAD_GLOBAL")
def _load_global(tx: Frame, instruction: Instruction) -> None:
    value = tx.load_global(instruction.argval)
    with_null = bool(instruction.arg & 1)
    if with_null and PYTHON < (3, 13):
        tx.push(NULL)
    tx.push(value)
    if with_null and PYTHON >= (3, 13):
        tx.push(NULL)


@opcode("STORE_GLOBAL")
def _store_global(tx: Frame, instruction: Instruction) -> None:
    tx.effects.store_global(tx.module_globals, instruction.argval, tx.pop())


@opcode("DELETE_GLOBAL")
def _delete_global(tx: Frame, instruction: Instruction) -> None:
    tx.load_global(instruction.argval)
    tx.effects.store_global(tx.module_globals, instruction.argval, None)


# Follow imports


@opcode("IMPORT_NAME")
def _import_name(tx: Frame, instruction: Instruction) -> None:
    level, names = tx.popn(2)
    try:
        found = __import__(instruction.argval, tx.module_globals, None, names.constant() or (), level.constant())
    except Exception as error:
        raise GraphBreak(f"the import of {instruction.argval} fails: {error}") from None
    tx.push(tx.wrap(found, None))


@opcode("IMPORT_FROM")
def _import_from(tx: Frame, instruction: Instruction) -> None:
    try:
        tx.push(tx.stack[-1].attribute(tx, instruction.argval))
    except Raised:
        raise GraphBreak(f"{instruction.argval} is not among the names of {tx.stack[-1]}") from None
