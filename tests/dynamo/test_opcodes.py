"""Every instruction of the running Python has a handler, or is listed as a graph break with its reason."""

from __future__ import annotations

import argparse
import ast
import dis
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

import pytest

import rushlight.dynamo.opcodes
from rushlight.dynamo.instructions import decode
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


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


# `dis` says of their arguments what handlers do not ask.
_TOLD_OTHERWISE = {"FORMAT_VALUE", "CONVERT_VALUE", "KW_NAMES"}


@pytest.mark.parametrize("module", [argparse, ast, subprocess, tarfile], ids=lambda module: module.__name__)
def test_instructions_are_read_as_dis_reads_them(module) -> None:
    for code in _codes(compile(Path(module.__file__).read_text(), module.__file__, "exec")):
        read = [item for item in dis.get_instructions(code) if item.opname not in _INTERNAL]
        found = decode(code)
        assert [(item.opname, item.arg, item.offset) for item in found] == [(i.opname, i.arg, i.offset) for i in read]
        assert [item.line for item in found] == [item.positions.lineno for item in read]
        for item, wanted in zip(found, read, strict=True):
            assert item.opname in _TOLD_OTHERWISE or repr(item.argval) == repr(wanted.argval), (item, wanted)


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
