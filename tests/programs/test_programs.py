"""Whole programs, written once for torch's public interface, run with PyTorch and with Rushlight: the results are the same.

Each program is a public function of one of the modules below. It takes the library, starts from the same seed with both (so the
random numbers are the same too), and returns what it found: losses, parameters, gradients, outputs, texts.
"""

import inspect

import numpy
import pytest

import rushlight
from tests.programs import classical, features, generative, language, learning, printing, vision

MODULES = (vision, language, generative, learning, classical, features, printing)
PROGRAMS = {
    name: function
    for module in MODULES
    for name, function in inspect.getmembers(module, inspect.isfunction)
    if function.__module__ == module.__name__ and not name.startswith("_")
}


def run(program, library, folder):
    """The results of a program with a library, which may write files to `folder`."""
    library.manual_seed(1234)
    arguments = (library, folder) if len(inspect.signature(program).parameters) == 2 else (library,)
    return program(*arguments)


def plain(value):
    """A tensor as its dtype and array; anything else as it is."""
    if not hasattr(value, "detach"):
        return None, value
    value = value.detach()
    if str(value.layout).endswith("sparse_coo"):
        value = value.to_dense()
    name = str(value.dtype).rpartition(".")[2]
    return name, (value.float() if name in ("bfloat16", "float16") else value.resolve_conj()).numpy()


def check(path, actual, expected):
    """The same structure with the same numbers: 1e-3 apart at most, relative to the largest; 1e-7 in double precision."""
    if isinstance(expected, dict):
        assert list(actual) == list(expected), path
        for key in expected:
            check(f"{path}.{key}", actual[key], expected[key])
        return
    if isinstance(expected, (list, tuple)):
        assert len(actual) == len(expected), path
        for index, (one, other) in enumerate(zip(actual, expected, strict=True)):
            check(f"{path}[{index}]", one, other)
        return
    (name, one), (expected_name, other) = plain(actual), plain(expected)
    assert name == expected_name, f"{path}: dtype {name} instead of {expected_name}"
    if isinstance(other, (float, complex, numpy.ndarray)):
        assert numpy.shape(one) == numpy.shape(other), f"{path}: {numpy.shape(one)} instead of {numpy.shape(other)}"
        finite = numpy.abs(other[numpy.isfinite(other)]) if numpy.ndim(other) else numpy.abs(other)
        relative = {"float64": 1e-7, "complex128": 1e-7, "bfloat16": 2e-2}.get(name, 1e-3)
        absolute = relative * max(1e-3, float(numpy.max(finite, initial=0.0)))
        numpy.testing.assert_allclose(one, other, rtol=relative, atol=absolute, err_msg=path)
    else:
        assert one == other, path


@pytest.mark.oracle
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, tmp_path):
    torch = pytest.importorskip("torch")
    (tmp_path / "expected").mkdir()
    (tmp_path / "actual").mkdir()
    expected = run(PROGRAMS[name], torch, tmp_path / "expected")
    check(name, run(PROGRAMS[name], rushlight, tmp_path / "actual"), expected)
