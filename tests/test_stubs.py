"""The type stubs: current, valid, and of use to a type checker. `make stubs` writes them."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

import rushlight as rl
from tools.generate_stubs import stubs

PROGRAM = """
import rushlight as torch
from rushlight import linalg, nn

layer = nn.Linear(8, 4)
x = torch.randn(2, 8, dtype=torch.float32, requires_grad=True)
y: torch.Tensor = torch.softmax(layer(x).relu() + 1, dim=-1)
(2 * y.sum(dim=1, keepdim=True)).mean().backward()
rows: int = x.size(0) + x.view(-1, 4).shape[0]
values, indices = torch.sort(y, descending=True)
inverse: torch.Tensor = linalg.inv(torch.fft.ifft(torch.fft.fft(torch.special.expit(y))).real)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
"""
MISTAKES = {
    "torch.softmax(y, dims=-1)": 'Unexpected keyword argument "dims"',
    "linalg.inv(1)": 'Argument 1 to "inv" has incompatible type "int"',
    'y.add("one")': 'Argument 1 to "add" of "Tensor" has incompatible type "str"',
    "torch.sofmtax(y, 0)": "Module has no attribute",
}


@pytest.fixture(scope="module")
def generated():
    return stubs()


def test_stubs_are_current(generated):
    stale = [str(path) for path, text in generated.items() if not path.exists() or path.read_text() != text]
    assert not stale, f"run make stubs: {', '.join(stale)} no longer match the schemas and signatures"


def test_stubs_parse_and_declare_what_exists(generated):
    declared = set()
    for path, text in generated.items():
        body = ast.parse(text, str(path)).body
        if path.parts[-2:] == ("rushlight", "__init__.pyi"):
            declared = {node.name for node in body if isinstance(node, ast.FunctionDef)}
    assert {"add", "softmax", "randn"} <= declared
    assert all(hasattr(rl, name) for name in declared)


def test_a_program_checks_and_its_mistakes_are_found(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM + "\n".join(MISTAKES) + "\n")
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), str(program)]
    done = subprocess.run(command, capture_output=True, text=True)
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert len(errors) == len(MISTAKES), done.stdout + done.stderr
    for error, expected in zip(errors, MISTAKES.values(), strict=True):
        assert expected in error
