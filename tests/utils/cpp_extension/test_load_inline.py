"""Extensions in C++: arguments and results of every kind, errors, tensors, operators, the cache."""

from __future__ import annotations

import colorsys
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import rushlight as torch
from rushlight.utils import cpp_extension
from rushlight.utils.native import cache
from tests.utils.cpp_extension import sources


@pytest.fixture(scope="module")
def arguments():
    return cpp_extension.load_inline("rl_arguments", sources.ARGUMENTS)


@pytest.fixture(scope="module")
def tensors():
    names = ["sum_elements", "sum_floats", "doubled", "described", "size_of", "wrong_pointer", "made", "operated"]
    return cpp_extension.load_inline("rl_tensors", sources.TENSORS, functions=names)


X = torch.ones(2, 2)


@pytest.mark.parametrize("name, given, expected", [
    ("integer", 41, 42), ("integer", True, 2), ("integer", np.int32(3), 4), ("small", -128, -128), ("counted", 2**32 - 1, 2**32 - 1),
    ("number", 3, 1.5), ("number", np.float32(3), 1.5), ("narrow", 0.5, 0.5), ("truth", True, False), ("truth", np.bool_(False), True),
    ("text", "héllo", "héllo!"), ("viewed", "ab", "ab"), ("characters", "ab", "ab"), ("reversed", [1, 2, 3], [3, 2, 1]),
    ("reversed", (), []), ("flags", [True, False], [True, False]), ("total", (1, 2, 3), 6), ("half", None, None), ("half", 3, 1.5),
    ("swapped", (1, 2), (2, 1)), ("doubled", {"a": 1, "b": 2.5}, {"a": 2.0, "b": 5.0}), ("scalar", 3, 3), ("scalar", 2.5, 2.5),
    ("scalar", True, True), ("kind", torch.int64, torch.int64), ("optional_total", [1, 2], 3), ("optional_total", None, -1),
    ("defined", None, False), ("defined", X, True), ("maybe", None, None), ("added", 1, 6),
])  # fmt: skip
def test_arguments_and_results(arguments, name, given, expected):
    got = getattr(arguments, name)(given)
    assert got == expected and type(got) is type(expected)


def test_tensors_are_the_same_objects(arguments):
    assert arguments.tensor(X) is X and arguments.maybe(X) is X
    assert all(a is X for a in arguments.several([X, X]))
    number, text, tensor = arguments.three((1, "b", X))
    assert (number, text) == (1, "b") and tensor is X
    assert arguments.nothing() is None and arguments.answer == 42


@pytest.mark.parametrize("name, given, message", [
    ("integer", 1.5, r"integer\(\): argument \(position 1\) must be int, not float"), ("integer", "1", "must be int, not str"),
    ("integer", None, "must be int, not NoneType"), ("integer", X, "must be int, not Tensor"), ("number", "1", "must be float, not str"),
    ("number", X, "must be float, not Tensor"), ("number", 1j, "must be float, not complex"), ("truth", 1, "must be bool, not int"),
    ("text", 1, "must be str, not int"), ("reversed", 1, "must be list of int, not int"), ("reversed", [1, "2"], "must be list of int"),
    ("several", [X, 1], "must be list of Tensor"), ("three", (1, 2), "must be tuple of"), ("tensor", 1, "must be Tensor, not int"),
    ("tensor", [1.0], "must be Tensor, not list"), ("kind", "int64", "must be torch.dtype, not str"),
    ("doubled", [1], "must be dict of str to float, not list"), ("doubled", {1: 1}, "must be dict"),
    ("half", "x", "must be float or None, not str"),
])  # fmt: skip
def test_wrong_types(arguments, name, given, message):
    with pytest.raises(TypeError, match=message):
        getattr(arguments, name)(given)


@pytest.mark.parametrize("name, given", [
    ("integer", 2**63), ("small", 128), ("counted", -1), ("counted", 2**32), ("reversed", [2**70]),
])  # fmt: skip
def test_integers_that_do_not_fit(arguments, name, given):
    with pytest.raises(OverflowError):
        getattr(arguments, name)(given)


