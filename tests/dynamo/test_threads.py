"""Many threads that compile, call, recompile and reset the same and different functions at once."""

from __future__ import annotations

import random
import sys
import threading

import pytest

import rushlight as torch
from rushlight import nn


@pytest.fixture(autouse=True)
def frequent_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)
    torch.compiler.reset()


def run_in_threads(work, count=12):
    """Call `work(number)` in threads that start together; the errors they ended with."""
    errors, barrier = [], threading.Barrier(count)

    def run(number):
        try:
            barrier.wait()
            with torch.no_grad():
                work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def broken(x, k):
    total = x * 0
    for step in range(3):
        total = total + x * k
        if total.sum() < 0:
            total = -total
        torch.compiler.graph_break()
        total = total + step
    return total


def wanted(x, k):
    return broken(x.clone(), k)


def test_one_function_with_recompiles_and_resume_functions():
    compiled = torch.compile(broken, backend="eager", options={"recompile_limit": 100})

    def work(number):
        choose = random.Random(number)
        for _ in range(15):
            k, size = choose.randrange(4), choose.choice([2, 3])
            x = torch.arange(1.0, size + 1)
            assert compiled(x, k).tolist() == wanted(x, k).tolist()

    assert run_in_threads(work) == []


def test_reset_in_between():
    compiled = torch.compile(broken, backend="eager", options={"recompile_limit": 1000})
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).eval()
    run = torch.compile(model, backend="eager")
    x = torch.ones(3)
    result = model(x).detach()

    def work(number):
        for turn in range(12):
            if number % 4 == 0 and turn % 3 == 0:
                torch.compiler.reset()
            assert compiled(x, turn % 2).tolist() == wanted(x, turn % 2).tolist()
            assert torch.equal(run(x), result)

    assert run_in_threads(work) == []


def test_functions_made_compiled_and_dropped_by_each_thread():
    def work(number):
        for turn in range(8):
            model = nn.Linear(2, 2)

            def own(x, scale, model=model):
                y = model(x) * scale
                if y.sum() > number:
                    return y + 1
                return y - 1

            compiled, x = torch.compile(own, backend="eager"), torch.full((2,), float(turn))
            assert torch.equal(compiled(x, number), own(x, number))
            assert torch.equal(compiled(-x, turn), own(-x, turn))

    assert run_in_threads(work) == []


def test_native_code_from_many_threads():
    compiled = torch.compile(lambda x, k: (x * k).softmax(-1) + x)

    def work(number):
        for turn in range(10):
            x, k = torch.arange(6.0).reshape(2, 3) + number, turn % 3
            assert torch.allclose(compiled(x, k), (x * k).softmax(-1) + x)

    assert run_in_threads(work, 8) == []


def test_what_a_thread_does_outside_its_region_is_not_captured():
    graphs, stop, outside = [], threading.Event(), []
    compiled = torch.compile(broken, backend=lambda module, inputs: (graphs.append(0), module.forward)[1])

    def other():
        while not stop.is_set():
            outside.append(broken(torch.ones(2), 1).tolist())

    thread = threading.Thread(target=other)
    thread.start()
    compiled(torch.ones(2), 1)
    count = len(graphs)
    for _ in range(20):
        assert compiled(torch.ones(2), 1).tolist() == wanted(torch.ones(2), 1).tolist()
    stop.set()
    thread.join()
    assert len(graphs) == count and outside and all(found == outside[0] for found in outside)
