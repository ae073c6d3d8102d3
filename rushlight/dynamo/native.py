"""Instructions as Python text, for the generated code to run where the graph breaks.

In: an instruction and expressions for the stack. Out: lines of Python, the stack after them, and the instructions at which the
frame continues.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rushlight.dynamo.instructions import PYTHON, Instruction
from rushlight.dynamo.opcodes.operators import BINARY_SYMBOLS

NULL_TEXT = "NULL"


class HandledText(str):
    """The text of the stack entry below an exception that is being handled."""


END = "__end"
# Expressions that begin with these get parentheses, because `-1 ** 2` and `1.real` parse differently.
_NUMBERS = frozenset("-0123456789")


class Native:
    """The Python form of an instruction.

    `lines` may bind `__r`. One of `ways` follows: (condition text or None for otherwise, next instruction, stack after).
    """

    def __init__(self, lines: list[str], ways: Sequence[tuple[str | None, int, list[str]]] = ()) -> None:
        self.lines = lines
        self.ways = ways


def native(instruction: Instruction, index: int, stack: list[str], keyword_names: tuple[str, ...]) -> Native | None:
    """Return the instruction at `index` as Python text; None if it has no such form."""
    name = instruction.opname
    stack = [f"({text})" if text[:1] in _NUMBERS else text for text in stack]
    rest, following = stack, index + 1
    if name in ("CALL", "CALL_KW", "PRECALL", "CALL_FUNCTION_EX"):
        return _translate_call(instruction, following, stack, keyword_names)
    jump = _translate_conditional(instruction, following, stack)
    if jump is not None:
        return jump
    if name == "DELETE_FAST":  # the resume function does not get the deleted variable
        return Native([], [(None, following, stack)])
    if name == "FOR_ITER":
        return _translate_for_iter(instruction, following, stack)
    if name == "BEFORE_WITH":
        return Native(
            ["__l = __r = None", f"__m = {stack[-1]}", "__l = __m.__exit__", "__r = __m.__enter__()"],
            [(None, following, [*rest[:-1], "__l", "__r"])],
        )
    if name in ("LOAD_METHOD", "LOAD_ATTR"):
        is_method = name == "LOAD_METHOD" or (PYTHON >= (3, 12) and bool(instruction.arg & 1))
        pair = [NULL_TEXT, "__r"] if PYTHON < (3, 13) else ["__r", NULL_TEXT]
        made = pair if is_method else ["__r"]
        return Native([f"__r = {stack[-1]}.{instruction.argval}"], [(None, following, [*rest[:-1], *made])])
    if name == "UNPACK_SEQUENCE":
        names = [f"__u{number}" for number in range(instruction.arg)]
        text = ", ".join(names) + ("," if len(names) == 1 else "")
        return Native([f"{text} = {stack[-1]}"], [(None, following, [*rest[:-1], *names[::-1]])])
    if name == "BINARY_OP" and BINARY_SYMBOLS[instruction.arg].endswith("="):
        in_place = [f"__r = {stack[-2]}", f"__r {BINARY_SYMBOLS[instruction.arg]} {stack[-1]}"]
        return Native(in_place, [(None, following, [*stack[:-2], "__r"])])
    if name == "FORMAT_VALUE":
        count = 2 if instruction.arg & 4 else 1
        value, *specification = stack[-count:]
        value = f"{('', 'str', 'repr', 'ascii')[instruction.arg & 3]}({value})"
        text = f"format({', '.join([value, *specification])})"
        return Native([f"__r = {text}"], [(None, following, [*stack[:-count], "__r"])])
    if name == "RAISE_VARARGS" and instruction.arg:
        return Native([f"raise {' from '.join(stack[-instruction.arg :])}"])
    found = _EXPRESSIONS.get(name)
    if found is not None:
        count, make = found
        text = make(instruction, *stack[len(stack) - count :])
        return Native([f"__r = {text}"], [(None, following, [*stack[: len(stack) - count], "__r"])])
    statement = _STATEMENTS.get(name)
    if statement is not None:
        count, make = statement
        return Native([make(instruction, *stack[len(stack) - count :])], [(None, following, stack[: len(stack) - count])])
    return None


_EXPRESSIONS: dict[str, tuple[int, Callable[..., str]]] = {
    "BINARY_SUBSCR": (2, lambda i, owner, key: f"{owner}[{key}]"),
    "BINARY_SLICE": (3, lambda i, owner, start, stop: f"{owner}[{start}:{stop}]"),
    "UNARY_NEGATIVE": (1, lambda i, value: f"-{value}"), "UNARY_POSITIVE": (1, lambda i, value: f"+{value}"),
    "UNARY_INVERT": (1, lambda i, value: f"~{value}"), "UNARY_NOT": (1, lambda i, value: f"not {value}"),
    "TO_BOOL": (1, lambda i, value: f"True if {value} else False"),
    "COMPARE_OP": (2, lambda i, left, right: _translate_comparison(i, left, right)),
    "IS_OP": (2, lambda i, left, right: f"{left} is {'not ' if i.arg else ''}{right}"),
    "CONTAINS_OP": (2, lambda i, left, right: f"{left} {'not ' if i.arg else ''}in {right}"),
    "IMPORT_NAME": (2, lambda i, level, names: f"__import__({i.argval!r}, __globals, None, {names}, {level})"),
    "GET_ITER": (1, lambda i, value: f"iter({value})"),
    "FORMAT_SIMPLE": (1, lambda i, value: f"format({value})"),
    "FORMAT_WITH_SPEC": (2, lambda i, value, specification: f"format({value}, {specification})"),
    "CONVERT_VALUE": (1, lambda i, value: f"{('', 'str', 'repr', 'ascii')[i.arg]}({value})"),
    "BINARY_OP": (2, lambda i, left, right: f"{left} {BINARY_SYMBOLS[i.arg]} {right}"),
    "LIST_TO_TUPLE": (1, lambda i, value: f"tuple({value})"),
}  # fmt: skip

_STATEMENTS: dict[str, tuple[int, Callable[..., str]]] = {
    "STORE_SUBSCR": (3, lambda i, value, owner, key: f"{owner}[{key}] = {value}"),
    "STORE_SLICE": (4, lambda i, value, owner, start, stop: f"{owner}[{start}:{stop}] = {value}"),
    "DELETE_SUBSCR": (2, lambda i, owner, key: f"del {owner}[{key}]"),
    "STORE_ATTR": (2, lambda i, value, owner: f"{owner}.{i.argval} = {value}"),
    "DELETE_ATTR": (1, lambda i, owner: f"del {owner}.{i.argval}"),
}  # fmt: skip


def _translate_comparison(instruction: Instruction, left: str, right: str) -> str:
    text = f"{left} {instruction.argval.removeprefix('bool(').removesuffix(')')} {right}"
    return f"bool({text})" if PYTHON >= (3, 13) and instruction.arg & 16 else text


def _translate_call(instruction: Instruction, following: int, stack: list[str], names: tuple[str, ...]) -> Native:
    """Write a call instruction as Python."""
    if instruction.opname == "CALL_FUNCTION_EX":
        has_names = instruction.arg & 1
        *rest, args = stack[:-1] if has_names else stack
        keywords = f", **{stack[-1]}" if has_names else ""
        pair, rest = rest[-2:], rest[:-2]
        function = next(text for text in pair if text != NULL_TEXT)
        return Native([f"__r = {function}(*{args}{keywords})"], [(None, following, [*rest, "__r"])])
    count = instruction.arg
    stack = stack[:-1] if instruction.opname == "CALL_KW" else stack
    values = stack[len(stack) - count :]
    first, second = stack[len(stack) - count - 2 : len(stack) - count]
    rest = stack[: len(stack) - count - 2]
    if PYTHON >= (3, 13):
        function, owner = first, second
    else:
        function, owner = (second, NULL_TEXT) if first == NULL_TEXT else (first, second)
    args = values if owner == NULL_TEXT else [owner, *values]
    positional = len(args) - len(names)
    texts = [*args[:positional], *(f"{key}={text}" for key, text in zip(names, args[positional:], strict=True))]
    return Native([f"__r = {function}({', '.join(texts)})"], [(None, following, [*rest, "__r"])])


def _translate_conditional(instruction: Instruction, following: int, stack: list[str]) -> Native | None:
    """Write a conditional jump as a Python condition."""
    name = instruction.opname.replace("_FORWARD", "").replace("_BACKWARD", "")
    tests = {
        "POP_JUMP_IF_TRUE": "{}", "POP_JUMP_IF_FALSE": "not {}", "POP_JUMP_IF_NONE": "{} is None",
        "POP_JUMP_IF_NOT_NONE": "{} is not None",
    }  # fmt: skip
    if name in tests:
        test = f"__r = {tests[name].format(stack[-1])}" if "None" in name else f"__r = bool({stack[-1]})"
        condition = "not __r" if name == "POP_JUMP_IF_FALSE" else "__r"
        return Native([test], [(condition, instruction.target, stack[:-1]), (None, following, stack[:-1])])
    if name in ("JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP"):
        condition = "__r" if "TRUE" in name else "not __r"
        return Native(
            [f"__r = bool({stack[-1]})"], [(condition, instruction.target, stack), (None, following, stack[:-1])]
        )
    return None


def _translate_for_iter(instruction: Instruction, following: int, stack: list[str]) -> Native:
    """Write FOR_ITER as a call of `next`."""
    after, left = instruction.target, stack[:-1]
    if PYTHON == (3, 12):
        after += 1
    elif PYTHON >= (3, 13):
        after, left = after + 1, stack
    lines = [f"__r = next({stack[-1]}, {END})"]
    return Native(lines, [(f"__r is {END}", after, left), (None, following, [*stack, "__r"])])