def test_names_and_defaults(arguments):
    named = arguments.named
    assert named(1) == 123 and named(1, 5) == 153 and named(1, c=7) == 127 and named(b=0, a=2) == 203
    assert named.__doc__ == "What named does." and named.__name__ == "named"
    for args, kwargs, message in [
        ((), {}, "missing required argument 'a'"), ((1,), {"a": 2}, "multiple values for argument 'a'"),
        ((1,), {"d": 2}, "unexpected keyword argument 'd'"), ((1, 2, 3, 4), {}, "takes 3 positional arguments but 4 were given"),
        ((1,), {"c": "x"}, r"argument 'c' \(position 3\) must be float, not str"),
    ]:  # fmt: skip
        with pytest.raises(TypeError, match=message):
            named(*args, **kwargs)
    with pytest.raises(TypeError, match="unexpected keyword argument 'x'"):
        arguments.integer(x=1)


@pytest.mark.parametrize("name, given, kind, message", [
    ("check", (False,), RuntimeError, "wrong: 1 2.5 Float"), ("plain_check", (False,), RuntimeError, "Expected right to be true"),
    ("value_check", (), ValueError, "a value"), ("throw_range", (), IndexError, ""), ("throw_invalid", (), ValueError, "no"),
    ("throw_other", (), RuntimeError, "unknown type"), ("throw_memory", (), MemoryError, ""), ("huge", (), Exception, ""),
    ("python_error", (torch.ones(2),), RuntimeError, "2D|matrices|mat"),
])  # fmt: skip
def test_exceptions(arguments, name, given, kind, message):
    with pytest.raises(kind, match=message):
        getattr(arguments, name)(*given)


def test_exceptions_caught_in_c(arguments):
    assert arguments.caught(torch.ones(2)) > 5 and arguments.caught(X) == 0
    arguments.check(True)
    with pytest.warns(UserWarning, match="careful: 3"):
        arguments.warned()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="careful: 3"):
            arguments.warned()


def test_operators_without_the_interpreter_lock_and_from_other_threads(arguments):
    assert arguments.elsewhere(X) == 4
    results = []
    threads = [threading.Thread(target=lambda: results.extend(arguments.elsewhere(X) for _ in range(50))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == [4] * 200


# ---- tensors


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8,
                                  torch.float16, torch.bfloat16])  # fmt: skip
def test_elements_by_accessor(tensors, kind):
    x = torch.arange(12).reshape(3, 4).to(kind)
    for view in (x, x.t(), x[1:, ::2]):
        assert tensors.sum_elements(view) == view.sum().item()


@pytest.mark.parametrize("values", [[0.0, -0.0, 1.5, 65504.0, 6e-8, 6.1e-5, -3.25]])
def test_half_precision_widens_exactly(tensors, values):
    for kind in (torch.float16, torch.bfloat16):
        for value in values:
            x = torch.tensor([[value]]).to(kind)
            assert tensors.sum_elements(x) == x.to(torch.float64).item()


def test_accessor_checks(tensors):
    assert tensors.sum_floats(torch.ones(2, 3)) == 6
    for x, message in [
        (torch.ones(3), "TensorAccessor expected 2 dims but tensor has 1"),
        (torch.ones(2, 3, dtype=torch.float64), "expected scalar type Float but found Double"),
        (torch.ones(2, 3, device="meta"), "no memory"), (None, "Expected a proper Tensor but got None"),
    ]:  # fmt: skip
        with pytest.raises(RuntimeError, match=message):
            tensors.sum_floats(x)
    with pytest.raises(RuntimeError, match="expected scalar type Double but found Float"):
        tensors.wrong_pointer(torch.ones(1))
    with pytest.raises(NotImplementedError, match="\"sum_elements\" not implemented for 'Bool'"):
        tensors.sum_elements(torch.ones(2, 2, dtype=torch.bool))


def test_properties(tensors):
    assert tensors.described(torch.ones(2, 3)) == "2 6 3 contiguous Float cpu"
    x = torch.ones(3, 2, dtype=torch.float64, requires_grad=True)
    assert tensors.described(x.t()) == "2 6 3 strided Double grad cpu"
    assert tensors.described(torch.ones(2, device="meta")) == "1 2 2 contiguous Float meta"
    assert tensors.size_of(x, -2) == 3
    for dim in (2, -3):
        with pytest.raises(IndexError, match=r"expected to be in range of \[-2, 1\]"):
            tensors.size_of(x, dim)


