"""Packages written and read: modules with their own names, objects, files, shared storages, scripted and graph modules."""

from __future__ import annotations

import importlib.resources
import inspect
import io
import sys
import threading
import zipfile

import pytest

import rushlight as torch
from rushlight.package import PackageExporter, PackageImporter, is_from_package, sys_importer
from rushlight.serialization import PicklingError


def with_model(exporter):
    from sample.layers import Scale

    exporter.intern("sample.**")
    model = Scale()
    exporter.save_pickle("model", "model.pkl", {"model": model, "row": model.linear.weight[1], "dtype": torch.float16})


def test_a_module_comes_back_with_code_of_its_own(sample, pack):
    importer = pack(with_model)
    loaded = importer.load_pickle("model", "model.pkl")
    kind = type(loaded["model"])
    ours = sys.modules["sample.layers"].Scale
    assert kind is not ours and kind.__module__ == f"{importer.id()}.sample.layers"
    assert loaded["row"].untyped_storage() == loaded["model"].linear.weight.untyped_storage()
    assert loaded["dtype"] is torch.float16
    x = torch.ones(1, 2)
    assert torch.equal(loaded["model"](x), loaded["model"].linear(x) * 6)
    assert is_from_package(loaded["model"]) and not is_from_package(ours())
    assert "def forward" in inspect.getsource(kind.forward)
    assert not [name for name in sys.modules if name.startswith("<torch_package")]


def test_modules_of_a_package_have_the_attributes_that_pytorch_gives_them(sample, pack):
    importer = pack(with_model)
    module, package = importer.import_module("sample.layers"), importer.import_module("sample")
    assert module.__torch_package__ and module.__loader__ is importer and module.__package__ == "sample"
    assert module.__file__ == f"{importer.id()}.sample/layers.py" and module.__spec__.name == "sample.layers"
    assert package.__path__ == [] and package.layers is module and package.__package__ == "sample"
    assert importer.import_module(f"{importer.id()}.sample.layers") is module
    assert importer.import_module(".layers", "sample") is module
    assert importer.get_source(module.__name__) == (sample / "layers.py").read_text()
    assert module.torch is torch


def test_two_importers_are_apart(sample, build):
    data = build(with_model)
    first, second = (PackageImporter(io.BytesIO(data)) for _ in range(2))
    assert first.id() != second.id()
    assert first.import_module("sample") is not second.import_module("sample")


def test_only_what_is_needed_is_copied(sample, build):
    names = zipfile.ZipFile(io.BytesIO(build(with_model))).namelist()
    sources = [name for name in names if name.endswith(".py")]
    assert sources == ["archive/sample/layers.py", "archive/sample/__init__.py", "archive/sample/inner/deep.py"]


def test_files_are_read_by_the_importer_and_by_importlib(sample, pack):
    def fill(exporter):
        exporter.intern("sample.**")
        exporter.save_module("sample.inner")
        exporter.save_text("sample.inner", "note.txt", "hé")
        exporter.save_binary("data.deep", "raw", b"\x00\x01")

    importer = pack(fill)
    assert importer.load_text("sample.inner", "note.txt") == "hé" == importer.import_module("sample.inner").load()
    assert importer.load_binary("data.deep", "raw") == b"\x00\x01"
    assert importlib.resources.files(importer.import_module("sample.inner")).joinpath("note.txt").read_text("utf-8") == "hé"
    reader = importer.get_resource_reader("data")
    assert list(reader.contents()) == ["deep"] and not reader.is_resource("deep")
    with pytest.raises(FileNotFoundError):
        reader.open_resource("nothing")
    assert importer.get_resource_reader("nothing") is None
    with pytest.raises(RuntimeError, match="failed locating file data/nothing"):
        importer.load_text("data", "nothing")
    with pytest.raises(ValueError, match="must be only a file name"):
        importer.load_text("data", "../sample/inner/note.txt")


def test_missing_modules_are_not_found_in_the_environment(sample, pack):
    importer = pack(with_model)
    for name in ("os", "sample.nothing", "nothing"):
        with pytest.raises(ModuleNotFoundError, match="self-contained archive"):
            importer.import_module(name)
    with pytest.raises(TypeError, match="'sample.layers' is not a package"):
        importer.load_text("sample.layers", "x")
    with pytest.raises(ValueError, match="Empty module name"):
        importer.import_module("")


