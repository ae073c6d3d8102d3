"""What becomes of modules: patterns, errors that list reasons, mocks, hooks, the graph of dependencies."""

from __future__ import annotations

import io
import sys

import pytest

import rushlight as torch
from rushlight.package import EmptyMatchError, PackageExporter, PackagingError
from rushlight.package.analyze import find_first_use_of_broken_modules, trace_dependencies
from rushlight.package.find_file_dependencies import find_files_source_depends_on
from rushlight.package.glob_group import GlobGroup
from rushlight.package.package_exporter import PackagingErrorReason


@pytest.mark.parametrize(("include", "exclude", "matching", "others"), [
    ("torch.**", (), ["torch", "torch.a", "torch.a.b"], ["torchvision"]),
    ("torch.*", (), ["torch.a"], ["torch", "torch.a.b"]),
    ("**", "a.**", ["b"], ["a", "a.b"]),
    ("a.**.c", (), ["a.c", "a.b.c", "a.b.d.c"], ["a"]),
    ("a.b*c", (), ["a.bc", "a.bxc"], ["a.b.c"]),
    (["a", "f*"], ["foo"], ["a", "f", "fo"], ["foo", "b.a"]),
    ("a?b", (), ["a?b"], ["axb"]),
])  # fmt: skip
def test_globs(include, exclude, matching, others):
    group = GlobGroup(include, exclude=exclude)
    assert all(map(group.matches, matching)) and not any(map(group.matches, others))


def test_globs_of_paths_and_errors():
    assert GlobGroup("**/*.py", separator="/").matches("a/b.py")
    assert repr(GlobGroup(["a"], exclude="c")) == "GlobGroup(include=['a'], exclude=c)"
    with pytest.raises(ValueError, match="entire path segment"):
        GlobGroup("a**")


def test_imports_found_in_a_source():
    source = """
import a.b, c as d
from e import f as g, h
from . import x
from ..q import *
def k():
    try:
        import inner
    except ImportError:
        __import__("lit", globals(), locals(), ["aa"], 1)
__import__("plain")
__import__(name)
"""
    assert find_files_source_depends_on(source, "p.q") == [
        ("a.b", None), ("c", None), ("e", "f"), ("e", "h"), ("p.q", "x"), ("p.q", None), ("inner", None), ("p.q.lit", "aa"),
        ("plain", None),
    ]  # fmt: skip
    with pytest.raises(ImportError):
        find_files_source_depends_on("from ... import x", "p.q")


def test_modules_without_an_action_are_listed(sample, build):
    def fill(exporter):
        exporter.deny("sample.inner.**")
        exporter.save_source_string("m", "import sample.inner.deep, sample.uses_numpy, sys, not_there\n")

    with pytest.raises(PackagingError) as caught:
        build(fill)
    text = str(caught.value)
    assert f"* {PackagingErrorReason.DENIED.value}\n    sample.inner.deep\n" in text
    assert f"* {PackagingErrorReason.NO_ACTION.value}\n    sample.uses_numpy\n    sys\n" in text
    assert "not_there" not in text and "Set debug=True" in text
    assert find_first_use_of_broken_modules(caught.value)["sample.inner.deep"] == ["m", "sample.inner.deep"]
    with pytest.raises(PackagingError, match="A path to sys: m -> sys"):
        build(fill, debug=True)


def test_modules_without_source(sample, build):
    def fill(exporter):
        exporter.intern(["sys", "numpy.**"])
        exporter.save_source_string("m", "import sys\nimport numpy._core._multiarray_umath\ndef (:", dependencies=False)
        exporter.save_source_string("n", "def (:")
        exporter.add_dependency("sys")
        exporter.add_dependency("numpy._core._multiarray_umath")

    with pytest.raises(PackagingError) as caught:
        build(fill)
    errors = {name: known.get("error") for name, known in caught.value.dependency_graph.nodes.items()}
    assert errors["sys"] is PackagingErrorReason.NO_DUNDER_FILE
    assert errors["numpy._core._multiarray_umath"] is PackagingErrorReason.IS_EXTENSION_MODULE
    assert errors["n"] is PackagingErrorReason.DEPENDENCY_RESOLUTION_FAILED and errors["m"] is None


def test_a_pattern_that_has_to_match(build):
    with pytest.raises(EmptyMatchError, match=r"GlobGroup\(include=zzz, exclude=\(\)\), which was marked as allow_empty=False"):
        build(lambda exporter: exporter.intern("zzz", allow_empty=False))


def test_the_first_pattern_that_matches_holds(sample, build):
    def fill(exporter):
        exporter.mock("sample.inner.**")
        exporter.intern("sample.**")
        exporter.save_source_string("m", "import sample.inner.deep, sample.typed")
        assert exporter.mocked_modules() == ["sample.inner.deep"] and exporter.interned_modules() == ["m", "sample.typed"]
        assert exporter.externed_modules() == ["__future__", "dataclasses"] and exporter.denied_modules() == []

    build(fill)


