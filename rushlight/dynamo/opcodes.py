"""What each instruction of CPython 3.11 to 3.13 does to a followed frame. An instruction that is not here breaks the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rushlight.dynamo.errors import GraphBreak, Raised
from rushlight.dynamo.instructions import PYTHON, Instruction
from rushlight.dynamo.values import builtin
from rushlight.dynamo.values.base import NULL, PendingValue, Value
from rushlight.dynamo.values.constant import ConstantValue, is_constant_value, raised
from rushlight.dynamo.values.containers import DictValue, SequenceValue, SetValue, SliceValue
from rushlight.dynamo.values.exceptions import ExceptionValue, HandledValue
from rushlight.dynamo.values.function import CellValue, FunctionValue
from rushlight.dynamo.values.objects import ClassValue, ObjectValue

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


@opcode("RESUME", "NOP", "PRECALL", "CACHE", "COPY_FREE_VARS", "RETURN_GENERATOR", "NOT_TAKEN", "EXTENDED_ARG")
def _nothing(tx: Translator, instruction: Instruction) -> None:
    if instruction.opname == "RETURN_GENERATOR":
        tx.push(NULL)  # the POP_TOP that follows takes it


@opcode("POP_TOP", "END_FOR")
def _pop_top(tx: Translator, instruction: Instruction) -> None:
    tx.pop()
    if instruction.opname == "END_FOR" and PYTHON == (3, 12):
        tx.pop()


@opcode("PUSH_NULL")
def _push_null(tx: Translator, instruction: Instruction) -> None:
    tx.push(NULL)


@opcode("COPY")
def _copy(tx: Translator, instruction: Instruction) -> None:
    tx.push(tx.stack[-instruction.arg])


@opcode("SWAP")
def _swap(tx: Translator, instruction: Instruction) -> None:
    stack, other = tx.stack, -instruction.arg
    stack[-1], stack[other] = stack[other], stack[-1]


# Variables


@opcode("LOAD_CONST")
def _load_const(tx: Translator, instruction: Instruction) -> None:
    value = instruction.argval
    if is_constant_value(value):
        tx.push(ConstantValue(value))
    else:
        tx.push(_constant(tx, value))


def _constant(tx: Translator, value: Any) -> Value:
    if isinstance(value, tuple):
        return SequenceValue([_constant(tx, item) for item in value], tuple)
    if isinstance(value, frozenset):
        return SetValue(dict.fromkeys(value), frozenset)
    if isinstance(value, slice):
        return SliceValue([_constant(tx, part) for part in (value.start, value.stop, value.step)])
    return ConstantValue(value)


def _local(tx: Translator, name: str) -> Value:
    if PYTHON >= (3, 13) and name in tx.cells:  # 3.13 loads cells for closures like variables
        return tx.cells[name]
    found = tx.locals.get(name)
    if type(found) is PendingValue:
        found = tx.locals[name] = found.realize()
    if found is None:
        raise raised(UnboundLocalError(f"cannot access local variable '{name}' where it is not associated with a value"))
    return found


@opcode("LOAD_FAST", "LOAD_FAST_CHECK")
def _load_fast(tx: Translator, instruction: Instruction) -> None:
    tx.push(_local(tx, instruction.argval))


@opcode("LOAD_FAST_LOAD_FAST")
def _load_fast_load_fast(tx: Translator, instruction: Instruction) -> None:
    for name in instruction.argval:
        tx.push(_local(tx, name))


@opcode("STORE_FAST_LOAD_FAST")
def _store_fast_load_fast(tx: Translator, instruction: Instruction) -> None:
    tx.locals[instruction.argval[0]] = tx.pop()
    tx.push(_local(tx, instruction.argval[1]))


@opcode("STORE_FAST_STORE_FAST")
def _store_fast_store_fast(tx: Translator, instruction: Instruction) -> None:
    for name in instruction.argval:
        tx.locals[name] = tx.pop()


@opcode("LOAD_FAST_AND_CLEAR")
def _load_fast_and_clear(tx: Translator, instruction: Instruction) -> None:
    if instruction.argval in (*tx.code.co_cellvars, *tx.code.co_freevars):
        raise GraphBreak("a comprehension that hides a variable of a closure")
    tx.push(tx.locals.pop(instruction.argval, NULL))


@opcode("STORE_FAST")
def _store_fast(tx: Translator, instruction: Instruction) -> None:
    value = tx.pop()
    if value is NULL:
        tx.locals.pop(instruction.argval, None)
    else:
        tx.locals[instruction.argval] = value


@opcode("DELETE_FAST")
def _delete_fast(tx: Translator, instruction: Instruction) -> None:
    _local(tx, instruction.argval)
    del tx.locals[instruction.argval]


@opcode("MAKE_CELL")
def _make_cell(tx: Translator, instruction: Instruction) -> None:
    name = instruction.argval
    tx.cells[name] = CellValue(tx.locals.pop(name, None), None, name)


@opcode("LOAD_CLOSURE")
def _load_closure(tx: Translator, instruction: Instruction) -> None:
    tx.push(tx.cells[instruction.argval])


@opcode("LOAD_DEREF", "LOAD_CLASSDEREF")
def _load_deref(tx: Translator, instruction: Instruction) -> None:
    tx.push(tx.cells[instruction.argval].load(instruction.argval))


@opcode("STORE_DEREF")
def _store_deref(tx: Translator, instruction: Instruction) -> None:
    tx.cells[instruction.argval].store(tx, tx.pop())


@opcode("DELETE_DEREF")
def _delete_deref(tx: Translator, instruction: Instruction) -> None:
    tx.cells[instruction.argval].load(instruction.argval)
    tx.cells[instruction.argval].store(tx, None)


@opcode("LOAD_GLOBAL")
def _load_global(tx: Translator, instruction: Instruction) -> None:
    value = tx.load_global(instruction.argval)
    with_null = bool(instruction.arg & 1)
    if with_null and PYTHON < (3, 13):
        tx.push(NULL)
    tx.push(value)
    if with_null and PYTHON >= (3, 13):
        tx.push(NULL)


@opcode("STORE_GLOBAL")
def _store_global(tx: Translator, instruction: Instruction) -> None:
    tx.effects.store_global(tx.module_globals, instruction.argval, tx.pop())


@opcode("DELETE_GLOBAL")
def _delete_global(tx: Translator, instruction: Instruction) -> None:
    tx.load_global(instruction.argval)
    tx.effects.store_global(tx.module_globals, instruction.argval, None)


# Attributes and items


@opcode("LOAD_ATTR")
def _load_attr(tx: Translator, instruction: Instruction) -> None:
    if PYTHON >= (3, 12) and instruction.arg & 1:
        _load_method(tx, instruction)
        return
    tx.push(tx.pop().attribute(tx, instruction.argval))


@opcode("LOAD_METHOD")
def _load_method(tx: Translator, instruction: Instruction) -> None:
    found = tx.pop().attribute(tx, instruction.argval)
    pair = [NULL, found] if PYTHON < (3, 13) else [found, NULL]
    tx.stack.extend(pair)


@opcode("LOAD_SUPER_ATTR")
def _load_super_attr(tx: Translator, instruction: Instruction) -> None:
    _, kind, owner = tx.popn(3)
    found = builtin.SuperValue(kind.constant(), owner).attribute(tx, instruction.argval)
    if instruction.arg & 1:
        tx.stack.extend([NULL, found] if PYTHON < (3, 13) else [found, NULL])
    else:
        tx.push(found)


@opcode("STORE_ATTR")
def _store_attr(tx: Translator, instruction: Instruction) -> None:
    value, owner = tx.popn(2)
    owner.set_attribute(tx, instruction.argval, value)


@opcode("DELETE_ATTR")
def _delete_attr(tx: Translator, instruction: Instruction) -> None:
    tx.pop().delete_attribute(tx, instruction.argval)


@opcode("BINARY_SUBSCR")
def _binary_subscr(tx: Translator, instruction: Instruction) -> None:
    owner, key = tx.popn(2)
    tx.push(tx.item(owner, key))


@opcode("BINARY_SLICE")
def _binary_slice(tx: Translator, instruction: Instruction) -> None:
    owner, start, stop = tx.popn(3)
    tx.push(tx.item(owner, SliceValue([start, stop, ConstantValue(None)])))


@opcode("STORE_SUBSCR")
def _store_subscr(tx: Translator, instruction: Instruction) -> None:
    value, owner, key = tx.popn(3)
    owner.set_item(tx, key, value)


@opcode("STORE_SLICE")
def _store_slice(tx: Translator, instruction: Instruction) -> None:
    value, owner, start, stop = tx.popn(4)
    owner.set_item(tx, SliceValue([start, stop, ConstantValue(None)]), value)


@opcode("DELETE_SUBSCR")
def _delete_subscr(tx: Translator, instruction: Instruction) -> None:
    owner, key = tx.popn(2)
    owner.delete_item(tx, key)


# Operators


@opcode("BINARY_OP")
def _binary_op(tx: Translator, instruction: Instruction) -> None:
    left, right = tx.popn(2)
    tx.push(builtin.binary(tx, BINARY_SYMBOLS[instruction.arg], left, right))


BINARY_SYMBOLS = (
    "+", "&", "//", "<<", "@", "*", "%", "|", "**", ">>", "-", "/", "^",
    "+=", "&=", "//=", "<<=", "@=", "*=", "%=", "|=", "**=", ">>=", "-=", "/=", "^=",
)  # fmt: skip


@opcode("UNARY_NEGATIVE", "UNARY_POSITIVE", "UNARY_INVERT")
def _unary(tx: Translator, instruction: Instruction) -> None:
    symbols = {"UNARY_NEGATIVE": "-", "UNARY_POSITIVE": "+", "UNARY_INVERT": "~"}
    tx.push(builtin.unary(tx, symbols[instruction.opname], tx.pop()))


@opcode("UNARY_NOT")
def _unary_not(tx: Translator, instruction: Instruction) -> None:
    tx.push(ConstantValue(not tx.pop().truth(tx)))


@opcode("TO_BOOL")
def _to_bool(tx: Translator, instruction: Instruction) -> None:
    tx.push(ConstantValue(tx.pop().truth(tx)))


@opcode("COMPARE_OP")
def _compare_op(tx: Translator, instruction: Instruction) -> None:
    left, right = tx.popn(2)
    symbol = instruction.argval.removeprefix("bool(").removesuffix(")")
    found = builtin.compare(tx, symbol, left, right)
    tx.push(ConstantValue(found.truth(tx)) if PYTHON >= (3, 13) and instruction.arg & 16 else found)


@opcode("IS_OP")
def _is_op(tx: Translator, instruction: Instruction) -> None:
    left, right = tx.popn(2)
    if right.is_constant() and right.constant() is None and not left.is_constant():
        same = False
    elif left.is_constant() and left.constant() is None and not right.is_constant():
        same = False
    else:
        same = left.same_as(right)
    tx.push(ConstantValue(same != bool(instruction.arg)))


@opcode("CONTAINS_OP")
def _contains_op(tx: Translator, instruction: Instruction) -> None:
    wanted, values = tx.popn(2)
    tx.push(ConstantValue(tx.contains(values, wanted).truth(tx) != bool(instruction.arg)))


# Containers


@opcode("BUILD_TUPLE")
def _build_tuple(tx: Translator, instruction: Instruction) -> None:
    tx.push(SequenceValue(tx.popn(instruction.arg), tuple))


@opcode("BUILD_LIST")
def _build_list(tx: Translator, instruction: Instruction) -> None:
    tx.push(SequenceValue(tx.popn(instruction.arg), list))


@opcode("BUILD_SET")
def _build_set(tx: Translator, instruction: Instruction) -> None:
    tx.push(SetValue(dict.fromkeys(tx.key(value) for value in tx.popn(instruction.arg)), set))


@opcode("BUILD_MAP")
def _build_map(tx: Translator, instruction: Instruction) -> None:
    values = tx.popn(2 * instruction.arg)
    tx.push(DictValue({tx.key(key): value for key, value in zip(values[::2], values[1::2], strict=True)}, dict))


@opcode("BUILD_CONST_KEY_MAP")
def _build_const_key_map(tx: Translator, instruction: Instruction) -> None:
    keys = tx.pop().constant()
    tx.push(DictValue(dict(zip(keys, tx.popn(instruction.arg), strict=True)), dict))


@opcode("BUILD_SLICE")
def _build_slice(tx: Translator, instruction: Instruction) -> None:
    parts = tx.popn(instruction.arg)
    tx.push(SliceValue([*parts, ConstantValue(None)][:3]))


@opcode("LIST_APPEND", "SET_ADD")
def _append(tx: Translator, instruction: Instruction) -> None:
    value = tx.pop()
    tx.stack[-instruction.arg].method(tx, "append" if instruction.opname == "LIST_APPEND" else "add", [value], {})


@opcode("LIST_EXTEND", "SET_UPDATE", "DICT_UPDATE")
def _extend(tx: Translator, instruction: Instruction) -> None:
    value = tx.pop()
    tx.stack[-instruction.arg].method(tx, "extend" if instruction.opname == "LIST_EXTEND" else "update", [value], {})


@opcode("DICT_MERGE")
def _dict_merge(tx: Translator, instruction: Instruction) -> None:
    other, target = tx.pop(), tx.stack[-instruction.arg]
    if not isinstance(other, DictValue):
        raise GraphBreak(f"** of {other}")
    double = next((key for key in other.items if key in target.items), None)
    if double is not None:
        raise raised(TypeError(f"got multiple values for keyword argument '{double}'"))
    target.method(tx, "update", [other], {})


@opcode("MAP_ADD")
def _map_add(tx: Translator, instruction: Instruction) -> None:
    key, value = tx.popn(2)
    tx.stack[-instruction.arg].set_item(tx, key, value)


@opcode("LIST_TO_TUPLE")
def _list_to_tuple(tx: Translator, instruction: Instruction) -> None:
    tx.push(SequenceValue(tx.pop().items_of(tx), tuple))


@opcode("UNPACK_SEQUENCE")
def _unpack_sequence(tx: Translator, instruction: Instruction) -> None:
    values, count = tx.pop().items_of(tx), instruction.arg
    if len(values) != count:
        if len(values) < count:
            raise raised(ValueError(f"not enough values to unpack (expected {count}, got {len(values)})"))
        raise raised(ValueError(f"too many values to unpack (expected {count})"))
    tx.stack.extend(values[::-1])


@opcode("UNPACK_EX")
def _unpack_ex(tx: Translator, instruction: Instruction) -> None:
    before, after = instruction.arg & 0xFF, instruction.arg >> 8
    values = tx.pop().items_of(tx)
    if len(values) < before + after:
        raise raised(ValueError(f"not enough values to unpack (expected at least {before + after}, got {len(values)})"))
    last = len(values) - after
    parts = [*values[:before], SequenceValue(values[before:last], list), *values[last:]]
    tx.stack.extend(parts[::-1])


@opcode("GET_LEN")
def _get_len(tx: Translator, instruction: Instruction) -> None:
    tx.push(tx.stack[-1].length(tx))


# Texts


@opcode("FORMAT_VALUE")
def _format_value(tx: Translator, instruction: Instruction) -> None:
    specification = tx.pop() if instruction.arg & 4 else ConstantValue("")
    _format(tx, tx.pop(), (None, str, repr, ascii)[instruction.arg & 3], specification)


def _format(tx: Translator, value: Value, conversion: Callable | None, specification: Value) -> None:
    if isinstance(value, ExceptionValue):
        value = ConstantValue(str(value.real()))
    if not value.is_constant():
        raise GraphBreak(f"the text of {value}")
    found = value.constant()
    try:
        tx.push(ConstantValue(format(conversion(found) if conversion else found, specification.constant())))
    except (ValueError, TypeError) as error:
        raise raised(error) from None


@opcode("CONVERT_VALUE")
def _convert_value(tx: Translator, instruction: Instruction) -> None:
    _format(tx, tx.pop(), (None, str, repr, ascii)[instruction.arg], ConstantValue(""))


@opcode("FORMAT_SIMPLE")
def _format_simple(tx: Translator, instruction: Instruction) -> None:
    _format(tx, tx.pop(), None, ConstantValue(""))


@opcode("FORMAT_WITH_SPEC")
def _format_with_spec(tx: Translator, instruction: Instruction) -> None:
    value, specification = tx.popn(2)
    _format(tx, value, None, specification)


@opcode("BUILD_STRING")
def _build_string(tx: Translator, instruction: Instruction) -> None:
    tx.push(ConstantValue("".join(value.constant() for value in tx.popn(instruction.arg))))


# Jumps


@opcode("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
def _jump(tx: Translator, instruction: Instruction) -> None:
    tx.jump(instruction.target)


@opcode("POP_JUMP_IF_TRUE", "POP_JUMP_FORWARD_IF_TRUE", "POP_JUMP_BACKWARD_IF_TRUE")
def _jump_if_true(tx: Translator, instruction: Instruction) -> None:
    if tx.pop().truth(tx):
        tx.jump(instruction.target)


@opcode("POP_JUMP_IF_FALSE", "POP_JUMP_FORWARD_IF_FALSE", "POP_JUMP_BACKWARD_IF_FALSE")
def _jump_if_false(tx: Translator, instruction: Instruction) -> None:
    if not tx.pop().truth(tx):
        tx.jump(instruction.target)


@opcode("JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP")
def _jump_or_pop(tx: Translator, instruction: Instruction) -> None:
    if tx.stack[-1].truth(tx) == (instruction.opname == "JUMP_IF_TRUE_OR_POP"):
        tx.jump(instruction.target)
    else:
        tx.pop()


@opcode("POP_JUMP_IF_NONE", "POP_JUMP_FORWARD_IF_NONE", "POP_JUMP_BACKWARD_IF_NONE")
def _jump_if_none(tx: Translator, instruction: Instruction) -> None:
    value = tx.pop()
    if value.is_constant() and value.constant() is None:
        tx.jump(instruction.target)


@opcode("POP_JUMP_IF_NOT_NONE", "POP_JUMP_FORWARD_IF_NOT_NONE", "POP_JUMP_BACKWARD_IF_NOT_NONE")
def _jump_if_not_none(tx: Translator, instruction: Instruction) -> None:
    value = tx.pop()
    if not (value.is_constant() and value.constant() is None):
        tx.jump(instruction.target)


@opcode("GET_ITER")
def _get_iter(tx: Translator, instruction: Instruction) -> None:
    tx.push(builtin.HANDLERS[iter](tx, tx.pop()))


@opcode("FOR_ITER")
def _for_iter(tx: Translator, instruction: Instruction) -> None:
    found = tx.next(tx.stack[-1])
    if found is not None:
        tx.push(found)
        return
    if PYTHON < (3, 12):
        tx.pop()
    else:
        tx.push(NULL)  # for END_FOR
    tx.jump(instruction.target)


# Calls


@opcode("KW_NAMES")
def _kw_names(tx: Translator, instruction: Instruction) -> None:
    tx.keyword_names = instruction.argval if isinstance(instruction.argval, tuple) else tx.code.co_consts[instruction.arg]


def take_call(tx: Translator, count: int, names: tuple[str, ...]) -> tuple[Value, list[Value], dict[str, Value]]:
    """The callable and arguments of a call instruction, taken from the stack."""
    values = tx.popn(count)
    first, second = tx.popn(2)
    if PYTHON >= (3, 13):
        function, owner = first, second
    else:
        function, owner = (second, NULL) if first is NULL else (first, second)
    args = values if owner is NULL else [owner, *values]
    positional = len(args) - len(names)
    return function, args[:positional], dict(zip(names, args[positional:], strict=True))


@opcode("CALL")
def _call(tx: Translator, instruction: Instruction) -> None:
    names, tx.keyword_names = tx.keyword_names, ()
    function, args, kwargs = take_call(tx, instruction.arg, names)
    tx.push(function.call(tx, args, kwargs))


@opcode("CALL_KW")
def _call_kw(tx: Translator, instruction: Instruction) -> None:
    names = tx.pop().constant()
    function, args, kwargs = take_call(tx, instruction.arg, names)
    tx.push(function.call(tx, args, kwargs))


@opcode("CALL_FUNCTION_EX")
def _call_function_ex(tx: Translator, instruction: Instruction) -> None:
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
def _make_function(tx: Translator, instruction: Instruction) -> None:
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
def _set_function_attribute(tx: Translator, instruction: Instruction) -> None:
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


@opcode("RETURN_VALUE")
def _return_value(tx: Translator, instruction: Instruction) -> None:
    from_stack = tx.pop()
    raise tx.returned(from_stack)


@opcode("RETURN_CONST")
def _return_const(tx: Translator, instruction: Instruction) -> None:
    raise tx.returned(_constant(tx, instruction.argval))


@opcode("YIELD_VALUE")
def _yield_value(tx: Translator, instruction: Instruction) -> None:
    raise tx.yielded(tx.pop())


@opcode("GET_YIELD_FROM_ITER")
def _get_yield_from_iter(tx: Translator, instruction: Instruction) -> None:
    tx.push(builtin.HANDLERS[iter](tx, tx.pop()))


@opcode("SEND")
def _send(tx: Translator, instruction: Instruction) -> None:
    tx.pop()
    found = tx.next(tx.stack[-1])
    if found is not None:
        tx.push(found)
        return
    result = tx.result_of(tx.stack[-1])
    if PYTHON < (3, 12):
        tx.pop()
    tx.push(result)
    tx.jump(instruction.target)


@opcode("END_SEND")
def _end_send(tx: Translator, instruction: Instruction) -> None:
    value = tx.pop()
    tx.pop()
    tx.push(value)


@opcode("CALL_INTRINSIC_1")
def _call_intrinsic_1(tx: Translator, instruction: Instruction) -> None:
    if instruction.arg == 5:
        tx.push(builtin.unary(tx, "+", tx.pop()))
    elif instruction.arg == 6:
        tx.push(SequenceValue(tx.pop().items_of(tx), tuple))
    elif instruction.arg == 3:
        _stop_iteration_error(tx)
    else:
        raise GraphBreak(f"intrinsic {instruction.argval}")


def _stop_iteration_error(tx: Translator) -> None:
    value = tx.stack[-1]
    if issubclass(value.python_type(), StopIteration):
        tx.stack[-1] = ExceptionValue(RuntimeError, [ConstantValue("generator raised StopIteration")])


# Exceptions and with


@opcode("LOAD_ASSERTION_ERROR")
def _load_assertion_error(tx: Translator, instruction: Instruction) -> None:
    tx.push(tx.wrap_class(AssertionError))


@opcode("RAISE_VARARGS")
def _raise_varargs(tx: Translator, instruction: Instruction) -> None:
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
def _reraise(tx: Translator, instruction: Instruction) -> None:
    raise Raised(tx.pop())


@opcode("PUSH_EXC_INFO")
def _push_exc_info(tx: Translator, instruction: Instruction) -> None:
    value = tx.pop()
    tx.push(HandledValue(value))
    tx.handled.append(value)
    tx.push(value)


@opcode("POP_EXCEPT")
def _pop_except(tx: Translator, instruction: Instruction) -> None:
    tx.pop()
    tx.handled.pop()


@opcode("CHECK_EXC_MATCH")
def _check_exc_match(tx: Translator, instruction: Instruction) -> None:
    kinds = tx.pop().constant()
    try:
        tx.push(ConstantValue(issubclass(tx.stack[-1].python_type(), kinds)))
    except TypeError as error:
        raise raised(error) from None


@opcode("BEFORE_WITH")
def _before_with(tx: Translator, instruction: Instruction) -> None:
    manager = tx.pop()
    leave = manager.attribute(tx, "__exit__")
    entered = manager.attribute(tx, "__enter__").call(tx, [], {})
    tx.push(leave)
    tx.push(entered)


@opcode("WITH_EXCEPT_START")
def _with_except_start(tx: Translator, instruction: Instruction) -> None:
    # From the top: the exception, the previous one, the offset, __exit__.
    error, leave = tx.stack[-1], tx.stack[-4]
    tx.push(leave.call(tx, [tx.wrap_class(error.python_type()), error, ConstantValue(None)], {}))


# Match statements


@opcode("MATCH_MAPPING")
def _match_mapping(tx: Translator, instruction: Instruction) -> None:
    tx.push(ConstantValue(isinstance(tx.stack[-1], DictValue)))


@opcode("MATCH_SEQUENCE")
def _match_sequence(tx: Translator, instruction: Instruction) -> None:
    tx.push(ConstantValue(isinstance(tx.stack[-1], SequenceValue)))


@opcode("MATCH_KEYS")
def _match_keys(tx: Translator, instruction: Instruction) -> None:
    owner, keys = tx.stack[-2], tx.stack[-1].items_of(tx)
    found = [owner.items.get(tx.key(key)) for key in keys]
    missing = any(value is None for value in found)
    tx.push(ConstantValue(None) if missing else SequenceValue(found, tuple))


@opcode("MATCH_CLASS")
def _match_class(tx: Translator, instruction: Instruction) -> None:
    subject, kind, names = tx.popn(3)
    if not builtin.HANDLERS[isinstance](tx, subject, kind).truth(tx):
        tx.push(ConstantValue(None))
        return
    wanted = kind.constant()
    positional = getattr(wanted, "__match_args__", ())[: instruction.arg]
    if instruction.arg == 1 and wanted in (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple):
        values = [subject]
    else:
        values = [subject.attribute(tx, name) for name in positional]
    tx.push(SequenceValue([*values, *(subject.attribute(tx, name) for name in names.constant())], tuple))


@opcode("IMPORT_NAME")
def _import_name(tx: Translator, instruction: Instruction) -> None:
    level, names = tx.popn(2)
    found = __import__(instruction.argval, tx.module_globals, None, names.constant() or (), level.constant())
    tx.push(tx.wrap(found, None))


@opcode("IMPORT_FROM")
def _import_from(tx: Translator, instruction: Instruction) -> None:
    tx.push(tx.stack[-1].attribute(tx, instruction.argval))