def test_import_statements_of_all_kinds(pack):
    def fill(exporter):
        exporter.extern("numpy.**")
        exporter.save_source_string("a", "import numpy.linalg\nimport a.b.c as c\nfrom . import b\nfrom .b import c as d", True)
        exporter.save_source_string("a.b", "__all__ = ['c']", True)
        exporter.save_source_string("a.b.c", "from .. import b\nX = __import__('json').dumps(1)")
        exporter.save_source_string("star", "from a.b import *")
        exporter.save_source_string("bad", "from a import nothing")
        exporter.save_source_string("beyond", "from ... import x", dependencies=False)
        exporter.save_source_string("fails", "import a\nraise KeyError('x')")

    importer = pack(fill)
    a = importer.import_module("a")
    assert a.c is a.d is a.b.c and a.c.X == "1" and a.numpy.linalg is sys.modules["numpy.linalg"]
    assert importer.import_module("star").c is a.c
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        importer.import_module("bad")
    with pytest.raises(ImportError, match="relative import"):
        importer.import_module("beyond")
    for _ in range(2):  # a module that failed is run again
        with pytest.raises(KeyError):
            importer.import_module("fails")


def test_dataclasses_with_annotations_as_text(sample, pack):
    importer = pack(lambda exporter: (exporter.intern("sample.**"), exporter.save_module("sample.typed")))
    assert repr(importer.import_module("sample.typed").Point(2)) == "Point(x=2, y=1)"


def test_torch_in_a_package_is_rushlight(pack):
    source = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\nfrom torch.utils import data\nx = torch.ones(2)"
    importer = pack(lambda exporter: exporter.save_source_string("m", source))
    module = importer.import_module("m")
    assert module.torch is torch and module.F is torch.nn.functional and module.nn is torch.nn
    assert module.data is torch.utils.data and isinstance(module.x, torch.Tensor)
    assert importer.extern_modules == ["torch", "torch.nn.functional", "torch.nn", "torch.utils.data"]


def test_objects_of_a_package_are_packaged_again(sample, pack):
    first = pack(with_model)
    model = first.load_pickle("model", "model.pkl")["model"]
    with pytest.raises(PicklingError, match="comes? from|coming from"):
        pack(lambda exporter: exporter.save_pickle("again", "model.pkl", model))

    def fill(exporter):
        exporter.intern("sample.**")
        exporter.save_pickle("again", "model.pkl", model)

    second = pack(fill, importer=[first, sys_importer])
    again = second.load_pickle("again", "model.pkl")
    assert type(again).__module__ == f"{second.id()}.sample.layers"
    assert torch.equal(again(torch.ones(2)), model(torch.ones(2)))


def test_storages_are_shared_between_pickles(build):
    weight = torch.arange(6.0)

    def fill(exporter):
        exporter.save_pickle("a", "one", weight)
        exporter.save_pickle("a", "two", [weight[2:], weight.view(2, 3).t()])

    data = build(fill)
    assert [name for name in zipfile.ZipFile(io.BytesIO(data)).namelist() if name.endswith(".storage")] == ["archive/.data/0.storage"]
    rest, turned = PackageImporter(io.BytesIO(data)).load_pickle("a", "two")
    assert rest.tolist() == [2, 3, 4, 5] and turned.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert rest.untyped_storage() == turned.untyped_storage()
    moved = PackageImporter(io.BytesIO(data)).load_pickle("a", "one", map_location="meta")
    assert moved.is_meta and moved.shape == (6,)


class Described:
    def __init__(self, text):
        self.text = text

    def __reduce_package__(self, exporter):
        name = exporter.get_unique_id()
        exporter.save_text("described", name, self.text)
        return make_described, (name,)


def make_described(importer, name):
    return Described(importer.load_text("described", name))


def test_objects_that_describe_themselves(pack):
    one, two = Described("one"), Described("two")

    def fill(exporter):
        exporter.extern(__name__)
        exporter.save_pickle("p", "o", [one, two, one])

    made = pack(fill).load_pickle("p", "o")
    assert [each.text for each in made] == ["one", "two", "one"] and made[0] is made[2]


