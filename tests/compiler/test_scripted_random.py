"""Random scripted programs: native code does what the interpreter does."""

from __future__ import annotations

import copy
import importlib.util

import pytest

import rushlight as torch
from rushlight.compiler.scripted.native import compile_native
from rushlight.jit.runtime.executor import executor_of
from tests.compiler.random_scripts import Writer
from tests.compiler.test_scripted import assert_same
from tests.fuzz_scripted import finding, native_after

HEAD = "from typing import List, Tuple\n\nimport rushlight as torch\nfrom rushlight import Tensor\n\n\n"


def load(folder, seed, tensors):
    """The program of a seed, scripted."""
    path = folder / f"program_{seed}_{int(tensors)}.py"
    path.write_text(HEAD + Writer(seed, tensors).text())
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return torch.jit.script(module.program)._function


def check(folder, seed, tensors):
    """Compare the two on some arguments; how many native runs there were."""
    function = load(folder, seed, tensors)
    executor = executor_of(function)
    compared = 0
    native = None
    for a, b, u in ((1, 2, 0.5), (-5, 9, -3.25), (2**62, -3, 100.0), (0, 0, 0.0)):
        arguments = [a, b, u, [3, -1, 4]] + ([torch.tensor([0.25, -1.0, 2.0])] if tensors else [])

        def copied(arguments=arguments):
            return [copy.deepcopy(value) for value in arguments]

        native = native or compile_native(executor.plan().graph, copied(), f"program_{seed}")
        if native is None:
            return 0
        given, others = copied(), copied()
        results = native(given)
        try:
            expected = executor._interpret(others)
        except Exception:  # an error of the program's own: native code must have left it to the interpreter
            assert results is None
            continue
        if results is not None:
            assert_same(results[0], expected[0])
            assert_same(given[4:], others[4:])
            compared += 1
    return compared


@pytest.mark.parametrize("seed", range(8))
def test_numbers(tmp_path, seed):
    check(tmp_path, seed, False)


@pytest.mark.parametrize("seed", range(100, 104))
def test_tensors(tmp_path, seed):
    check(tmp_path, seed, True)


def test_most_programs_have_native_forms(tmp_path):
    assert sum(check(tmp_path, seed, False) > 0 for seed in range(8, 14)) >= 3


@pytest.mark.parametrize("seed", range(12))
def test_other_sizes_and_values_on_every_call(seed):
    with torch.no_grad(), native_after("0"):
        assert finding(seed) is None
