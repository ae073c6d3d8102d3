"""Packages exchanged with PyTorch, both ways. What is Rushlight's runs under `rushlight exec`, where `torch` is Rushlight."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

import rushlight

ROOT = Path(rushlight.__file__).parents[1]
pytestmark = pytest.mark.oracle
torch = pytest.importorskip("torch")
package = pytest.importorskip("torch.package")

MODEL = """
import torch
import torch.nn as nn
from torch.nn import functional as F

from . import scale


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 2, 3)
        self.norm = nn.BatchNorm2d(2)
        self.rest = nn.Sequential(nn.ReLU(), nn.Linear(2, 3))

    def forward(self, x):
        return F.gelu(self.rest(self.norm(self.first(x)))) * scale.FACTOR
"""
WRITE = """
import sys

sys.path.insert(0, {folder!r})
import torch
from exchanged.model import Net
from torch.package import PackageExporter, package_exporter


class Scripted(torch.nn.Module):
    def __init__(self, k):
        super().__init__()
        self.register_buffer("k", torch.full((2,), k))

    def forward(self, x):
        return torch.nn.functional.gelu(x * self.k)


torch.manual_seed(0)
net = Net().eval()
scripts = [torch.jit.freeze(torch.jit.script(Scripted(k).eval())) for k in (2.0, 3.0)] + [torch.jit.script(Scripted(4.0))]
traced = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()))
package_exporter._gate_torchscript_serialization = False
with PackageExporter({file!r}) as exporter:
    exporter.intern("exchanged.**")
    exporter.mock("colorsys_not_there")
    exporter.save_pickle("objects", "net.pkl", {{"net": net, "row": net.rest[1].weight[1], "dtype": torch.bfloat16}})
    exporter.save_pickle("objects", "scripts.pkl", [*scripts, scripts[2].k])
    exporter.save_pickle("objects", "graph.pkl", traced)
    exporter.save_text("texts", "note.txt", "hé")
x = torch.arange(16.0).reshape(1, 1, 4, 4) / 10
y = torch.tensor([[0.5, -1.0]])
torch.save({{"x": x, "y": y, "net": net(x), "scripts": [each(y) for each in scripts], "graph": traced(y)}}, {file!r} + ".values")
"""
READ = """
import sys

import torch
from torch.package import PackageImporter

importer = PackageImporter({file!r})
values = torch.load({file!r} + ".values")
x, y = values["x"], values["y"]
loaded = importer.load_pickle("objects", "net.pkl")
net = loaded["net"]
assert type(net).__module__ == importer.id() + ".exchanged.model", type(net)
torch.testing.assert_close(net(x), values["net"])
assert loaded["row"].untyped_storage().data_ptr() == net.rest[1].weight.untyped_storage().data_ptr()
assert loaded["dtype"] is torch.bfloat16
*scripts, k = importer.load_pickle("objects", "scripts.pkl")
for script, expected in zip(scripts, values["scripts"]):
    torch.testing.assert_close(script(y), expected)
