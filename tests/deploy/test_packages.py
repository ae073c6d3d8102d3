"""Exported models as commands, Python wheels and `.pt2` packages have them."""

from __future__ import annotations

import subprocess
import sys
import zipfile

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.commands import main
from rushlight.deploy.binding import Model, _array_to_tensor
from tests.deploy.built import close


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("archive") / "net.pt"
    module = torch.jit.script(nn.Sequential(nn.Linear(4, 3), nn.Tanh()))
    module.save(path)
    return module, path


def test_command_exports_builds_and_packs(archive, tmp_path, capsys):
    module, path = archive
    folder = tmp_path / "net"
    assert main(["export", str(path), "--input", "x:float32[n=1..8,4]", "-o", str(folder), "--python"]) == 0
    assert capsys.readouterr().out.split() == [str(folder), str(folder / "libnet.so"), str(next(folder.glob("*.whl")))]
    model = Model(folder / "libnet.so", "net", folder / "net.weights")
    assert repr(model) == "<model net>\nforward(input: float32[n, 4]) -> result: float32[n, 3]"
    for n in (1, 2, 8):
        x = torch.rand(n, 4)
        close(model(x.numpy()), module(x))

    place = tmp_path / "installed"
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(place)
    program = (
        "import sys, numpy as np, net; m = net.Model(); print(m(np.ones((2, 4), np.float32)).shape); "
        "print([name for name in sys.modules if name.startswith('rushlight')])"
    )
    said = subprocess.run([sys.executable, "-c", program], cwd=place, capture_output=True, text=True, check=True).stdout
    assert said.split("\n")[:2] == ["(2, 3)", "[]"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing.pt"], "there is no file nothing.pt"),
        (["ARCHIVE", "--input", "x:float32[1,4"], "an input is NAME:DTYPE\\[SIZES\\]"),
        (["ARCHIVE", "--input", "x:float33[1,4]"], "'float33' is no dtype"),
        (["ARCHIVE", "--input", "x:float32[1,n-1]"], "a size is a number, a name, or NAME=LEAST..MOST"),
        (["ARCHIVE", "--method", "other", "--input", "x=1"], "has no method 'other'; it has forward"),
        (["ARCHIVE"], "has no value for 'input'"),
        (["ARCHIVE", "--name", "a b", "--input", "x:float32[1,4]"], "must be an identifier of C"),
        (["ARCHIVE", "--input", "x:float32[n=8..2,4]"], "n=8..2', of which nothing is within"),
        (["examples/bert.py"], "as examples/bert.py:NAME"),
        (["README.md"], "neither a TorchScript archive nor an exported program"),
    ],
)
def test_command_says_what_is_wrong(archive, tmp_path, capsys, words, said):
    given = [str(archive[1]) if word == "ARCHIVE" else word for word in words]
    assert main(["export", *given, "-o", str(tmp_path / "out")]) == 1
    found = capsys.readouterr()
    assert found.out == ""
    with pytest.raises(AssertionError, match=said):
        raise AssertionError(found.err)
    assert found.err.startswith("rushlight export: ") and not (tmp_path / "out").exists()


def test_command_takes_programs_of_torch_and_relative_folders(tmp_path):
    text = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor(2.0))
    def forward(self, x):
        return {"twice": torch.relu(x) * self.scale}
"""
    (tmp_path / "code.py").write_text(text)
    words = ["export", "code.py:Net", "--input", "x:float32[n,2]", "-o", "build/net", "--library"]
    subprocess.run([sys.executable, "-m", "rushlight", *words], cwd=tmp_path, check=True, timeout=300)
    model = Model(tmp_path / "build/net/libnet.so", "net", tmp_path / "build/net/net.weights")
    assert model.signature("forward") == "forward(x: float32[n, 2]) -> twice: float32[n, 2]"
    assert model.forward(np.array([[-1, 2]], np.float32)).tolist() == [[0, 4]]


def test_pt2_packages(tmp_path):
    class Pair(nn.Module):
        def forward(self, x, scale, flag=True):
            return {"sum": x["a"] + x["b"] * scale, "both": (x["a"], 3)}

    module, x = Pair(), {"a": torch.rand(3, 2), "b": torch.rand(3, 2)}
    program = torch.export.export(module, (x, 2.0), {"flag": True})
    path = torch._inductor.aoti_compile_and_package(program, package_path=tmp_path / "pair.pt2")
    run = torch._inductor.aoti_load_package(path)
    found, expected = run(x, 2.0, flag=True), module(x, 2.0)
    torch.testing.assert_close(found["sum"], expected["sum"])
    torch.testing.assert_close(found["both"][0], x["a"])
    assert found["both"][1] == 3
    with pytest.raises(RuntimeError, match="input 2 is 3.0, and was 2.0"):
        run(x, 3.0, flag=True)
    with pytest.raises(RuntimeError, match="must be as in"):
        run({"a": torch.rand(4, 2), "b": torch.rand(3, 2)}, 2.0, flag=True)


def test_what_is_no_pt2_package(tmp_path):
    with pytest.raises(FileNotFoundError):
        torch._inductor.aoti_load_package(tmp_path / "none.pt2")
    (tmp_path / "text.pt2").write_text("text")
    with pytest.raises(RuntimeError, match="is no .pt2 package"):
        torch._inductor.aoti_load_package(tmp_path / "text.pt2")
    torch.export.save(torch.export.export(nn.Linear(2, 1), (torch.ones(1, 2),)), tmp_path / "program.pt2")
    with pytest.raises(RuntimeError, match="was not written by aoti_compile_and_package"):
        torch._inductor.aoti_load_package(tmp_path / "program.pt2")
    with pytest.raises(TypeError, match="takes an ExportedProgram, got Linear"):
        torch._inductor.aoti_compile_and_package(nn.Linear(2, 1))
    with zipfile.ZipFile(tmp_path / "broken.pt2", "w") as archive:
        for name, content in (("model.json", '{"in_spec": 1}'), ("libmodel.so", "no library"), ("model.weights", "")):
            archive.writestr(f"data/aotinductor/model/{name}", content)
    with pytest.raises(RuntimeError, match="holds no library that runs here"):
        torch._inductor.aoti_load_package(tmp_path / "broken.pt2")


def test_arrays_that_cannot_cross():
    with pytest.raises(TypeError, match="arrays are of float32"):
        _array_to_tensor(np.zeros(3, np.uint32), [])
    with pytest.raises(ValueError, match="at most 8 dimensions, got 9"):
        _array_to_tensor(np.zeros((1,) * 9, np.float32), [])


def test_a_handle_without_its_library():
    assert not hasattr(object.__new__(Model), "_handle")
