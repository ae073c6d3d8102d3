"""Dumped programs of the device: a file runs alone, gives the graph's results, and times itself."""

import importlib.util
import os
import re
import subprocess
import sys

import pytest

import rushlight as torch

F = torch.nn.functional


def loaded(path):
    spec = importlib.util.spec_from_file_location("dumped_module", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def dumped(folder, function, *inputs, **options):
    """The results of the compiled function, and the module that a dump of it holds."""
    with torch.no_grad():
        results = torch.compile(function, options={"dump": str(folder)}, **options)(*inputs)
    (path,) = folder.glob("*/*_module.py")
    return results, loaded(path), path


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_file_gives_the_graphs_results(tmp_path, dynamic):
    x, weight = torch.randn(4, 8, device="cuda"), torch.randn(8, 16, device="cuda")
    results, module, _ = dumped(tmp_path, lambda x, w: (torch.softmax(x @ w, -1), F.gelu(x @ w).t()[1:]), x, weight, dynamic=dynamic)
    for ours, wanted in zip(module.module([x, weight]), results, strict=True):
        assert ours.is_cuda and ours.stride() == wanted.stride() and torch.equal(ours.cpu(), wanted.cpu())
    with pytest.raises(RuntimeError, match="takes 2 tensors, got 1"):
        module.module([x])
    with pytest.raises(RuntimeError, match=r"must be a float32 tensor on cuda:0 of size \[4, 8\]"):
        module.module([x.cpu(), weight])


def test_a_file_times_itself(tmp_path, capfd):
    _, module, path = dumped(tmp_path, lambda x: x.sum(-1), torch.randn(2, 8, device="cuda"))
    seconds = module.benchmark_compiled_module(times=2, repeat=3)
    assert seconds > 0 and capfd.readouterr().out == f"{seconds * 1e6:.1f} us a call\n"
    environment = dict(os.environ)
    if os.environ.get("TRITON_INTERPRET") == "1":
        environment["RUSHLIGHT_CUDA_DRIVER"] = "interpreter"
    run = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True, env=environment)
    assert re.fullmatch(r"\d+\.\d us a call\n", run.stdout)
