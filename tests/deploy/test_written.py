"""Inputs that a model writes to: signatures say so, the bindings write in place or refuse, and refusals name the user's line."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.deploy import NotExportable, export
from rushlight.deploy.targets import build_library, zig_command
from tests.deploy.built import built, close, exported


def _added(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x[0].add_(1)
    return x + y


def _looped(x: torch.Tensor, y: torch.Tensor, n: int) -> torch.Tensor:
    for _ in range(n):
        if bool(x.sum() < 100):
            x.add_(y)
    return x * 2


def _with_text(x: torch.Tensor, y: torch.Tensor, text: str) -> tuple[torch.Tensor, str]:
    if text == "a":
        x.add_(y)
    return x + y, text + "!"


def _listed(x: list[torch.Tensor], y: torch.Tensor, text: str) -> tuple[torch.Tensor, str]:
    for each in x:
        each.add_(y)
    return y * 2, text + "!"


def _selected(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    first = x[0]
    found = y[y > 0]
    first.mul_(2)
    return found


class Counting(nn.Module):
    """Writes to its own buffers only, one of them through a view, on both sides of a size that values decide."""

    def __init__(self):
        super().__init__()
        self.seen, self.last = nn.Buffer(torch.ones(2, 3)), nn.Buffer(torch.zeros(2, 3))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        first, before = self.seen[0], self.last + 0
        found = y[y > 0]
        first.mul_(2)
        self.last.add_(x)
        return found, self.seen * 1, before


def _example() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.ones(2, 3), torch.tensor([[1.0, -2, 3], [-1, 2, 0.5]])


WRITING = {
    "program": (lambda: exported(_added, _example()), ()),
    "script": (lambda: torch.jit.script(_added), ()),
    "trace": (lambda: torch.jit.trace(_added, _example()), ()),
    "loop": (lambda: torch.jit.script(_looped), (3,)),
    "statements": (lambda: torch.jit.script(_with_text), ("a",)),
    "parts": (lambda: torch.jit.script(_selected), ()),
    "program in parts": (lambda: exported(_selected, _example()), ()),
}


@pytest.mark.parametrize("name", WRITING)
def test_written_inputs(tmp_path, name):
    make, rest = WRITING[name]
    model, (x, y) = make(), _example()
    made = built(model, () if name.startswith("program") else (*_example(), *rest), tmp_path)
    assert "(x: float32[2, 3] (written to), y: float32[2, 3]" in made.signature("forward")
    given = x.numpy().copy(), y.numpy().copy()
    made.forward(*given, *rest)
    function = {"loop": _looped, "statements": _with_text}.get(name, _selected if "parts" in name else _added)
    function(x, y, *rest)
    close(given[0], x)
    close(given[1], y)


def test_python_binding_writes_to_no_hidden_copy(tmp_path):
    model = built(torch.jit.script(_listed), ([torch.ones(3)], torch.ones(3), "a"), tmp_path)
    y = np.ones(3, np.float32)
    y.flags.writeable = False
    good = np.ones(3, np.float32)
    model.forward([good], y, "a")
    assert good.tolist() == [2, 2, 2]

    locked = good.copy()
    locked.flags.writeable = False
    with pytest.raises(ValueError, match="writes to x, and the array is read-only: pass a copy"):
        model.forward([locked], y, "a")
    unaligned = np.zeros(13, np.uint8)[1:].view(np.float32)
    for other in (good.astype(">f4"), good[::-1], unaligned):
        with pytest.raises(TypeError, match="writes to x, so it must be an aligned array in native byte order"):
            model.forward([other], y, "a")
        model.forward([good], other, "a")  # converted, because the model only reads it
    with pytest.raises(TypeError, match="writes to x, so it must be a NumPy array, got Tensor"):
        model.forward([torch.ones(3)], y, "a")


@pytest.mark.parametrize("script", [False, True])
def test_buffers_written_to_in_parts(tmp_path, script):
    eager, (x, y) = Counting(), _example()
    model = built(torch.jit.script(Counting()) if script else Counting(), (x, y), tmp_path)
    assert "written" not in model.signature("forward")
    for _ in range(3):
        for one, other in zip(model.forward(x.numpy(), y.numpy()), eager(x, y), strict=True):
            close(one, other)


def test_view_of_a_size_that_values_decide_written_to_later():
    def shifted(y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        found = y[y > 0]
        rest = found[1:]
        again = found[found > 1]
        rest.add_(1)
        return found, again

    with pytest.raises(NotExportable, match=r"add_.* in shifted rest.add_\(1\)"):
        export(shifted, (torch.rand(3, 3),), "never")


@pytest.mark.parametrize("decomposed", [False, True])
def test_refused_writes_have_their_line(decomposed):
    class Complex(nn.Module):
        def __init__(self):
            super().__init__()
            self.total = nn.Buffer(torch.ones(3, dtype=torch.complex64))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.total.add_(x)
            x.mul_(2)
            return self.total * 1

    program = torch.export.export(Complex(), (torch.ones(3, dtype=torch.complex64),))
    program = program.run_decompositions() if decomposed else program
    with pytest.raises(NotExportable) as error:
        export(program, (), "never")
    lines = str(error.value).splitlines()[1:]
    assert len(lines) == 2 and "unknown" not in str(error.value)
    assert any("self.total.add_(x)" in line for line in lines) and any("x.mul_(2)" in line for line in lines)


def test_refused_operators_of_programs_have_their_line():
    def values(x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.eig(x)[0]

    with pytest.raises(NotExportable, match=r"aten::linalg_eig at test_written.py:\d+"):
        export(torch.jit.script(values), (torch.eye(3),), "never")


@pytest.mark.skipif(zig_command() is None, reason="needs Zig's compiler (the package ziglang)")
@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
def test_javascript_writes_back(tmp_path):
    export(torch.jit.script(_listed), ([torch.ones(3)], torch.ones(3), "a"), tmp_path / "listed", name="listed")
    build_library(tmp_path / "listed", "listed", "wasm32")
    program = """
import { readFileSync } from "node:fs";
import { load, tensor } from "./listed.js";
const model = await load({ wasm: readFileSync("listed.wasm"), weights: readFileSync("listed.weights") });
const x = new Float32Array([1, 2, 3]), y = new Float32Array([1, 1, 1]);
model.forward([tensor(x, [3])], tensor(y, [3]), "a");
console.log(model.signatures.forward, [...x], [...y]);
"""
    (tmp_path / "listed/run.mjs").write_text(program)
    done = subprocess.run(["node", "run.mjs"], cwd=tmp_path / "listed", capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "x: List[Tensor] (written to), y: float32[3]" in done.stdout and "[ 2, 3, 4 ] [ 1, 1, 1 ]" in done.stdout
