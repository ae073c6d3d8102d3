"""Kept plans: graphs that are not lowered a second time, what tells graphs apart, and damaged files."""

from __future__ import annotations

import os

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.compiler.passes import PIPELINE
from rushlight.fx.proxy_tensor import capture
from rushlight.inductor import pieces, plan_cache
from rushlight.inductor.compile_fx import compile_fx
from rushlight.inductor.options import Options
from rushlight.utils.native import cache


@pytest.fixture
def folder(tmp_path, monkeypatch):
    chosen = tmp_path / "cache"
    monkeypatch.setenv("RUSHLIGHT_CACHE_DIR", str(chosen))
    return chosen


@pytest.fixture
def lowered(monkeypatch) -> list:
    """The graphs that are lowered from here on."""
    seen, lower = [], pieces.lower_graph

    def noted(module, *rest):
        seen.append(module)
        return lower(module, *rest)

    monkeypatch.setattr(pieces, "lower_graph", noted)
    return seen


def graph_of(function, *inputs):
    """The aten graph of a function."""
    with torch.no_grad():
        module = capture(function, inputs).module
    for graph_pass in PIPELINE:
        graph_pass(module)
    return module


def run(function, *inputs, stages=None, **options):
    """The results of the function's graph, compiled by inductor."""

    def observe(stage, text, *more):
        if stages is not None:
            stages[stage] = text()

    return compile_fx(graph_of(function, *inputs), Options(2, **options), observe)(*inputs)


def key(function, *inputs, threads=2):
    return plan_cache.key_of(graph_of(function, *inputs), Options(threads))


def test_a_second_compilation_lowers_nothing(folder, lowered):
    layers = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(128, 5)).eval()
    x = torch.randn(2, 3, 6, 6)
    first = run(layers, x)
    assert len(lowered) == 1
    second = run(layers, x)
    assert len(lowered) == 1
    with torch.no_grad():
        wanted = layers(x)
    for (result,) in (first, second):
        torch.testing.assert_close(result, wanted, rtol=1e-4, atol=1e-5)


def test_results_of_all_kinds_are_kept(folder, lowered):
    weight = torch.randn(4, 4)

    def function(x, y):
        y.mul_(2)
        return x.t(), weight, 3, None, (x @ weight)[1:, ::2], x

    for _ in range(2):
        x, y = torch.randn(4, 4), torch.ones(3)
        transposed, constant, three, nothing, view, same = run(function, x, y)
        assert three == 3 and nothing is None and y.tolist() == [2, 2, 2] and y._version > 0
        assert transposed.stride() == (1, 4) and transposed.data_ptr() == x.data_ptr() == same.data_ptr()
        assert constant.data_ptr() == weight.data_ptr()
        torch.testing.assert_close(view, (x @ weight)[1:, ::2])
    assert len(lowered) == 1


def test_random_numbers_are_drawn_anew(folder):
    first, second = (run(lambda x: torch.nn.functional.dropout(x), torch.ones(1000))[0] for _ in range(2))
    assert not torch.equal(first, second)


def test_stages_and_kernels_can_be_seen_all_the_same(folder, lowered):
    def function(x):
        return (x.sin() + 1).sum(0)

    x = torch.randn(300, 40)
    before, after = {}, {}
    run(function, x, stages=before)
    run(function, x, stages=after)
    assert before.pop("library").startswith("built") and after.pop("library").startswith("loaded")
    assert after == before and "sin" in after["loops"]

    compiled = compile_fx(graph_of(function, x), Options(2), lambda stage, text, *more: None)
    count = len(lowered)
    with torch.compiler.profile() as profile:
        (result,) = compiled(x)
    assert len(lowered) == count + 1
    assert "sin" in str(profile)
    torch.testing.assert_close(result, function(x), rtol=1e-5, atol=1e-4)


def test_equal_graphs_have_equal_keys():
    def function(x, y):
        return x.sin() + y

    assert key(function, torch.randn(3), torch.randn(3)) == key(function, torch.randn(3), torch.randn(3))


def plus(number):
    def function(x, y):
        return x.sin() + y * number

    return function


BASE, OTHER = torch.randn(20), torch.randn(20)


@pytest.mark.parametrize("other", [
    ("number", plus(2.5), (torch.randn(6), torch.randn(6)), 2),
    ("kind of number", plus(2), (torch.randn(6), torch.randn(6)), 2),
    ("size", plus(2.0), (torch.randn(7), torch.randn(7)), 2),
    ("dtype", plus(2.0), (torch.randn(6).double(), torch.randn(6)), 2),
    ("stride", plus(2.0), (torch.randn(12)[::2], torch.randn(6)), 2),
    ("offset", plus(2.0), (BASE[4:10], torch.randn(6)), 2),
    ("shared memory", plus(2.0), (BASE[:6], BASE[:6]), 2),
    ("threads", plus(2.0), (torch.randn(6), torch.randn(6)), 1),
], ids=lambda case: case[0])  # fmt: skip
def test_what_tells_graphs_apart(other):
    _, function, inputs, threads = other
    assert key(function, *inputs, threads=threads) != key(plus(2.0), torch.randn(6), torch.randn(6))


def test_lines_of_the_user_do_not():
    def first(x):
        return x.sin()

    def second(x):
        return x.sin()

    assert key(first, BASE) == key(second, BASE)


def test_an_edit_of_the_compiler_makes_other_keys(monkeypatch):
    before = key(plus(1.0), BASE, OTHER)
    monkeypatch.setattr(cache, "version_of", lambda library, folders: "another")
    assert key(plus(1.0), BASE, OTHER) != before


@pytest.mark.parametrize("options", [{"debug": True}, {"autotune": True}])
def test_debugging_and_tuning_lower_each_time(folder, lowered, options):
    for count in (1, 2):
        run(plus(1.0), BASE, OTHER, **options)
        assert len(lowered) == count


def damage(path, data):
    path.unlink()  # this process has the old file mapped
    path.write_bytes(data)


@pytest.mark.parametrize("change", [
    lambda path: path.unlink(),
    lambda path: damage(path, b""),
    lambda path: damage(path, path.read_bytes()[:-40]),
    lambda path: damage(path, path.read_bytes().replace(b"[", b"{", 1)),
    lambda path: damage(path, os.urandom(300)),
    lambda path: next(path.parent.glob("*.so")).unlink(),
    lambda path: damage(next(path.parent.glob("*.so")), b"no library"),
], ids=["gone", "empty", "cut", "changed", "noise", "library gone", "library damaged"])  # fmt: skip
def test_damaged_entries_are_made_again(folder, lowered, change):
    wanted = plus(1.0)(BASE, OTHER)
    run(plus(1.0), BASE, OTHER)
    (path,) = folder.glob("*.plan")
    change(path)
    (result,) = run(plus(1.0), BASE, OTHER)
    torch.testing.assert_close(result, wanted)
    assert len(lowered) == 2
    run(plus(1.0), BASE, OTHER)
    assert len(lowered) == 2
