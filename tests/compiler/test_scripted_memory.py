"""Scripted programs that write to tensors: native code gives what the interpreter gives, and leaves arguments as it does."""

from __future__ import annotations

import copy

import pytest

import rushlight as torch
from rushlight.compiler.scripted.native import compile_native
from rushlight.compiler.scripted.translate import translate
from rushlight.jit.ir.parser import parse_ir
from rushlight.jit.runtime.executor import executor_of
from tests.compiler import scripted_memory_programs as programs
from tests.compiler.test_scripted import assert_same

CASES = [(name, case) for name, cases in programs.ARGUMENTS.items() for case in cases]


def made(case, generator):
    """Arguments: a tuple of ints stands for a random tensor of that size, a list of ints for a tensor of them."""
    if isinstance(case, tuple):
        return torch.randn(*case, generator=generator)
    if isinstance(case, list) and isinstance(case[0], int):
        return torch.tensor(case)
    return [made(each, generator) for each in case] if isinstance(case, list) else case


def arguments_of(case):
    """The arguments of a case, the same each time."""
    generator = torch.Generator().manual_seed(0)
    return [made(each, generator) for each in case]


def executor(name):
    """What runs a program."""
    return executor_of(torch.jit.script(getattr(programs, name))._function)


@pytest.mark.parametrize("name, case", CASES)
def test_results_and_arguments(name, case):
    found = executor(name)
    arguments, others = arguments_of(case), arguments_of(case)
    native = compile_native(found.plan().graph, arguments_of(case), name)
    assert (native is None) == (name in programs.INTERPRETED)
    if native is None:
        return
    expected = found._interpret(list(others))
    results = native(arguments)
    assert results is not None
    assert_same(list(results), list(expected))
    assert_same(arguments, others)
    for result, wanted in zip(results, expected, strict=True):
        assert [result is each for each in arguments] == [wanted is each for each in others]


def test_results_that_are_one_stay_one():
    native = compile_native(executor("same_twice").plan().graph, arguments_of(((3,), 2)), "same_twice")
    ((first, second),) = native(arguments_of(((3,), 2)))
    assert first is second


def test_writes_are_counted():
    x = torch.zeros(5, 2)
    native = compile_native(executor("argument_written").plan().graph, [x, 3], "argument_written")
    before = x._version
    (result,) = native([x, 3])
    assert result is x and x._version > before


def test_arguments_that_share_memory_go_to_the_interpreter():
    def program(x, y, n: int):
        for i in range(n):
            x[i] = y.sum()
        return y + 1

    found = executor_of(torch.jit.script(program)._function)
    native = compile_native(found.plan().graph, [torch.ones(3), torch.ones(3), 3], "program")
    apart = [torch.ones(3), torch.ones(3), 3]
    assert native(apart)[0].tolist() == [2.0] * 3 and apart[0].tolist() == [3.0] * 3
    whole = torch.ones(4)
    for x, y in ((whole[:3], whole[1:]), (whole[:3], whole[:3])):
        assert native([x, y, 3]) is None
    assert native([torch.ones(3, 2)[:, 0], torch.ones(3), 3]) is None
    assert whole.tolist() == [1.0] * 4