assert scripts[2].k.data_ptr() == k.data_ptr()
torch.testing.assert_close(importer.load_pickle("objects", "graph.pkl")(y), values["graph"])
assert importer.load_text("texts", "note.txt") == "hé"
print("read by", torch.__name__, torch.__version__)
"""


def run(program, tmp_path, *, as_rushlight):
    path = tmp_path / f"program{len(list(tmp_path.iterdir()))}.py"
    path.write_text(program)
    words = ["-m", "rushlight", "exec", path] if as_rushlight else [path]
    environment = {**os.environ, "PYTHONPATH": str(ROOT) if as_rushlight else ""}
    done = subprocess.run([sys.executable, "-W", "ignore", *words], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def written(tmp_path):
    """Writes the package by one of the two; the names of its records."""
    folder = tmp_path / "modules"
    (folder / "exchanged").mkdir(parents=True)
    (folder / "exchanged" / "__init__.py").write_text("")
    (folder / "exchanged" / "scale.py").write_text("FACTOR = 3\n")
    (folder / "exchanged" / "model.py").write_text(MODEL)

    def write(as_rushlight):
        run(WRITE.format(folder=str(folder), file=str(tmp_path / "p.pt")), tmp_path, as_rushlight=as_rushlight)
        return set(zipfile.ZipFile(tmp_path / "p.pt").namelist())

    return write


@pytest.mark.parametrize("writer", ["rushlight", "torch"])
def test_each_reads_what_the_other_wrote(written, tmp_path, writer):
    names = written(writer == "rushlight")
    assert {"p/exchanged/model.py", "p/exchanged/scale.py", "p/.data/extern_modules"} <= names
    read = READ.format(file=str(tmp_path / "p.pt"))
    for reader in ("rushlight", "torch"):
        assert "read by" in run(read, tmp_path, as_rushlight=reader == "rushlight")


def test_rushlight_reads_without_the_alias(written, tmp_path):
    written(False)
    importer = rushlight.package.PackageImporter(tmp_path / "p.pt")
    net = importer.load_pickle("objects", "net.pkl")["net"]
    assert isinstance(net, rushlight.nn.Module) and importer.import_module("exchanged.model").torch is rushlight
    values = rushlight.load(f"{tmp_path}/p.pt.values")
    rushlight.testing.assert_close(net(values["x"]), values["net"])


def test_the_alias_is_the_same_module(tmp_path):
    program = """
        import rushlight, torch, torch.package
        from torch.package.glob_group import GlobGroup
        import torch.package.package_exporter
        assert torch.package is rushlight.package and GlobGroup is rushlight.package.GlobGroup
        print("same")
    """
    assert run(textwrap.dedent(program), tmp_path, as_rushlight=True) == "same\n"


# The same steps with both exporters.

FILES = {"__init__.py": "", "a.py": "import math, sys\nfrom . import b\ntry:\n    import unknown_module\nexcept ImportError:\n    pass\n", "b.py": "import other_of_ours\n"}


@pytest.fixture
def sources(tmp_path, monkeypatch):
    for name, text in FILES.items():
        (tmp_path / "compared").mkdir(exist_ok=True)
        (tmp_path / "compared" / name).write_text(text)
    (tmp_path / "other_of_ours.py").write_text("X = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] in ("compared", "other_of_ours")]:
        del sys.modules[name]


def both(fill):
    """What the exporters of both do: the records and external modules, the hooks that ran, or the error."""
    results = []
    for kind in (rushlight.package, package):
        buffer, log = io.BytesIO(), []
        try:
            with kind.PackageExporter(buffer) as exporter:
                for name in ("extern", "mock", "intern"):
                    getattr(exporter, f"register_{name}_hook")(lambda each, module, name=name, log=log: log.append((name, module)))
                fill(exporter)
                log.append((exporter.externed_modules(), exporter.interned_modules(), exporter.mocked_modules(), exporter.denied_modules()))
                log.append(exporter.dependency_graph_string())
        except (kind.PackagingError, kind.EmptyMatchError) as error:
            results.append((type(error).__name__, [line for line in str(error).splitlines() if "Note:" not in line]))
            continue
        archive = zipfile.ZipFile(buffer)
        results.append((sorted(archive.namelist()), archive.read("archive/.data/extern_modules"), log))
    return results


@pytest.mark.parametrize("fill", [
    lambda e: (e.intern("compared.**"), e.save_module("compared.a")),
    lambda e: (e.intern("compared.**"), e.extern(["other_of_ours", "sys"]), e.save_module("compared.a")),
    lambda e: (e.mock("other_*"), e.extern("sys"), e.intern("compared.**"), e.save_module("compared.a")),
    lambda e: (e.deny("other_*"), e.intern("**"), e.save_module("compared.a", dependencies=True)),
    lambda e: (e.intern("**"), e.save_module("compared.a", dependencies=False)),
    lambda e: (e.extern("**"), e.save_source_string("m", "import compared.a as x\nfrom compared import b, FACTOR\n")),
    lambda e: (e.intern("zzz", allow_empty=False), e.add_dependency("unknown")),
    lambda e: e.add_dependency("unknown"),
    lambda e: (e.extern("compared.**"), e.add_dependency("compared.b"), e.add_dependency("json")),
    lambda e: (e.save_pickle("p", "o", {"a": {1}, "b": b"x", "c": 1j}), e.save_text("q.r", "t", "x")),
    lambda e: e.save_source_string("m", "def (:"),
    lambda e: e.save_source_string("m.n", "import io\n", is_package=True),
])  # fmt: skip
def test_exporters_decide_alike(sources, fill):
    ours, theirs = both(fill)
    if "archive/p/o" in theirs[0]:  # each pickles plain objects by functions of its own choice
        assert ours[0] == theirs[0]
    else:
        assert ours == theirs


@pytest.mark.parametrize("include", ["torch.**", "**.c", "a.**.c", "a*", "*", "", "a.b*c", "**", ["a", "b.*"], "**.a.**"])
def test_globs_match_alike(include):
    groups = [kind.GlobGroup(include, exclude="a.x.**") for kind in (rushlight.package, package)]
    assert repr(groups[0]) == repr(groups[1])
    for name in ("", "a", "b", "c", "ab", "a.b", "a.c", "a.b.c", "a.bxc", "torch", "torch.a", "torch.a.b", "x.a.y", "a.x", "a.x.y"):
        assert groups[0].matches(name) == groups[1].matches(name), name
