"""Every instruction of the running Python has a handler, or is listed as a graph break with its reason."""

from __future__ import annotations

import ast
import dis
import opcode
from pathlib import Path

import rushlight.dynamo.opcodes
from rushlight.dynamo.opcodes import BREAKS, HANDLERS

# What the compiler and the interpreter use inside; `dis` never shows them in a function's code.
_INTERNAL = {"CACHE", "EXTENDED_ARG", "INTERPRETER_EXIT", "RESERVED", "ENTER_EXECUTOR", "EXIT_INIT_CHECK"}


def _instructions() -> set[str]:
    """The instructions that code objects may hold: neither the compiler's own nor those that the interpreter puts in their place."""
    specialized = set(getattr(opcode, "_specialized_instructions", ()))
    names = {name for name, number in dis.opmap.items() if number < 256 and not name.startswith("INSTRUMENTED_")}
    return names - specialized - _INTERNAL


def test_every_instruction_is_handled_or_breaks_the_graph() -> None:
    assert _instructions() - set(HANDLERS) - set(BREAKS) == set()


def test_no_instruction_is_both() -> None:
    assert set(HANDLERS) & set(BREAKS) == set()


def test_breaks_have_reasons() -> None:
    assert all(BREAKS.values())


def test_no_handler_is_written_twice() -> None:
    found: list[str] = []
    for path in Path(rushlight.dynamo.opcodes.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "opcode":
                found += [argument.value for argument in node.args]
    assert len(found) == len(set(found))
    assert set(found) == set(HANDLERS)
