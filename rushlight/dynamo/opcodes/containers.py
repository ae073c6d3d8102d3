"""Instructions that build and unpack containers, and those of match statements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.instructions import Instruction
from rushlight.dynamo.opcodes.table import opcode
from rushlight.dynamo.values import builtin
from rushlight.dynamo.values.base import Raised, Value
from rushlight.dynamo.values.constant import ConstantValue, raised
from rushlight.dynamo.values.mappings import DictValue
from rushlight.dynamo.values.sequences import SequenceValue, SliceValue
from rushlight.dynamo.values.sets import SetValue

if TYPE_CHECKING:
    from rushlight.dynamo.opcodes.table import Frame


@opcode("BUILD_TUPLE")
def _build_tuple(tx: Frame, instruction: Instruction) -> None:
    tx.push(SequenceValue(tx.popn(instruction.arg), tuple))


@opcode("BUILD_LIST")
def _build_list(tx: Frame, instruction: Instruction) -> None:
    tx.push(SequenceValue(tx.popn(instruction.arg), list))


@opcode("BUILD_SET")
def _build_set(tx: Frame, instruction: Instruction) -> None:
    tx.push(SetValue([tx.key(value) for value in tx.popn(instruction.arg)], set))


@opcode("BUILD_MAP")
def _build_map(tx: Frame, instruction: Instruction) -> None:
    values = tx.popn(2 * instruction.arg)
    tx.push(DictValue({tx.key(key): value for key, value in zip(values[::2], values[1::2], strict=True)}, dict))


@opcode("BUILD_CONST_KEY_MAP")
def _build_const_key_map(tx: Frame, instruction: Instruction) -> None:
    keys = tx.pop().constant()
    tx.push(DictValue(dict(zip(keys, tx.popn(instruction.arg), strict=True)), dict))


@opcode("BUILD_SLICE")
def _build_slice(tx: Frame, instruction: Instruction) -> None:
    parts = tx.popn(instruction.arg)
    tx.push(SliceValue([*parts, ConstantValue(None)][:3]))


@opcode("LIST_APPEND", "SET_ADD")
def _append(tx: Frame, instruction: Instruction) -> None:
    value = tx.pop()
    tx.stack[-instruction.arg].method(tx, "append" if instruction.opname == "LIST_APPEND" else "add", [value], {})


@opcode("LIST_EXTEND", "SET_UPDATE")
def _extend(tx: Frame, instruction: Instruction) -> None:
    value = tx.pop()
    if instruction.opname == "LIST_EXTEND" and not _is_iterable(value):
        raise raised(TypeError(f"Value after * must be an iterable, not {value.python_type().__name__}"))
    tx.stack[-instruction.arg].method(tx, "extend" if instruction.opname == "LIST_EXTEND" else "update", [value], {})


def _is_iterable(value: Value) -> bool:
    """Return whether a value may be iterated over. Values that are no constants report that themselves later."""
    return not value.is_constant() or any(hasattr(value.python_type(), name) for name in ("__iter__", "__getitem__"))


@opcode("DICT_UPDATE")
def _dict_update(tx: Frame, instruction: Instruction) -> None:
    value = tx.pop()
    tx.stack[-instruction.arg].method(tx, "update", [_mapping(tx, value)], {})


def _mapping(tx: Frame, value: Value) -> DictValue:
    """Return the operand of `**` as a dict."""
    if isinstance(value, DictValue):
        return value
    if not hasattr(value.python_type(), "keys"):
        raise GraphBreak(f"** of {value}")
    made = DictValue({}, dict)
    made.method(tx, "update", [value], {})
    return made


@opcode("DICT_MERGE")
def _dict_merge(tx: Frame, instruction: Instruction) -> None:
    other = _mapping(tx, tx.pop())
    target = tx.stack[-instruction.arg]
    double = next((key for key in other.items if key in target.items), None)
    if double is not None:
        raise raised(TypeError(f"got multiple values for keyword argument '{double}'"))
    target.method(tx, "update", [other], {})


@opcode("MAP_ADD")
def _map_add(tx: Frame, instruction: Instruction) -> None:
    key, value = tx.popn(2)
    tx.stack[-instruction.arg].set_item(tx, key, value)


@opcode("LIST_TO_TUPLE")
def _list_to_tuple(tx: Frame, instruction: Instruction) -> None:
    tx.push(SequenceValue(tx.pop().items_of(tx), tuple))


@opcode("UNPACK_SEQUENCE")
def _unpack_sequence(tx: Frame, instruction: Instruction) -> None:
    values, count = tx.pop().items_of(tx), instruction.arg
    if len(values) != count:
        if len(values) < count:
            raise raised(ValueError(f"not enough values to unpack (expected {count}, got {len(values)})"))
        raise raised(ValueError(f"too many values to unpack (expected {count})"))
    tx.stack.extend(values[::-1])


@opcode("UNPACK_EX")
def _unpack_ex(tx: Frame, instruction: Instruction) -> None:
    before, after = instruction.arg & 0xFF, instruction.arg >> 8
    values = tx.pop().items_of(tx)
    if len(values) < before + after:
        raise raised(ValueError(f"not enough values to unpack (expected at least {before + after}, got {len(values)})"))
    last = len(values) - after
    parts = [*values[:before], SequenceValue(values[before:last], list), *values[last:]]
    tx.stack.extend(parts[::-1])


@opcode("GET_LEN")
def _get_len(tx: Frame, instruction: Instruction) -> None:
    tx.push(tx.stack[-1].length(tx))


# Match statements


# Type flags (Py_TPFLAGS_SEQUENCE, _MAPPING, _MATCH_SELF) that decide whether a pattern matches.
_IS_SEQUENCE, _IS_MAPPING, _MATCHES_ITSELF = 1 << 5, 1 << 6, 1 << 22




@opcode("MATCH_MAPPING")
def _match_mapping(tx: Frame, instruction: Instruction) -> None:
    tx.push(ConstantValue(bool(tx.stack[-1].python_type().__flags__ & _IS_MAPPING)))


@opcode("MATCH_SEQUENCE")
def _match_sequence(tx: Frame, instruction: Instruction) -> None:
    tx.push(ConstantValue(bool(tx.stack[-1].python_type().__flags__ & _IS_SEQUENCE)))


@opcode("MATCH_KEYS")
def _match_keys(tx: Frame, instruction: Instruction) -> None:
    owner, keys = tx.stack[-2], tx.stack[-1].items_of(tx)
    if not isinstance(owner, DictValue):
        raise GraphBreak(f"{owner} is matched with a mapping")
    found = [owner.items.get(tx.key(key)) for key in keys]
    missing = any(value is None for value in found)
    tx.push(ConstantValue(None) if missing else SequenceValue(found, tuple))


@opcode("MATCH_CLASS")
def _match_class(tx: Frame, instruction: Instruction) -> None:
    subject, kind, names = tx.popn(3)
    if not builtin.HANDLERS[isinstance](tx, subject, kind).truth(tx):
        tx.push(ConstantValue(None))
        return
    wanted, count = kind.constant(), instruction.arg
    has_names = hasattr(wanted, "__match_args__")
    positional = kind.attribute(tx, "__match_args__").constant() if has_names else ()
    is_itself = not has_names and bool(wanted.__flags__ & _MATCHES_ITSELF)
    allowed = 1 if is_itself else len(positional)
    if count > allowed:
        text = f"{wanted.__name__}() accepts {allowed} positional sub-pattern{'s' * (allowed != 1)} ({count} given)"
        raise raised(TypeError(text))
    values = [subject] if is_itself and count else []
    try:
        values += [subject.attribute(tx, name) for name in (*(() if is_itself else positional[:count]), *names.constant())]
    except Raised as error:
        if not issubclass(error.value.python_type(), AttributeError):
            raise
        tx.push(ConstantValue(None))
        return
    tx.push(SequenceValue(values, tuple))
