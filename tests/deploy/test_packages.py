"""Exported models as commands, Python wheels and `.pt2` packages have them."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import zipfile

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.commands import main
from rushlight.deploy import export, package
from rushlight.deploy.binding import Model, ModelError, _array_to_tensor
from rushlight.deploy.targets import build_library
from tests.deploy.built import built, close


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


def test_numbers_and_arrays_of_other_widths_and_orders(tmp_path):
    @torch.jit.script
    def twice(x: torch.Tensor, y: torch.Tensor, n: int) -> tuple[torch.Tensor, torch.Tensor, int]:
        return x * 2, y * 2, n

    model = built(twice, (torch.ones(3), torch.ones(2, dtype=torch.bfloat16), 3), tmp_path)
    x, half_precision = np.arange(3, dtype=np.float32), np.array([0x3F80, 0x4000], np.uint16)
    unaligned = np.zeros(13, np.uint8)[1:].view(np.float32)
    unaligned[:] = x
    for given in (x, x.astype(">f4"), unaligned, x[::-1][::-1]):
        found = model.forward(given, half_precision, -(2**63))
        assert found[0].tolist() == [0, 2, 4] and found[1].view(np.uint16).tolist() == [0x4000, 0x4080] and found[2] == -(2**63)
    with pytest.raises(OverflowError, match="ints of a model have 64 bits"):
        model.forward(x, half_precision, 2**63)
    for threads in (0, -(2**32) + 1, 2**32 + 1):
        with pytest.raises(ModelError, match="a model runs on 1 to 64 threads"):
            model.set_threads(threads)


def test_exports_over_older_ones(tmp_path):
    x = torch.ones(1, 3)
    model = built(nn.Linear(3, 2), (x,), tmp_path, "model", embed=True)
    before = model(x.numpy())
    export(nn.Linear(3, 2), (x,), tmp_path, name="other")  # the folder's only model now
    assert not list(tmp_path.glob("model*")) and (tmp_path / "libmodel.so").exists()
    old = built(nn.Linear(3, 2), (x,), tmp_path, "other")
    expected = old(x.numpy())
    layer = nn.Linear(3, 2)
    export(layer, (x,), tmp_path, name="other")
    library = build_library(tmp_path, "other", flags=("-O1",))
    again = shutil.copy(library, tmp_path / "again.so")  # a process loads a library of one name once
    close(Model(again, "other", tmp_path / "other.weights")(x.numpy()), layer(x))
    # handles of older exports keep their weights
    assert old(x.numpy()).tolist() == expected.tolist() and model(x.numpy()).tolist() == before.tolist()


def test_interrupted_exports(tmp_path, monkeypatch):
    x = torch.ones(1, 3)
    export(nn.Linear(3, 2), (x,), tmp_path, name="model")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}

    def fail(*_):
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(package, "copy_headers", fail)
        with pytest.raises(OSError, match="no space left"):
            export(nn.Linear(3, 2), (x,), tmp_path, name="model")
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}

    killed = tmp_path / "killed"
    killed.mkdir()
    (killed / package.MARK).touch()
    (killed / ".rushlight-staged-1").mkdir()
    export(nn.Linear(3, 2), (x,), killed, name="model")
    assert (killed / "model.weights").exists() and not (killed / ".rushlight-staged-1").exists()


def test_two_exports_into_one_folder(tmp_path):
    layers = [nn.Linear(3, 2) for _ in range(2)]
    x, folder = torch.ones(1, 3), tmp_path / "both"
    threads = [threading.Thread(target=export, args=(each, (x,), folder), kwargs={"name": "model"}) for each in layers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = Model(build_library(folder, "model", flags=("-O1",)), "model", folder / "model.weights")(x.numpy())
    assert any(np.allclose(found, layer(x).detach().numpy(), atol=1e-5) for layer in layers)


def test_command_refuses_inputs_of_an_exported_program(tmp_path, capsys):
    torch.export.save(torch.export.export(nn.Linear(2, 1), (torch.ones(1, 2),)), tmp_path / "program.pt2")
    assert main(["export", str(tmp_path / "program.pt2"), "--input", "x:float32[5,2]", "-o", str(tmp_path / "out")]) == 1
    assert "is an exported program, which has its inputs already" in capsys.readouterr().err
