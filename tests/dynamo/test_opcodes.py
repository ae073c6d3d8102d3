"""Every instruction of the running Python has a handler, or is listed as a graph break with its reason."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight.dynamo.opcodes
from rushlight.dynamo.opcodes import BREAKS, HANDLERS

FIND_PYTHONS = Path(__file__).parents[2] / "tools" / "find-pythons"
# What the compiler and the interpreter use inside; `dis` never shows them in a function's code.
_INTERNAL = {"CACHE", "EXTENDED_ARG", "INTERPRETER_EXIT", "RESERVED", "ENTER_EXECUTOR", "EXIT_INIT_CHECK"}
# Prints the instructions that code objects may hold: neither the compiler's own nor those that the interpreter puts in their place.
_LIST = """
import dis, opcode
names = {name for name, number in dis.opmap.items() if number < 256 and not name.startswith("INSTRUMENTED_")}
print(*names - set(getattr(opcode, "_specialized_instructions", ())))
"""


def _instructions(python: str) -> set[str]:
    listed = subprocess.run([python, "-c", _LIST], capture_output=True, text=True, check=True)
    return set(listed.stdout.split()) - _INTERNAL


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_every_instruction_is_handled_or_breaks_the_graph(version: str) -> None:
    if version == "{}.{}".format(*sys.version_info):
        python = sys.executable
    else:
        python = subprocess.run([FIND_PYTHONS, version], capture_output=True, text=True, check=True).stdout.strip()
    if not python:
        pytest.skip(f"no Python {version} here")
    found = _instructions(python)
    assert len(found) > 100 and found - set(HANDLERS) - set(BREAKS) == set()


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
