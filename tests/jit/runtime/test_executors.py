"""The executors: plans that assume nothing, profiles, plans for what was seen, and forks that run side by side."""

from __future__ import annotations

import re
import threading
import time
from typing import List  # noqa: UP035 (TorchScript's annotations)

import pytest

import rushlight as torch
from rushlight.jit.function import Function
from rushlight.jit.ir.parser import parse_ir
from rushlight.jit.operators import deregister_operator, register_operator
from rushlight.jit.runtime.code import Code
from rushlight.jit.runtime.executor import (
    ProfilingExecutor,
    SimpleExecutor,
    executor_of,
    last_executed_optimized_graph,
    run_function,
)
from rushlight.jit.runtime.modes import modes, optimized_execution, set_profiled_runs, set_profiling


@pytest.fixture
def profiling():
    before = set_profiling(True)
    yield
    set_profiling(before)


def branching(x, y):
    """A branch on a size."""
    if x.size(0) > 1:
        z = x * y
    else:
        z = x + y
    return z.sum(0) * x.dim()


def text_of(graph) -> str:
    return re.sub(r" # .*", "", str(graph))


def test_simple_executor_by_default():
    scripted = torch.jit.script(branching)
    assert scripted(torch.ones(2, 3), torch.ones(3)).tolist() == [4.0, 4.0, 4.0]
    executor = executor_of(scripted._function)
    assert type(executor) is SimpleExecutor and last_executed_optimized_graph() is executor.plan().graph


def test_the_first_run_is_watched(profiling):
    scripted = torch.jit.script(branching)
    scripted(torch.ones(2, 3), torch.ones(3))
    assert type(executor_of(scripted._function)) is ProfilingExecutor
    text = text_of(last_executed_optimized_graph())
    assert (
        "= prim::profile[profiled_type=Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu), seen_none=0](%x.1)" in text
    )
    assert "= prim::profile[profiled_type=Tensor, seen_none=0](%y.1)" in text  # in the branch that did not run


def elementwise(x, y):
    """Operators that become one group."""
    return torch.tanh(x * y) + x


def test_the_second_run_has_a_plan_of_its_own(profiling):
    scripted = torch.jit.script(elementwise)
    x, y = torch.ones(2, 3), torch.ones(3)
    scripted(x, y)
    text = text_of(scripted.graph_for(x, y))
    assert "prim::TypeCheck[types=[Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu), Float(3" in text
    assert 'Function = prim::Constant[name="fallback_function", fallback=1]()' in text
    assert text.count("prim::If") == 1 and "with prim::TensorExprGroup_0 = graph(%x.1 : Float(2, 3" in text
    code = str(executor_of(scripted._function).current_plan().code)
    assert "TYPECHECK 0 2" in code and "CALL 0 # fallback_function" in code


@pytest.mark.parametrize("sizes", [(2, 3), (1, 3), (4, 3), (2, 1)])
def test_other_tensors_fall_back(profiling, sizes):
    scripted = torch.jit.script(elementwise)
    for _ in range(2):
        scripted(torch.ones(2, 3), torch.ones(3))
    for x in (torch.randn(sizes), torch.randn(sizes, dtype=torch.float64), torch.randn(sizes[::-1]).t()):
        assert torch.equal(scripted(x, torch.ones(3, dtype=x.dtype)), elementwise(x, torch.ones(3, dtype=x.dtype)))
    x = torch.randn(sizes, requires_grad=True)
    scripted(x, torch.ones(3)).sum().backward()
    assert x.grad is not None


def test_several_profiled_runs_have_in_common_what_all_saw(profiling):
    before = set_profiled_runs(2)
    try:
        scripted = torch.jit.script(elementwise)
        for rows in (2, 4):
            scripted(torch.ones(rows, 3), torch.ones(3))
        text = text_of(scripted.graph_for(torch.ones(7, 3), torch.ones(3)))
    finally:
        set_profiled_runs(before)
    assert "types=[Float(*, 3, strides=[3, 1], requires_grad=0, device=cpu)" in text
    x = torch.randn(5, 3)
    assert torch.equal(scripted(x, torch.ones(3)), elementwise(x, torch.ones(3)))


def test_tensors_that_change_their_size_are_not_assumed(profiling):
    def growing(x, n: int):
        x.unsqueeze_(0)
        return x.size(0) + n

    scripted = torch.jit.script(growing)
    assert [scripted(torch.ones(3), 1) for _ in range(3)] == [2, 2, 2]


def gated(x, w, b):
    """Operators with gradients in a row."""
    h = torch.sigmoid(x * w + b)
    return torch.tanh(h * w) * h + x


def test_what_needs_gradients_becomes_a_differentiable_graph(profiling):
    scripted = torch.jit.script(gated)
    x, w, b = torch.randn(4, 3), torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
    for _ in range(4):
        found = torch.autograd.grad(scripted(x, w, b).sum(), (w, b))
        for one, other in zip(found, torch.autograd.grad(gated(x, w, b).sum(), (w, b)), strict=True):
            torch.testing.assert_close(one, other)
    assert "prim::DifferentiableGraph_0" in text_of(scripted.graph_for(x, w, b))
    with torch.no_grad():
        torch.testing.assert_close(scripted(x, w, b), gated(x, w, b))


