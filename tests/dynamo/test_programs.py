"""Small programs by topic: captured, fresh and cached, they do what they do in eager."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import tests.dynamo
from tests.dynamo.harness import Program, check

TOPICS = sorted(found.name for found in pkgutil.iter_modules(tests.dynamo.__path__) if found.name.startswith("programs_"))
PROGRAMS = [
    pytest.param(program, id=f"{topic[9:]}-{program.function.__name__}")
    for topic in TOPICS
    for program in importlib.import_module(f"tests.dynamo.{topic}").PROGRAMS.found
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program: Program) -> None:
    check(program)


def test_there_are_many() -> None:
    assert len(PROGRAMS) >= 400
    assert sum(program.values[0].graphs == 1 for program in PROGRAMS) >= 200