@pytest.mark.parametrize("name, good, bad", [
    ("argument_filled", ((5, 3), 4), ((5, 3), 5)),
    ("elements_written", (4,), (4,)),
    ("counted", ([0, 1], 2), ([0, 7], 2)),
    ("windows", ((9,), 3), ((2,), 3)),
    ("converted", (3,), (4,)),
])  # fmt: skip
def test_a_program_that_stops_has_written_nothing(name, good, bad, monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_JIT_NATIVE_AFTER", "0")
    scripted = torch.jit.script(getattr(programs, name))
    for _ in range(3):
        scripted(*arguments_of(good))
    monkeypatch.setenv("RUSHLIGHT_JIT_NATIVE", "0")
    interpreted = torch.jit.script(copy.copy(getattr(programs, name)))
    outcomes = []
    for function in (scripted, interpreted):
        arguments = arguments_of(bad)
        try:
            outcome = function(*arguments)
        except Exception as error:
            outcome = (type(error), str(error).splitlines()[-1])
        outcomes.append([outcome, arguments])
    assert_same(outcomes[0][1], outcomes[1][1])
    if isinstance(outcomes[0][0], tuple) and isinstance(outcomes[0][0][0], type):
        assert outcomes[0][0] == outcomes[1][0]
    else:
        assert_same(outcomes[0][0], outcomes[1][0])


def test_values_that_are_taken_for_granted(monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_JIT_NATIVE_AFTER", "0")
    scripted, x = torch.jit.script(programs.by_name), torch.tensor([1.0, -2.0])
    for mode in ("add", "halve", "", "add", "halve", "other") * 3:
        torch.testing.assert_close(scripted(x, mode, 3), programs.by_name(x, mode, 3))
    (kind,) = executor_of(scripted._function)._specialized._kinds.by_spec.values()
    assert len(kind.native.programs) > 1
    scripted = torch.jit.script(programs.by_sizes)
    for n, k in ((2, 1), (3, 1), (3, 2)) * 4:
        torch.testing.assert_close(scripted(n, k), programs.by_sizes(n, k))


def test_gradients_are_not_lost(monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_JIT_NATIVE_AFTER", "0")
    scripted = torch.jit.script(programs.rows_written)
    for needs in (False, True, False, True):
        x = torch.ones(4, 3, requires_grad=needs)
        found = scripted(x)
        assert found.requires_grad == needs
        if needs:
            found.sum().backward()
            assert x.grad[:, 0].tolist() == [4.0, 3.0, 2.0, 1.0]


def test_writes_as_text():
    graph = executor("accumulated").plan().graph.copy()
    assert str(translate(graph, [torch.ones(5, 3)]).program) == (
        "program(in0: float32[5, 3]):\n"
        "  t1 = region0()\n"
        "  loop i2 < 5 while True, t3 = t1:\n"
        "    t4: float32[3] = in0 at i2*3\n"
        "    t5 = region1(t4, t3)\n"
        "    t3[...] = t5\n"
        "    t3 = t3\n"
        "    while True\n"
        "  return t3\n"
    )


def walk(x, n: int, k: int):
    """Random numbers, and a division that may fail after some are drawn."""
    total = 0
    for i in range(n):
        x = x + torch.randn(2) * torch.rand_like(x)
        x = torch.dropout(x, 0.25, True)
        total += 12 // (k - i)
    return x, total


def test_random_numbers_are_the_interpreters():
    found = executor_of(torch.jit.script(walk)._function)
    native = compile_native(found.plan().graph, [torch.zeros(2), 4, 9], "walk")
    for seed in range(3):
        torch.manual_seed(seed)
        results = native([torch.zeros(2), 4, 9])
        after = torch.rand(1)
        torch.manual_seed(seed)
        assert_same(list(results), list(found._interpret([torch.zeros(2), 4, 9])))
        assert torch.equal(after, torch.rand(1))
    torch.manual_seed(5)
    first = torch.rand(1)
    torch.manual_seed(5)
    assert native([torch.zeros(2), 4, 2]) is None
    assert torch.equal(torch.rand(1), first)  # nothing was drawn


def sorted_and_best(x, k: int):
    """Operators that only the library's kernels compute."""
    order = torch.argsort(x, descending=True)
    total = 0.0
    for i in range(k):
        best, places = torch.topk(x, 2)
        x = x - torch.median(x) * best.sum()
        total += float(x[int(order[i])]) + float(places[0])
    return torch.cumsum(torch.sort(x)[0], 0), total


def test_operators_without_a_native_form():
    found = executor_of(torch.jit.script(sorted_and_best)._function)
    x = torch.tensor([0.5, -1.0, 2.0, 0.25])
    native = compile_native(found.plan().graph, [x, 3], "sorted_and_best")
    for values in (x, x * -3 + 1):
        assert_same(list(native([values, 3])), list(found._interpret([values, 3])))
    assert native([x, 9]) is None


def test_strides_that_change_in_place_a_number_of_times():
    def turned(x, n: int):
        y = x.clone()
        z = y[0]
        for _ in range(n):
            y.t_()
        return y + z

    graph = executor_of(torch.jit.script(turned)._function).plan().graph
    x = torch.arange(9.0).reshape(3, 3)
    for count in (2, 3, 2):
        native = compile_native(graph, [x, count], "turned")
        torch.testing.assert_close(native([x, count]), [turned(x, count)])


class Averages(torch.nn.Module):
    """A buffer that calls write to, and a parameter."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))
        self.weight = torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        for i in range(x.size(0)):
            self.mean.mul_(0.5).add_(x[i], alpha=0.5)
        return self.mean * self.weight


def test_buffers_of_modules_are_written_to(monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_JIT_NATIVE_AFTER", "0")
    model, x = Averages(), torch.arange(12.0).reshape(4, 3)
    scripted, eager = torch.jit.script(copy.deepcopy(model)), copy.deepcopy(model)
    with torch.no_grad():
        for _ in range(5):
            torch.testing.assert_close(scripted(x), eager(x))
            torch.testing.assert_close(scripted.mean, eager.mean)
    kinds = executor_of(scripted._method("forward")._function)._specialized._kinds_for([scripted._c]).by_spec
    assert [kind.native is not None for kind in kinds.values()] == [True]
    with torch.no_grad():
        torch.testing.assert_close(scripted(eager.mean.expand(4, 3)), eager(eager.mean.clone().expand(4, 3)))


LOOP_WITH_A_CONDITION = """
graph(%x : Tensor, %n : int):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %five : int = prim::Constant[value=5]()
  %begins : bool = aten::gt(%n, %zero)
  %out : Tensor, %count : int = prim::Loop(%n, %begins, %x, %zero)
    block0(%i : int, %y : Tensor, %k : int):
      %z : Tensor = aten::add(%y, %i, %one)
      %next : int = aten::add(%k, %one)
      %stays : bool = aten::lt(%next, %five)
      -> (%stays, %z, %next)
  return (%out, %count)
"""


@pytest.mark.parametrize("n, count", [(0, 0), (3, 3), (9, 5), (-1, 0)])
def test_loops_that_carry_their_condition(n, count):
    graph = parse_ir(LOOP_WITH_A_CONDITION)
    x = torch.ones(2)
    results = compile_native(graph, [x, 3], "loop")([x, n])
    if count == 0:
        assert results is None  # the argument itself is the result
        return
    assert results[1] == count and results[0].tolist() == [1.0 + sum(range(count))] * 2


def test_results_that_are_views_stay_interpreted():
    def parts(x, n: int):
        y = x * 2
        for i in range(n):
            y = y + i
        return y, y[0]

    def seen(x, n: int):
        y = x * 2
        for i in range(n):
            y = y + i
        return y, x.t()

    for function in (parts, seen):
        graph = executor_of(torch.jit.script(function)._function).plan().graph
        assert compile_native(graph, [torch.ones(3, 3), 2], function.__name__) is None