class Layers(torch.nn.Module):
    """Two layers, and a branch on a size."""

    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(3, 4), torch.nn.Linear(4, 1)

    def forward(self, x):
        h = torch.tanh(self.first(x))
        if h.size(0) > 2:
            h = h * torch.sigmoid(h)
        return self.second(h)


@pytest.mark.parametrize("profiled", [False, True])
def test_training_gives_eagers_losses(profiled, monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_JIT_NATIVE_AFTER", "0")
    before = set_profiling(profiled)
    x = torch.randn(8, 3)
    losses = []
    try:
        for wrap in (lambda model: model, torch.jit.script):
            torch.manual_seed(0)
            model = wrap(Layers())
            optimizer = torch.optim.SGD(model.parameters(), 0.3)
            losses.append([])
            for _ in range(5):
                optimizer.zero_grad()
                loss = (model(x) - 1).square().mean()
                loss.backward()
                optimizer.step()
                losses[-1].append(loss.item())
    finally:
        set_profiling(before)
    assert losses[1] == pytest.approx(losses[0], rel=1e-5) and losses[0][-1] < losses[0][0]


def test_optimized_execution_can_be_turned_off(profiling):
    with optimized_execution(False):
        assert not modes().optimized
        scripted = torch.jit.script(branching)
        scripted(torch.ones(2, 3), torch.ones(3))
        assert type(executor_of(scripted._function)) is SimpleExecutor
    assert modes().optimized


def test_settings_are_checked():
    with pytest.raises(ValueError, match="must not be negative"):
        set_profiled_runs(-1)
    with pytest.raises(ValueError, match="STATIC"):
        torch.jit.set_fusion_strategy([("SOMETIMES", 2)])
    assert torch.jit.set_fusion_strategy([("STATIC", 1)]) == [("STATIC", 2), ("DYNAMIC", 10)]
    assert torch.jit.set_fusion_strategy([("STATIC", 2), ("DYNAMIC", 10)]) == [("STATIC", 1)]


def test_code_as_text():
    def function(x, n: int):
        total = 0
        for i in range(n):
            if i > 1:
                total += i
        return x + total

    scripted = torch.jit.script(function)
    code = str(Code(executor_of(scripted._function).plan().graph, "function"))
    lines = [re.sub(r"^\d+ ", "", line) for line in code.splitlines()]
    assert lines[0] == "STORE 0" and lines[-1] == "RET 0"
    words = {line.split()[0] for line in lines}
    assert {"LOOP", "JF", "JMP", "OPN", "MOVE", "LOAD", "LOADC", "STORE"} <= words


class Slow(torch.nn.Module):
    """Two forks of one function."""

    def forward(self, x):
        first = torch.jit.fork(waiting, x)
        second = torch.jit.fork(waiting, x + 1)
        return torch.jit.wait(first) + torch.jit.wait(second)


def waiting(x):
    """A scripted call of an operator that waits."""
    return torch.ops.rushlight_test.wait_for_two(x)


def test_forks_run_side_by_side():
    meeting = threading.Barrier(2, timeout=20)

    def wait_for_two(x):
        meeting.wait()  # both forks must be running for either to go on
        return x * 2

    library = torch.library.Library("rushlight_test", "DEF")
    library.define("wait_for_two(Tensor x) -> Tensor")
    library.impl("wait_for_two", wait_for_two, "CompositeExplicitAutograd")
    started = time.monotonic()
    try:
        scripted = torch.jit.script(Slow())
        assert scripted(torch.ones(2)).tolist() == [6.0, 6.0]
    finally:
        library._destroy()
    assert time.monotonic() - started < 20


def test_operators_registered_at_run_time():
    operator = register_operator("aten::rushlight_twice(int a) -> int", lambda a: a * 2)
    graph = parse_ir("graph(%a : int):\n  %1 : int = aten::rushlight_twice(%a)\n  return (%1)")
    try:
        assert run_function(Function("function", graph), [4]) == 8
    finally:
        deregister_operator(operator)
    with pytest.raises(RuntimeError, match="unknown operator aten::rushlight_twice"):
        run_function(Function("function", graph.copy()), [4])


def test_lists_of_futures():
    def many(x, n: int):
        futures: List[torch.jit.Future[torch.Tensor]] = []  # noqa: UP006
        for i in range(n):
            futures.append(torch.jit.fork(branching, x * i, x[0]))
        total = torch.zeros(3)
        for future in futures:
            total = total + torch.jit.wait(future)
        return total

    x = torch.ones(2, 3)
    assert torch.equal(torch.jit.script(many)(x, 4), sum(branching(x * i, x[0]) for i in range(4)))