class Doubled(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.register_buffer("scale", torch.full((2,), scale))

    def forward(self, x):
        return torch.nn.functional.gelu(x * self.scale)


def test_scripted_modules_share_code_and_storages(build):
    frozen = [torch.jit.freeze(torch.jit.script(Doubled(scale).eval())) for scale in (2.0, 3.0)]
    plain = torch.jit.script(Doubled(4.0))

    def fill(exporter):
        exporter.save_pickle("m", "all", [*frozen, plain, plain, plain.scale])
        exporter.save_pickle("m", "one", plain)

    data = build(fill)
    importer = PackageImporter(io.BytesIO(data))
    *modules, scale = importer.load_pickle("m", "all")
    x = torch.ones(2)
    for loaded, written in zip(modules, [*frozen, plain, plain], strict=True):
        assert torch.allclose(loaded(x), written(x))
    assert modules[2] is modules[3] and modules[2].scale.untyped_storage() == scale.untyped_storage()
    assert torch.allclose(importer.load_pickle("m", "one")(x), plain(x))
    folders = {name.split("/")[3] for name in zipfile.ZipFile(io.BytesIO(data)).namelist() if "/ts_code/" in name}
    assert folders == {"0", "1", "2", "code"}
    with pytest.raises(PicklingError, match="ScriptFunction cannot be pickled"):
        build(lambda exporter: exporter.save_pickle("m", "f", torch.jit.trace(lambda x: x + 1, x)))


def test_graph_modules_keep_their_code_as_a_module(pack):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(2, 2)

        def forward(self, x):
            return torch.relu(self.linear(x)) * 2

    net = torch.fx.symbolic_trace(Net())
    net.tag = "kept"
    importer = pack(lambda exporter: exporter.save_pickle("m", "net", net))
    loaded = importer.load_pickle("m", "net")
    x = torch.ones(1, 2)
    assert isinstance(loaded, torch.fx.GraphModule) and type(loaded).__name__ == "Net" and loaded.tag == "kept"
    assert loaded.code == net.code and torch.equal(loaded(x), net(x))


def test_modules_of_a_package_are_scripted_traced_and_captured(sample, pack):
    model = pack(with_model).load_pickle("model", "model.pkl")["model"]
    x = torch.ones(1, 2)
    expected = model(x)
    assert torch.equal(torch.fx.symbolic_trace(model)(x), expected)
    assert torch.equal(torch.jit.trace(model, x)(x), expected)
    assert torch.equal(torch.compile(model, backend="eager")(x), expected)
    assert torch.equal(torch.jit.script(model)(x), expected)


def test_files_and_folders_become_modules(sample, pack):
    def fill(exporter):
        exporter.save_source_file("copied.inner", sample / "inner")
        exporter.save_source_file("single", sample / "inner" / "deep.py", dependencies=False)

    importer = pack(fill)
    assert importer.import_module("copied.inner.deep").FACTOR == importer.import_module("single").FACTOR == 3
    assert "copied" in importer.modules and importer.import_module("copied").__file__ is None


def test_a_package_on_disk_and_unpacked(sample, tmp_path):
    path = tmp_path / "my.model.pt"
    with PackageExporter(path) as exporter:
        with_model(exporter)
    with zipfile.ZipFile(path) as archive:
        assert {name.partition("/")[0] for name in archive.namelist()} == {"my.model"}
        archive.extractall(tmp_path / "unpacked")
    whole, folder = PackageImporter(path), PackageImporter(tmp_path / "unpacked" / "my.model")
    weights = [importer.load_pickle("model", "model.pkl")["model"].linear.weight for importer in (whole, folder)]
    assert torch.equal(*weights)
    assert str(folder.file_structure(include="**/*.py")) == str(whole.file_structure(include="**/*.py")).replace(
        str(path), str(tmp_path / "unpacked" / "my.model"))


def test_nothing_is_written_where_the_block_fails(tmp_path):
    path = tmp_path / "m.pt"
    with pytest.raises(KeyError), PackageExporter(path) as exporter:
        exporter.save_text("a", "b", "c")
        raise KeyError("inside")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="closed"):
        exporter.save_text("a", "b", "c")


def test_file_structure(pack):
    def fill(exporter):
        exporter.save_text("a.b", "x.txt", "")
        exporter.save_source_string("a", "", True)

    importer = pack(fill)
    tree = importer.file_structure(exclude=["**/.data/**", "byteorder"])
    assert str(tree) == (
        "─── <binary>\n    └── a\n        ├── b\n        │   └── x.txt\n        └── __init__.py\n"
    )  # fmt: skip
    assert tree.has_file("a/b/x.txt") and tree.has_file("a/b") and not tree.has_file("a/c") and tree.children["a"].is_dir
    assert importer.python_version() == sys.version.split()[0]


def test_imports_from_many_threads(sample, build):
    data = build(with_model)
    importer = PackageImporter(io.BytesIO(data))
    found = []

    def work():
        found.append(importer.load_pickle("model", "model.pkl")["model"].linear.weight)

    threads = [threading.Thread(target=work) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(found) == 8 and all(torch.equal(found[0], each) for each in found)
