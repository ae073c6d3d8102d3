"""`torch.compiler.profile`: which kernels are listed, how often, with which bytes, operations and lines."""

from __future__ import annotations

import gc
import threading

import pytest

import rushlight as torch

F = torch.nn.functional


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.no_grad():
        yield


def test_kernels_of_a_product_and_a_softmax():
    x, w = torch.randn(64, 32), torch.randn(32, 48)
    compiled = torch.compile(lambda x, w: (x @ w).relu().softmax(-1))
    expected = compiled(x, w)
    with torch.compiler.profile() as p:
        for _ in range(3):
            got = compiled(x, w)
    assert bool((got == expected).all())
    by_operator = {kernel.operators[0]: kernel for kernel in p.kernels}
    product, softmax = by_operator["mm"], by_operator["_softmax"]
    assert product.calls == softmax.calls == 3
    assert product.bytes == 3 * 4 * (64 * 32 + 32 * 48 + 64 * 48)
    assert product.flops == 3 * (2 * 64 * 32 * 48 + 64 * 48)
    assert softmax.bytes == 3 * 4 * 2 * 64 * 48
    assert all(kernel.seconds > 0 and kernel.share > 0 for kernel in p.kernels)
    assert all("test_profile.py" in kernel.lines[0] for kernel in p.kernels)
    assert p.kernels[0].seconds >= p.kernels[-1].seconds
    table = str(p).splitlines()
    assert table[0].split()[:4] == ["kernel", "calls", "time", "ms"]
    assert len(table) == len(p.kernels) + 2
    assert any("mm" in line and "test_profile.py" in line for line in table)


def test_calls_outside_of_the_block_are_not_counted():
    compiled, x = torch.compile(lambda x: x.sin() + 1), torch.ones(5)
    compiled(x)
    with torch.compiler.profile() as p:
        compiled(x)
    compiled(x)
    assert [kernel.calls for kernel in p.kernels] == [1]
    with torch.compiler.profile() as again:
        pass
    assert again.kernels == []


def test_graphs_made_in_the_block_and_open_sizes():
    with torch.compiler.profile() as p:
        compiled = torch.compile(lambda x: x * 2, dynamic=True)
        compiled(torch.ones(6, 10))
        compiled(torch.ones(6, 20))
    (kernel,) = p.kernels
    assert kernel.calls == 2 and kernel.bytes == 4 * 2 * 6 * 30 and kernel.flops == 6 * 30


def test_two_graphs_of_one_text_share_their_kernels():
    x = torch.ones(7)
    functions = [torch.compile(lambda x: x - 3, dynamic=False) for _ in range(2)]
    with torch.compiler.profile() as p:
        for function in functions:
            function(x)
    assert [kernel.calls for kernel in p.kernels] == [2]


def test_packed_weights_and_training():
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 4))
    compiled, x = torch.compile(model), torch.randn(8, 16)
    with torch.enable_grad(), torch.compiler.profile() as p:
        compiled(x).sum().backward()
        with torch.no_grad():
            wanted = model(x)
            torch.testing.assert_close(compiled(x), wanted)
    assert {"addmm", "addmm_1"} <= {kernel.operators[0] for kernel in p.kernels}
    assert model[0].weight.grad is not None


def test_blocks_are_not_nested():
    with torch.compiler.profile():
        with pytest.raises(RuntimeError, match="measured already"), torch.compiler.profile():
            pass
        compiled = torch.compile(lambda x: x + 4)
        compiled(torch.ones(3))
    with torch.compiler.profile():
        pass


def test_calls_from_several_threads_are_all_counted():
    compiled, x = torch.compile(lambda x: x.cos() * 5), torch.ones(1000)
    compiled(x)
    with torch.compiler.profile() as p:
        threads = [threading.Thread(target=lambda: [compiled(x) for _ in range(50)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sum(kernel.calls for kernel in p.kernels) == 200


def test_forgotten_graphs_are_let_go():
    compiled = torch.compile(lambda x: x.tan() - 6)
    compiled(torch.ones(3))
    del compiled
    gc.collect()
    with torch.compiler.profile() as p:
        pass
    assert p.kernels == []


def test_without_a_compiler_the_graph_runs_and_is_not_measured(monkeypatch, tmp_path):
    compiled, x = torch.compile(lambda x: x.sinh() - 7), torch.ones(3)
    expected = compiled(x)
    broken = tmp_path / "cxx"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CXX", str(broken))
    with torch.compiler.profile() as p, pytest.warns(UserWarning, match="profile: a graph is not measured, because"):
        assert bool((compiled(x) == expected).all())
    assert p.kernels == []


@torch.jit.script
def halve_until_small(x: torch.Tensor) -> torch.Tensor:
    while bool(x.sum() > 1.0):
        x = (x * 0.5).abs()
    return x + 1


@torch.jit.script
def count_down(n: int) -> int:
    total = 0
    while n > 0:
        total += n
        n -= 2
    return total


def test_kernels_in_loops_of_scripted_code(monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_JIT_NATIVE_AFTER", "0")
    x = torch.ones(8)  # halved three times
    for _ in range(3):
        expected = halve_until_small(x)
    with torch.compiler.profile() as p:
        results = [halve_until_small(x) for _ in range(2)]
    assert all(bool((result == expected).all()) for result in results)
    calls = sorted((kernel.operators[0], kernel.calls) for kernel in p.kernels if kernel.operators[0] != "gt")
    assert calls == [("add", 2), ("mul", 2 * 3), ("sum_1", 2), ("sum_1", 2 * 3)]  # one sum is before the loop
    (halving,) = [kernel for kernel in p.kernels if kernel.operators[0] == "mul"]
    assert halving.bytes == 2 * 3 * 2 * 4 * 8
    assert all("test_profile.py" in kernel.lines[0] and kernel.seconds > 0 for kernel in p.kernels)


def test_scripted_code_without_tensors_has_no_kernels(monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_JIT_NATIVE_AFTER", "0")
    for _ in range(3):
        count_down(7)
    with torch.compiler.profile() as p:
        assert count_down(9) == 9 + 7 + 5 + 3 + 1
    assert p.kernels == []