def test_parallel_loops(tensors):
    for x in (torch.randn(100_000), torch.randn(7, 3).t(), torch.randn(0), torch.randn(5, dtype=torch.float64)):
        assert torch.equal(tensors.doubled(x), x * 2)
    with pytest.raises(NotImplementedError, match="\"doubled\" not implemented for 'Long'"):
        tensors.doubled(torch.arange(3))


def test_new_tensors(tensors):
    got = tensors.made()
    expected = [
        torch.zeros(2, 3), torch.ones(2, dtype=torch.int64), torch.full((2,), 1.5, dtype=torch.float64), torch.arange(3),
        torch.tensor([1.0, 2.0]), torch.tensor(7), torch.tensor([[1.0, 2, 3], [4, 5, 6]]), torch.eye(2, dtype=torch.float64),
        torch.empty(0, 4), torch.zeros(2, dtype=torch.bool),
        torch.zeros(2, 3, 4, 5, 6, dtype=torch.float64).to(memory_format=torch.channels_last_3d),
    ]  # fmt: skip
    for a, b in zip(got, expected, strict=True):
        assert a.dtype is b.dtype and a.stride() == b.stride() and torch.equal(a, b)


def test_operators_called_from_c(tensors):
    x, y = torch.randn(2, 3), torch.randn(2, 3)
    largest, where = x.max(1)
    expected = [
        x + y, 2 - x, x * 2.5, x / y, -x, x > y, (x == y) | (x < 1), largest, where, (x + 1) * y - 2, torch.stack([x, y]),
        x.sum(), x.mean(), x.view(-1), x.t(), x[1:2], x[0], x[:, 1], x[..., 0::2], torch.softmax(x, 1), x.double(),
        x.masked_fill(x > 0, 9), torch.where(x > y, x, y), x.sum(0, True), x.expand(2, 2, 3), x.max(), torch.relu(x),
    ]  # fmt: skip
    for number, (a, b) in enumerate(zip(tensors.operated(x, y), expected, strict=True)):
        assert a.shape == b.shape and a.dtype is b.dtype and torch.equal(a, b), number


def test_gradients_pass_through_operators(tensors):
    x = torch.randn(2, 3, requires_grad=True)
    tensors.operated(x, torch.randn(2, 3))[2].sum().backward()
    assert torch.equal(x.grad, torch.full((2, 3), 2.5))


# ---- operators


def test_assigning_to_parts_of_tensors():
    """What stands on the left without a name is written to; a name becomes another tensor."""
    module = cpp_extension.load_inline("rl_assigned", """
torch::Tensor fill_parts(torch::Tensor x, torch::Tensor row) {
  x[0] = row;
  x[1] = row + 1;
  x[2][0] = 5.5;
  x[2][1] = 7;
  x.index({2, torch::indexing::Slice(2)}) = -1;
  auto other = x[2];
  other = row;
  std::tie(other, row) = std::make_tuple(row, other);
  return x;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.doc() = "parts";
  m.attr("shape") = std::vector<int64_t>{3, 4};
  m.def("fill_parts", &fill_parts);
}
""")
    x = torch.zeros(module.shape)
    assert module.__doc__ == "parts" and module.fill_parts(x, torch.arange(4.0)) is x
    assert x.tolist() == [[0, 1, 2, 3], [1, 2, 3, 4], [5.5, 7, -1, -1]]
    with pytest.raises(RuntimeError, match="must match the size"):
        module.fill_parts(x, torch.arange(3.0))


def test_operators():
    text = sources.OPERATORS.replace("NAMESPACE", "rl_inline_ops")
    path = cpp_extension.load_inline("rl_ops", text, is_python_module=False)
    assert isinstance(path, str)
    ops, x = torch.ops.rl_inline_ops, torch.arange(3.0)
    assert torch.equal(ops.scaled(x), 3 * x) and torch.equal(ops.scaled(x, 2, times=5), 10 * x)
    assert torch.equal(ops.scaled.default(x=x, factor=0.5), x / 2)
    assert torch.equal(ops.twice(x), 2 * x)
    assert [a.tolist() for a in ops.both(x)] == [[1, 2, 3], [-1, 0, 1]]
    y = torch.zeros(2)
    ops.fill_with(y, 4)
    assert y.tolist() == [4, 4] and y._version == 1
    with pytest.raises(RuntimeError, match="scaled expects float32, got Long"):
        ops.scaled(torch.arange(3))
    with pytest.raises((TypeError, RuntimeError)):
        ops.scaled(x, "2")


