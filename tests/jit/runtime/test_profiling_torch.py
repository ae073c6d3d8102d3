"""The graphs of the profiling executor beside torch's, up to numbers and places: profiled ones, and plans with groups."""

from __future__ import annotations

import contextlib

import pytest

import rushlight
from rushlight.jit.ir.parser import parse_ir
from tests.fuzz_profiling import chosen
from tests.jit.passes.support import canonical

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]


@contextlib.contextmanager
def evaluated_groups():
    """Have torch make groups without LLVM, which it then evaluates."""
    C = torch._C
    before = C._jit_can_fuse_on_cpu(), C._jit_get_te_must_use_llvm_cpu()
    C._jit_override_can_fuse_on_cpu(True)
    C._jit_set_te_must_use_llvm_cpu(False)
    try:
        yield
    finally:
        C._jit_override_can_fuse_on_cpu(before[0])
        C._jit_set_te_must_use_llvm_cpu(before[1])


def elementwise(x, y):
    """One group."""
    return (x * y).tanh() + x


def apart(x, y):
    """Two groups with a product between them."""
    a = (x * y).sigmoid()
    b = a.mm(y)
    return (b + a).exp() * b


def branching(x, y):
    """A group in a branch that ran, none in the other."""
    if x.size(0) > 1:
        z = (x * y).tanh()
    else:
        z = (x + y).exp()
    return z


def looping(x, y):
    """A group of what a loop does."""
    for i in range(3):
        x = (x * x + (i + 1)).tanh()
    return x


def graphs(library, function, runs: int) -> str:
    """The graph that ran last of several runs."""
    scripted = library.jit.script(function)
    for _ in range(runs):
        scripted(library.ones(3, 3), library.ones(3, 3))
    return str(library.jit.last_executed_optimized_graph())


@pytest.mark.parametrize("function", [elementwise, apart, branching, looping])
@pytest.mark.parametrize("runs", [1, 2])
def test_graphs_are_torchs(function, runs, monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_JIT_NATIVE", "0")
    with chosen(profiling=True):
        own = graphs(rushlight, function, runs)
    with evaluated_groups():
        theirs = graphs(torch, function, runs)
    assert canonical(parse_ir(own)) == canonical(parse_ir(theirs))
