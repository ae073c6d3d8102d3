"""Archives that are damaged or say wrong things: a clear error each time, and never a crash."""

from __future__ import annotations

import io
import os
import pickle
import random

import pytest

import rushlight as torch
from rushlight.package import PackageExporter, PackageImporter
from rushlight.serialization import UnpicklingError
from tests.serialization.archives import zip_bytes

BASE = {"p/.data/extern_modules": b"torch\ncollections\n", "p/.data/version": b"6\n", "p/byteorder": b"little", "p/a/__init__.py": b""}


def package(**records):
    """A package of these records, whose names have `__` for slashes, beside those that all have."""
    return io.BytesIO(zip_bytes([*BASE.items(), *((f"p/{name}", data) for name, data in records.items())]))


@pytest.mark.parametrize(("records", "message"), [
    ([("p/a.py", b"")], "failed locating file .data/extern_modules"),
    ([*BASE.items(), ("q/a.py", b"")], "has 2 folders at its top"),
    ([*BASE.items(), ("p/../a.py", b"")], "unsafe name"),
    ([*BASE.items(), ("/p/a.py", b"")], "unsafe name"),
    ([(name, data) for name, data in BASE.items() if "version" not in name], "no record 'version'"),
    ([*BASE.items(), ("p/version", b"99")], "declares format version"),
    ([(name, b"middle" if "byteorder" in name else data) for name, data in BASE.items()], "byte order"),
    ([("p/.data/extern_modules", b"\xff"), ("p/.data/version", b"6")], "not UTF-8"),
])  # fmt: skip
def test_archives_that_are_no_packages(records, message):
    with pytest.raises(RuntimeError, match=message):
        PackageImporter(io.BytesIO(zip_bytes(records)))


@pytest.mark.parametrize("data", [b"", b"abc", b"PK\x03\x04", b"PK\x03\x04" + bytes(100)])
def test_files_that_are_no_archives(data, tmp_path):
    (tmp_path / "x.pt").write_bytes(data)
    for file in (io.BytesIO(data), tmp_path / "x.pt"):
        with pytest.raises(RuntimeError):
            PackageImporter(file)
    with pytest.raises(FileNotFoundError):
        PackageImporter(tmp_path / "missing.pt")
    with pytest.raises(AttributeError):
        PackageImporter(3)


def tensor_pickle(key=b"K\x00", count=b"K\x04", size=b"K\x04\x85"):
    return (
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\n" + key
        + b"X\x03\x00\x00\x00cpu" + count + b"tQK\x00" + size + b"K\x01\x85\x89ccollections\nOrderedDict\n)RtR."
    )  # fmt: skip


def test_pickles_that_claim_what_is_not_there():
    data = torch.arange(4.0).numpy().tobytes()
    whole = PackageImporter(package(**{"a/x": tensor_pickle(), ".data/0.storage": data}))
    assert whole.load_pickle("a", "x").tolist() == [0, 1, 2, 3]
    for pickled, message in (
        (tensor_pickle(key=b"K\x01"), "no record '.*1.storage'"),
        (tensor_pickle(key=b"N"), "external object"),
        (tensor_pickle(count=b"K\x05"), "declared with 20 bytes"),
        (tensor_pickle(count=b"J\xff\xff\xff\xff"), "a storage of -1 elements"),
        (tensor_pickle(size=b"K\x05\x85"), "storage"),
        (b"\x80\x02NQ.", "unknown form"),
        (b"\x80\x02(X\x0e\x00\x00\x00reduce_packageK\x01NNtQ.", "by something other than a function"),
        (b"\x80\x02}", "ends too early|Ran out"),
        (b"\x80\x02(X\x0e\x00\x00\x00reduce_packageK\x01ctorch.jit._script\nunpackage_script_module\nX\x05\x00\x00\x00../..\x85tQ.", "have numbers"),
        (b"\x80\x02(X\x0e\x00\x00\x00reduce_packageK\x01ctorch.jit._script\nunpackage_script_module\nX\x01\x00\x00\x000\x85tQ.", "no record"),
    ):  # fmt: skip
        importer = PackageImporter(package(**{"a/x": pickled, ".data/0.storage": data}))
        with pytest.raises((RuntimeError, pickle.UnpicklingError), match=message):
            importer.load_pickle("a", "x")


def test_pickles_find_only_what_the_package_may_import():
    importer = PackageImporter(package(**{"a/x": b"\x80\x02cos\ngetcwd\n)R."}))
    with pytest.raises(ModuleNotFoundError, match='No module named "os"'):
        importer.load_pickle("a", "x")
    importer = PackageImporter(package(**{"a/x": b"\x80\x02ctorch\nno_such_name\n."}))
    with pytest.raises(AttributeError, match="torch.no_such_name"):
        importer.load_pickle("a", "x")


def test_external_modules_can_be_refused():
    with pytest.raises(ImportError, match="package '<binary>' needs the external module 'torch' but that module has been disallowed"):
        PackageImporter(package(), module_allowed=lambda name: name != "torch")


def test_code_that_is_no_code():
    for source, error in ((b"\xff", RuntimeError), (b"def (:", SyntaxError), (b"\0", (SyntaxError, ValueError))):
        importer = PackageImporter(package(**{"bad.py": source}))
        with pytest.raises(error):
            importer.import_module("bad")
        assert "bad" not in importer.modules


def test_links_in_an_unpacked_package_are_not_followed(tmp_path):
    for name, data in BASE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    (tmp_path / "secret").write_text("x")
    os.symlink(tmp_path / "secret", tmp_path / "p" / "a" / "link")
    importer = PackageImporter(tmp_path / "p")
    with pytest.raises(RuntimeError, match="failed locating file a/link"):
        importer.load_binary("a", "link")


def test_damaged_packages_raise_errors():
    buffer = io.BytesIO()
    with PackageExporter(buffer) as exporter:
        exporter.save_source_string("m", "x = 1")
        exporter.save_pickle("p", "o", [torch.ones(3), {"a": torch.jit.script(torch.nn.Linear(2, 2))}])
    whole = buffer.getvalue()
    dice = random.Random(0)
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(dice.randint(1, 4)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        data = data[: dice.randrange(len(data))] if dice.random() < 0.2 else data
        try:
            importer = PackageImporter(io.BytesIO(bytes(data)))
            importer.import_module("m")
            importer.load_pickle("p", "o")
        except (RuntimeError, UnpicklingError, ImportError):
            continue
