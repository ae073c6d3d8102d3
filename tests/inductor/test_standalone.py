"""A compiled graph as a file: it runs alone, gives the graph's results, and times itself."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys

import pytest

import rushlight as torch


def dumped(folder, function, *inputs, **options):
    """The results of the compiled function, and the module that a dump of it holds."""
    compiled = torch.compile(function, options={"dump": str(folder)}, **options)
    with torch.no_grad():
        results = compiled(*inputs)
    (path,) = folder.glob("*/*_module.py")
    spec = importlib.util.spec_from_file_location("dumped_module", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return results, module, path


def attend(x, w):
    return torch.softmax(x @ w, -1), (x @ w).t()[1:]


@pytest.mark.parametrize("dynamic", [False, True])
def test_call_gives_the_graphs_results(tmp_path, dynamic):
    x, w = torch.randn(4, 8), torch.randn(8, 16)
    results, module, _ = dumped(tmp_path, attend, x, w, dynamic=dynamic)
    for got, expected in zip(module.call([x, w]), results, strict=True):
        assert got.stride() == expected.stride() and bool((got == expected).all())


def test_parameters_are_arguments_and_are_packed(tmp_path):
    model, x = torch.nn.Linear(8, 24), torch.randn(3, 8)
    result, module, _ = dumped(tmp_path, model, x)
    by_shape = {tuple(tensor.shape): tensor for tensor in (x, model.weight.detach(), model.bias.detach())}
    (got,) = module.call([by_shape[argument.size] for argument in module.module.arguments])
    assert bool((got == result).all())


def test_other_tensors_and_indices_out_of_range_are_refused(tmp_path):
    table, index = torch.randn(5, 3), torch.tensor([1, 4])
    _, module, _ = dumped(tmp_path, lambda table, index: table[index] * 2, table, index)
    with pytest.raises(RuntimeError, match=r"takes 2 tensors, got 1"):
        module.call([table])
    arguments = [table if argument.size == (5, 3) else index for argument in module.module.arguments]
    module.call(arguments)
    with pytest.raises(RuntimeError, match=r"must be a float32 CPU tensor of size \[5, 3\] and stride \[3, 1\]"):
        module.call([table.double() if value is table else value for value in arguments])
    with pytest.raises(RuntimeError, match="index is out of range"):
        module.call([index + 10 if value is index else value for value in arguments])


def test_the_file_times_itself(tmp_path, capfd):
    _, module, path = dumped(tmp_path, attend, torch.randn(4, 8), torch.randn(8, 16))
    seconds = module.benchmark_compiled_module(times=2, repeat=3)
    assert 0 < seconds < 10
    assert capfd.readouterr().out == f"{seconds * 1e6:.1f} us a call\n"
    run = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True)
    assert re.fullmatch(r"\d+\.\d us a call\n", run.stdout)


def test_source_that_python_cannot_quote(tmp_path):
    def quoted(x):
        return x + len("'''")  # the line is a comment of the C++ text

    result, module, _ = dumped(tmp_path, quoted, torch.ones(3))
    assert bool((module.call([torch.ones(3)])[0] == result).all())
