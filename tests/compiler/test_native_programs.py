"""The scripted programs of tests/jit, each call several times: natively as by the interpreter, results, errors and arguments."""

from __future__ import annotations

import pytest

import rushlight as torch
from tests.compiler.native_programs import native, repeated
from tests.jit import differential

PROGRAMS = differential.programs()


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    return {path.stem: differential.load(path, "rushlight", folder) for path in differential.FOLDER.glob("*.py")}


def _close(one, other) -> bool:
    """Equal but for rounding."""
    if isinstance(one, float) and isinstance(other, float):
        return one == pytest.approx(other, rel=1e-4, abs=1e-5, nan_ok=True)
    if isinstance(one, list | tuple) and type(one) is type(other):
        return len(one) == len(other) and all(map(_close, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(map(_close, one.values(), other.values()))
    return one == other


@pytest.mark.filterwarnings("ignore:indexing with dtype torch.uint8")
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_program(program, modules):
    module = modules[program.file]
    with native("never"):
        _, expected = differential.outcomes(module, repeated(program), torch)
    with native("0"):
        _, found = differential.outcomes(module, repeated(program), torch)
    assert len(found) == len(expected)
    for call, one, other in zip(repeated(program).calls, found, expected, strict=False):
        assert _close(one, other), f"{call}:\n{one}\n{other}"