def test_operators_with_rules_from_python_are_captured_and_differentiated():
    text = sources.OPERATORS.replace("NAMESPACE", "rl_rule_ops")
    cpp_extension.load_inline("rl_rule_ops_module", text, is_python_module=False)
    library = torch.library.Library("rl_rule_ops", "IMPL")
    library.impl("scaled", lambda x, factor=3.0, *, times=1: torch.empty_like(x), "Meta")

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.factor = factor
            return torch.ops.rl_rule_ops.scaled(x, factor)

        @staticmethod
        def backward(ctx, grad):
            return torch.ops.rl_rule_ops.scaled(grad, ctx.factor), None

    x = torch.randn(3, requires_grad=True)
    Scaled.apply(x, 4.0).sum().backward()
    assert torch.equal(x.grad, torch.full((3,), 4.0))
    compiled = torch.compile(lambda x: torch.ops.rl_rule_ops.scaled(x + 1, 2.0) * 3)
    with torch.no_grad():
        assert torch.allclose(compiled(x), (x + 1) * 6)


@pytest.mark.parametrize("text, message", [
    ('TORCH_LIBRARY(rl_bad_ops, m) { m.def("f(Tensor x -> Tensor"); }', "f"),
    ('TORCH_LIBRARY_IMPL(rl_bad_ops, CPU, m) { m.impl("missing", [](at::Tensor x) { return x; }); }', "No such operator"),
    ('TORCH_LIBRARY_IMPL(rl_bad_ops, Abacus, m) { m.impl("missing", [](at::Tensor x) { return x; }); }', "."),
])  # fmt: skip
def test_operators_that_cannot_be_registered(text, message):
    for is_python_module in (False, True):
        more = "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}"
        with pytest.raises((RuntimeError, ValueError), match=message):
            cpp_extension.load_inline("rl_bad_ops", text + more, is_python_module=is_python_module)


# ---- building


def test_the_compilers_message_is_shown():
    with pytest.raises(cpp_extension.BuildError, match="twice.*not declared") as caught:
        cpp_extension.load_inline("rl_error", "int f(int x) { return twice(x); }", functions="f")
    assert ".cpp:2:" in str(caught.value) and "g++" in str(caught.value)


def test_undefined_symbols():
    with pytest.raises(ImportError, match="undefined symbol"):
        cpp_extension.load_inline("rl_undefined", "int g(int); int f(int x) { return g(x); }", functions=["f"])


@pytest.mark.parametrize("arguments, kind, message", [
    ({"name": "two words"}, ValueError, "identifier"), ({"name": "x; system(1)"}, ValueError, "identifier"),
    ({"cpp_sources": 7}, TypeError, "."), ({"cpp_sources": [7]}, TypeError, "must be a str"),
    ({"functions": ["f); evil("]}, ValueError, "must name C"), ({"cuda_sources": "x"}, RuntimeError, "CUDA"),
    ({"with_sycl": True}, RuntimeError, "SYCL"),
])  # fmt: skip
def test_bad_requests(arguments, kind, message):
    with pytest.raises(kind, match=message):
        cpp_extension.load_inline(**{"name": "rl_bad", "cpp_sources": "int f() { return 1; }", **arguments})


def test_functions_with_documentation_and_in_namespaces():
    text = "namespace a { namespace b { int f() { return 3; } } }"
    module = cpp_extension.load_inline("rl_docs", [text, "int g() { return 4; }"], functions={"a::b::f": 'say "hi"\n\\', "g": "g"})
    assert module.f() == 3 and module.g() == 4 and module.f.__doc__ == 'say "hi"\n\\'
    assert sys.modules["rl_docs"] is module