def test_mocks_can_be_imported_and_not_used(sample, pack):
    def fill(exporter):
        exporter.mock("numpy")
        exporter.intern("sample.**")
        exporter.save_module("sample.uses_numpy")

    importer = pack(fill)
    module = importer.import_module("sample.uses_numpy")
    assert repr(module.np.zeros) == f"MockedObject({importer.id()}.numpy.zeros)"
    message = f"Object '{importer.id()}.numpy.zeros' was mocked out during packaging but it is being used in "
    for use, name in ((module.zeros, "__call__"), (lambda: module.np.zeros.x, "__getattr__"), (lambda: len(module.np.zeros), "__len__"),
                      (lambda: 1 + module.np.zeros, "__radd__"), (lambda: bool(module.np.zeros), "__bool__")):  # fmt: skip
        with pytest.raises(NotImplementedError) as caught:
            use()
        assert str(caught.value) == message + name
    again = pack(lambda exporter: (exporter.mock("numpy"), exporter.intern("**"), exporter.save_module("sample.uses_numpy")),
                 importer=[importer])  # fmt: skip
    with pytest.raises(NotImplementedError):
        again.import_module("sample.uses_numpy").zeros()


def test_an_object_of_a_mocked_module_is_refused(sample, build):
    from sample.layers import Scale

    def fill(exporter):
        exporter.mock("sample.**")
        exporter.save_pickle("p", "o.pkl", Scale())

    with pytest.raises(PackagingError, match=r"Object\(s\) '\['Scale'\]' from module `sample.layers` was mocked out"):
        build(fill)


def test_hooks_run_when_the_package_is_closed(sample, build):
    seen = []

    def fill(exporter):
        handles = [register(lambda each, name, kind=kind: seen.append((kind, name))) for kind, register in (
            ("extern", exporter.register_extern_hook), ("mock", exporter.register_mock_hook),
            ("intern", exporter.register_intern_hook), ("removed", exporter.register_intern_hook))]  # fmt: skip
        exporter.extern("numpy")
        exporter.mock("sample.inner.**")
        exporter.intern("sample.**")
        exporter.save_source_string("m", "import numpy, sample.inner.deep, sample.typed, math")
        assert not seen
        handles[-1].remove()

    build(fill)
    assert seen == [("intern", "m"), ("extern", "numpy"), ("mock", "sample.inner.deep"), ("intern", "sample.typed"),
                    ("extern", "__future__"), ("extern", "dataclasses"), ("extern", "math")]  # fmt: skip


def test_the_graph(sample):
    exporter = PackageExporter(io.BytesIO())
    exporter.intern("sample.**")
    exporter.save_source_string("m", "import sample.layers")
    assert exporter.get_rdeps("sample.inner.deep") == ["sample.layers"] and exporter.get_rdeps("nothing") == []
    assert exporter.all_paths("m", "sample.inner.deep") == (
        "digraph G {\nrankdir = LR;\nnode [shape=box];\n"
        '"m" -> "sample.layers";\n"sample.layers" -> "sample.inner.deep";\n}\n'
    )  # fmt: skip
    assert '"sample.layers" -> "rushlight";' in exporter.dependency_graph_string()
    with pytest.raises(ValueError, match="The node nothing is not in the digraph"):
        exporter.all_paths("m", "nothing")
    exporter.close()
    exporter.close()


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda e: e.save_module(3), TypeError, "did you perhaps mean to pass `__name__`"),
    (lambda e: e.save_module("no_such_module"), ModuleNotFoundError, "no_such_module"),
    (lambda e: e.save_text("a", "../b", "x"), ValueError, "must be only a file name"),
    (lambda e: e.save_text("../a", "b", "x"), ValueError, "not the name of a module or package"),
    (lambda e: e.save_text(".data", "b", "x"), ValueError, "not the name of a module or package"),
    (lambda e: e.save_text("a", "b", b"x"), TypeError, "save_binary takes bytes"),
    (lambda e: (e.save_text("a", "b", "x"), e.save_text("a", "b", "x")), ValueError, "already exists"),
    (lambda e: e.save_pickle("a", "b", lambda: 1), torch.serialization.PicklingError, "was not found as"),
    (lambda e: PackageExporter(3), TypeError, "expected a path or a binary file"),
    (lambda e: PackageExporter(io.BytesIO(), importer=[sys]), TypeError, "takes importers"),
])  # fmt: skip
def test_wrong_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call(PackageExporter(io.BytesIO()))


def test_other_protocols_are_warned_of(pack):
    with pytest.warns(UserWarning, match="pickle_protocol=4 changes nothing"):
        assert pack(lambda exporter: exporter.save_pickle("a", "b", [1], pickle_protocol=4)).load_pickle("a", "b") == [1]


def test_modules_whose_code_a_call_runs(sample):
    from sample import inner, layers

    names = trace_dependencies(lambda kind: kind()(torch.ones(2)), [(layers.Scale,)])
    assert "sample.layers" in names and "rushlight.nn.modules.linear" in names
    assert "sample.inner" not in names and inner.__name__ == "sample.inner"
