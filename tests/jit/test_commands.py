"""The commands `rushlight info`, `run` and `code`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rushlight as torch
from rushlight.jit.commands import main
from tests.jit import test_archives_hostile as hostile

ARCHIVES = Path(__file__).with_name("archives")

INFO = """\
  forward(images: List[Tensor]) -> Tuple[List[__torch__.zoo_of_torch.Boxes], Dict[str, Tensor], float]
  suppress(boxes: Tensor, scores: Tensor) -> Tensor
modules: 2 (1 Detection, 1 Linear)
parameters: 2 tensors, 30 elements, 120 bytes of torch.float32
buffers: 0 tensors, 0 elements, 0 bytes
"""


def archive(name: str) -> str:
    return str(ARCHIVES / f"{name}.pt")


def test_info(capsys):
    assert main(["info", archive("detection_head"), "--operators"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("__torch__.zoo_of_torch.Detection  (") and INFO in out
    assert "       1  aten::linear\n" in out and out.endswith("supported: yes\n")


def test_info_names_what_is_not_supported(capsys, tmp_path):
    path = tmp_path / "m.pt"
    path.write_bytes(hostile.archive(hostile.MODULE.replace("BODY", "return torch.coalesce(x)")))
    assert main(["info", str(path)]) == 0
    out = capsys.readouterr().out
    assert "not supported: aten::coalesce" in out and "supported: except for code that calls these" in out


def test_run(capsys, tmp_path):
    x = tmp_path / "x.npy"
    np.save(x, np.zeros((1, 3), np.float32))
    assert main(["run", archive("interfaces"), "--input", str(x)]) == 0
    assert capsys.readouterr().out.startswith("tensor([[")
    assert main(["run", archive("interfaces"), "--input", str(x), "--output", str(tmp_path / "y.npy")]) == 0
    assert capsys.readouterr().out == "result: float32 [1, 3]\n"
    module = torch.jit.load(archive("interfaces"))
    np.testing.assert_allclose(np.load(tmp_path / "y.npy")[0], module.b.bias.detach().numpy())


def test_run_takes_values_and_methods(capsys, tmp_path):
    assert main(["run", archive("strings_and_dicts"), "--input", '["a", "b"]', "3"]) == 0
    assert capsys.readouterr().out.startswith("{'a': [0], 'b': [3]")
    np.savez(tmp_path / "boxes.npz", boxes=np.array([[0, 0, 1, 1]], np.float32), scores=np.ones(1, np.float32))
    words = ["--method", "suppress", "--input", str(tmp_path / "boxes.npz"), "--output", str(tmp_path / "kept.npz")]
    assert main(["run", archive("detection_head"), *words]) == 0
    assert np.load(tmp_path / "kept.npz")["result"].tolist() == [0]


def test_code(capsys):
    assert main(["code", archive("interfaces"), "--module", "b"]) == 0
    assert capsys.readouterr().out == (
        "def forward(self,\n    x: Tensor) -> Tensor:\n  bias = self.bias\n  return torch.add(x, bias)\n\n"
    )
    assert main(["code", archive("interfaces"), "--graph"]) == 0
    assert "prim::CallMethod" in capsys.readouterr().out
    assert main(["code", archive("interfaces"), "--all"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("# __torch__/zoo_of_torch.py\nclass WithInterfaces(Module):") and "class Transform(ModuleInterface):" in out


@pytest.mark.parametrize("words, problem", [
    (["info", "/nonexistent.pt"], "No such file"),
    (["code", archive("enums"), "--module", "nothing"], "there is no submodule 'nothing'"),
    (["run", archive("interfaces")], "missing value for argument 'x'"),
    (["run", archive("strings_and_dicts"), "--input", "[]", "1", "--output", "x.npy"], "holds no tensors"),
    (["info", __file__], "does not begin as a zip archive"),
])  # fmt: skip
def test_errors_are_one_line(words, problem, capsys):
    assert main(words) == 1
    shown = capsys.readouterr()
    assert shown.err.startswith("rushlight: ") and problem in shown.err and not shown.out.startswith("Traceback")


def test_python_minus_m():
    command = [sys.executable, "-m", "rushlight", "code", archive("enums")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.startswith("def forward(self")