def test_flags_and_folders(tmp_path, capfd, monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_CACHE_DIR", str(tmp_path / "cache"))  # where it isn't yet, so that it is built
    module = cpp_extension.load_inline(
        "rl_flags", "int f() { return VALUE; }", functions="f", extra_cflags=["-DVALUE=5"], build_directory=str(tmp_path), verbose=True,
    )  # fmt: skip
    assert module.f() == 5 and (tmp_path / "main.cpp").exists() and (tmp_path / "rl_flags.so").exists()
    assert "-DVALUE=5" in capfd.readouterr().err


def test_built_once(monkeypatch):
    text = "int f() { return 11; }"
    assert cpp_extension.load_inline("rl_once", text, functions="f").f() == 11
    monkeypatch.setattr(cpp_extension.build.toolchain, "run", None)
    assert cpp_extension.load_inline("rl_once", text, functions="f").f() == 11


def test_files_are_built_again_when_a_header_changes(tmp_path):
    (tmp_path / "include").mkdir()
    header = tmp_path / "include" / "value.h"
    header.write_text("#define VALUE 1\n")
    (tmp_path / "one.cpp").write_text('#include <torch/extension.h>\n#include "value.h"\nint two();\nint f() { return VALUE + two(); }\n'
                                      'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }\n')  # fmt: skip
    (tmp_path / "two.cpp").write_text("#include <torch/extension.h>\nint two() { return 10; }\n")
    files = [str(tmp_path / "one.cpp"), tmp_path / "two.cpp"]
    arguments = {"name": "rl_files", "sources": files, "extra_include_paths": [str(tmp_path / "include")]}
    assert cpp_extension.load(**arguments).f() == 11 and cpp_extension.load(**arguments).f() == 11
    header.write_text("#define VALUE 2\n")
    assert cpp_extension.load(**arguments).f() == 12
    with pytest.raises(FileNotFoundError):
        cpp_extension.load("rl_files", str(tmp_path / "three.cpp"))


def test_files_are_built_where_nothing_can_be_kept(tmp_path, monkeypatch):
    (tmp_path / "answer.h").write_text("#pragma once\n#define ANSWER 42\n")
    source = tmp_path / "answer.cpp"
    source.write_text('#include <torch/extension.h>\n#include "answer.h"\nint answer() { return ANSWER; }\n'
                      'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("answer", &answer); }\n')  # fmt: skip
    folder, original = tmp_path / "cache", cache.tempfile.mkstemp

    def refuse(*args, dir=None, **kwargs):
        if dir is not None and Path(dir) == folder:
            raise OSError(28, "No space left on device")
        return original(*args, dir=dir, **kwargs)

    monkeypatch.setenv("RUSHLIGHT_CACHE_DIR", str(folder))
    monkeypatch.setattr(cache.tempfile, "mkstemp", refuse)
    monkeypatch.setattr(cache, "_refused", {})
    cache.warn_once.cache_clear()
    with pytest.warns(UserWarning, match="not kept, because .*No space left"):
        assert cpp_extension.load("answer_kept_nowhere", source).answer() == 42


def test_a_name_that_another_module_has():
    """It stays that module's."""
    made = cpp_extension.load_inline("colorsys", "int one() { return 1; }", functions="one")
    assert made.one() == 1 and sys.modules["colorsys"] is colorsys


def test_without_a_compiler(monkeypatch):
    monkeypatch.setenv("CXX", "/nonexistent/c++")
    with pytest.raises(cpp_extension.CompilerMissing, match="apt-get install"):
        cpp_extension.load_inline("rl_none", "int f() { return 1; }", functions="f")


def test_without_python_headers(monkeypatch, tmp_path):
    monkeypatch.setattr(cpp_extension.build.sysconfig, "get_paths", lambda: {"include": str(tmp_path)})
    with pytest.raises(cpp_extension.BuildError, match="Python's headers"):
        cpp_extension.load_inline("rl_none", "int f() { return 1; }", functions="f")


def test_at_exit_nothing_breaks():
    """Tensors that C++ holds when the interpreter ends."""
    program = f"""
from rushlight.utils import cpp_extension
import rushlight as torch
text = "static std::vector<torch::Tensor> kept; void keep(torch::Tensor x) {{ kept.push_back(x); }}"
cpp_extension.load_inline("rl_exit", text, functions="keep").keep(torch.ones(3))
assert {str(cache.default_folder())!r}
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
