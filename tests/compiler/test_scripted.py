"""Scripted programs as native code: the same results as the interpreter's and Python's, the same errors, and what they look like."""

from __future__ import annotations

import math
import threading
from typing import List  # noqa: UP035 (TorchScript's annotations)

import pytest

import rushlight as torch
from rushlight.compiler.scripted.native import compile_native
from rushlight.compiler.scripted.translate import translate
from rushlight.jit.runtime.executor import executor_of, run_function
from tests.compiler import scripted_programs as programs

LARGEST = 2**63 - 1


def tensors(*sizes):
    """Tensors that are always the same."""
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(*size, generator=generator) for size in sizes]


CASES = [
    ("collatz", [50]),
    *[("divisions", list(pair)) for pair in ((7, 2), (-7, 2), (7, -2), (-7, -2), (0, 5), (-(2**63), 3), (6, 3), (-6, 3))],
    *[("float_divisions", list(pair)) for pair in ((7.5, 2.0), (-7.5, 2.0), (7.5, -2.0), (1e300, 1e-10), (-0.0, 2.0), (6.0, -3.0))],
    *[("zero_divisions", list(pair)) for pair in ((7.0, 0.0), (-7.0, 0.0), (7.0, -0.0))],
    *[("wrapping", list(pair)) for pair in ((1, 100), (LARGEST, 3), (-LARGEST, 1))],
    ("bits", [12345, 987654321]), ("bits", [-12345, 77]),
    *[("mathematics", list(pair)) for pair in ((0.3, 20), (-1.7, 9), (100.0, 4))],
    *[("countdown", list(part)) for part in ((0, 10, 3), (10, 0, -3), (0, 0, 1), (5, 0, 1), (-5, 6, 11))],
    ("sieve", [200]), ("sieve", [3]),
    ("sorting", [[5, 3, 9, -1, 3]]), ("sorting", [[1]]),
    ("element", [[1.5, 2.5, -3.0], -1]), ("element", [[1.5], 0]),
    ("early", [3]), ("early", [7]), ("early", [100]), ("refusing", [3]),
    ("decay", [*tensors((4,)), 100]), ("decay", [*tensors((2, 3)), 7]),
    ("swapped", [*tensors((3,), (3,)), 5]), ("swapped", [*tensors((2, 2), (2, 2)), 4]),
    ("lstm", tensors((5, 2, 3), (2, 4), (2, 4), (16, 3), (16, 4), (16,))),
    ("rows", [*tensors((5, 3)), 4]), ("rows", [*tensors((5, 3)), -1]),
    ("newton", [torch.tensor([2.0, 9.0, 16.0])]),
    ("measured", tensors((3, 4))), ("measured", tensors((2, 4))), ("measured", [torch.arange(6).reshape(3, 2)]),
    ("maybe_same", [*tensors((3,)), 2]),
    ("greedy", [*tensors((6, 6)), 2, 8]),
]  # fmt: skip


def compiled(name, arguments):
    """The scripted function, and its native form for such arguments."""
    function = torch.jit.script(getattr(programs, name))._function
    native = compile_native(executor_of(function).plan().graph, arguments, name)
    assert native is not None, f"{name} has no native form"
    return function, native


def assert_same(actual, expected):
    """Equal types, and values equal up to rounding of float32."""
    assert type(actual) is type(expected)
    if isinstance(expected, torch.Tensor):
        torch.testing.assert_close(actual, expected)
    elif isinstance(expected, list | tuple):
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, float):
        assert actual == pytest.approx(expected, rel=1e-12, nan_ok=True)
        assert math.copysign(1, actual) == math.copysign(1, expected)
    else:
        assert actual == expected


@pytest.mark.parametrize("name, arguments", CASES)
def test_results(name, arguments):
    function, native = compiled(name, arguments)
    (result,) = native(arguments)
    assert_same(result, run_function(function, list(arguments)))
    if name not in ("wrapping", "bits", "zero_divisions"):  # where Python's numbers are others
        copies = [list(value) if isinstance(value, list) else value for value in arguments]
        assert_same(result, getattr(programs, name)(*copies))


@pytest.mark.parametrize(
    "name, good, bad",
    [
        ("divisions", [7, 2], [7, 0]),
        ("element", [[1.0], 0], [[1.0], 1]),
        ("element", [[1.0], 0], [[1.0], -2]),
        ("refusing", [3], [9]),
        ("countdown", [0, 5, 1], [0, 5, 0]),
        ("rows", [*tensors((5, 3)), 4], [*tensors((5, 3)), 9]),
    ],
)
def test_errors_are_the_interpreters(name, good, bad, monkeypatch):
    function, native = compiled(name, good)
    assert native(bad) is None
    with pytest.raises(Exception) as expected:
        monkeypatch.setenv("RUSHLIGHT_JIT_NATIVE", "0")
        run_function(torch.jit.script(getattr(programs, name))._function, list(bad))
    monkeypatch.delenv("RUSHLIGHT_JIT_NATIVE")
    monkeypatch.setenv("RUSHLIGHT_JIT_NATIVE_AFTER", "0")
    for _ in range(3):
        run_function(function, list(good))
    with pytest.raises(type(expected.value)) as error:
        run_function(function, list(bad))
    assert str(error.value).splitlines()[-1] == str(expected.value).splitlines()[-1]


def products(x, n: int):
    """Work enough for several threads."""
    for _ in range(n):
        x = torch.tanh(x @ x) * 0.5
    return x


def test_large_pieces_and_empty_tensors():
    (x,) = tensors((300, 300))
    function = torch.jit.script(products)._function
    graph = executor_of(function).plan().graph
    (result,) = compile_native(graph, [x, 3], "products")([x, 3])
    torch.testing.assert_close(result, products(x, 3), rtol=1e-4, atol=1e-4)
    empty = torch.zeros(0)
    _, native = compiled("decay", [empty, 3])
    assert native([empty, 3])[0].shape == (0,)


def test_threads_run_side_by_side():
    x = torch.tensor([0.3, 0.7])
    _, native = compiled("decay", [x, 1])
    expected = {n: programs.decay(x, n) for n in range(1, 40)}
    found = {}

    def work(first):
        for n in range(first, 40, 4):
            found[n] = native([x, n])[0]

    threads = [threading.Thread(target=work, args=(first,)) for first in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found.keys() == expected.keys()
    for n, each in expected.items():
        torch.testing.assert_close(found[n], each)


def test_the_argument_itself_comes_back():
    x = torch.ones(3)
    _, native = compiled("maybe_same", [x, 2])
    assert native([x, 0]) is None  # a copy would not do: a write to the result is a write to x


def test_the_executor_goes_native_and_back(monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_JIT_NATIVE_AFTER", "0")
    scripted = torch.jit.script(programs.decay)
    x = torch.tensor([0.3, 0.7])
    expected = [programs.decay(x, n) for n in (3, 4, 5, 6)]
    for n, each in zip((3, 4, 5, 6), expected, strict=True):
        torch.testing.assert_close(scripted(x, n), each)
    kinds = executor_of(scripted._function)._specialized._kinds.by_spec
    assert [kind.native is not None for kind in kinds.values()] == [True]
    other = torch.tensor([[0.3, 0.7, -0.1]])
    torch.testing.assert_close(scripted(other, 3), programs.decay(other, 3))
    torch.testing.assert_close(scripted(other.t(), 3), programs.decay(other.t(), 3))
    assert len(kinds) == 3


def one_operator(x, n: int):
    return torch.ceil(x), n


def a_loop_over_values(x, n: int):
    while bool(x.sum() < 10):
        x = x + n
    return x, x.size(0)


def sizes_alone(x, n: int):
    total = 0
    for i in range(x.size(0)):
        if i % 2 == 0:
            total += x.size(1) * n
    return x, total


@pytest.mark.parametrize("function", [one_operator, a_loop_over_values, sizes_alone])
def test_sizes_and_strides_that_change_on_every_call(function, monkeypatch):
    """The third size of a function makes code for further sizes; a program of fixed sizes must not serve others."""
    monkeypatch.setenv("RUSHLIGHT_JIT_NATIVE_AFTER", "0")
    scripted = torch.jit.script(function)
    inputs = [torch.randn(*sizes) for sizes in ((2, 3), (3, 3), (4, 5), (5, 4), (1, 7), (6, 2), (4, 5), (9, 9))]
    inputs += [torch.randn(4, 5).t(), torch.randn(5, 8)[:, ::2], torch.randn(4, 1).expand(4, 5)]
    with torch.no_grad():
        for x in [each for each in inputs for _ in range(5)]:
            torch.testing.assert_close(scripted(x, 2), function(x, 2))


def test_strides_that_change_at_one_size(monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_JIT_NATIVE_AFTER", "0")
    scripted = torch.jit.script(one_operator)
    rows = torch.randn(4, 4)
    inputs = [rows, rows.t(), torch.randn(4, 8)[:, ::2], torch.randn(8, 4)[::2], torch.randn(4, 1).expand(4, 4)]
    with torch.no_grad():
        for x in [each for each in inputs for _ in range(5)]:
            assert torch.equal(scripted(x, 2)[0], x.ceil())


def ints_of_sizes_and_arguments(x, n: int, values: list[int]):
    first = values[n % len(values)]
    return n + x.size(0), max(n, x.size(0)), 0.5 * x.size(0), n / x.size(0), first + n, first % 3 - n, x.sin().cos() * (n * x.size(0))


def test_ints_of_open_sizes_and_changing_arguments(monkeypatch):
    """They are ints of 64 bits, neither symbols nor tensors."""
    monkeypatch.setenv("RUSHLIGHT_JIT_NATIVE_AFTER", "0")
    scripted = torch.jit.script(ints_of_sizes_and_arguments)
    numbers = (7, 2, 3, 3, 9, 2**40, 5, 2, 1, 8)
    with torch.no_grad():
        for call in range(30):
            n = numbers[call % len(numbers)]
            x, values = torch.ones(3 + call % 5), [n * 2 % 5 - 2, 4, -n][: 1 + call % 3]
            results, expected = scripted(x, n, values), ints_of_sizes_and_arguments(x, n, values)
            assert list(map(type, results)) == list(map(type, expected))
            assert results[:-1] == expected[:-1] and torch.equal(results[-1], expected[-1])


def positive(x, n: int):
    rows = torch.where(x > 0)
    return rows[0] + n, rows[0]


def test_lists_of_tensors_without_elements(monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_JIT_NATIVE_AFTER", "0")
    scripted = torch.jit.script(positive)
    with torch.no_grad():
        for x in (-torch.ones(3), -torch.ones(()), torch.ones(()), torch.ones(3), -torch.ones(3)):
            for _ in range(4):
                torch.testing.assert_close(scripted(x, 2), positive(x, 2))


def test_gradients_go_by_the_interpreter(monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_JIT_NATIVE_AFTER", "0")
    scripted = torch.jit.script(programs.swapped)
    for _ in range(3):
        x = torch.ones(3, requires_grad=True)
        scripted(x, torch.ones(3), 3)[0].sum().backward()
        assert x.grad.tolist() == [2.0, 2.0, 2.0]
    with torch.no_grad():
        for _ in range(3):
            assert not scripted(x, torch.ones(3), 3)[0].requires_grad


class Recurrent(torch.nn.Module):
    """Parameters in a loop."""

    def __init__(self):
        super().__init__()
        self.cell = torch.nn.Linear(3, 3)
        self.scale = 0.5

    def forward(self, x, n: int):
        for _ in range(n):
            x = torch.tanh(self.cell(x)) * self.scale
        return x


def test_modules_with_new_parameters(monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_JIT_NATIVE_AFTER", "0")
    model = Recurrent()
    scripted, x = torch.jit.script(model), torch.ones(2, 3)
    with torch.no_grad():
        for _ in range(3):
            torch.testing.assert_close(scripted(x, 4), model(x, 4))
            scripted.cell.weight.add_(0.1)
        scripted.cell.bias = torch.nn.Parameter(torch.ones(3))
        model.cell.bias = scripted.cell.bias
        torch.testing.assert_close(scripted(x, 4), model(x, 4))
        model.scale = scripted.scale = 2.0
        torch.testing.assert_close(scripted(x, 4), model(x, 4))


def test_traced_modules_become_one_graph(monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_JIT_NATIVE_AFTER", "0")
    model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.GELU(), torch.nn.Linear(8, 2), torch.nn.Softmax(1))
    traced = torch.jit.trace(model, torch.ones(2, 3))
    with torch.no_grad():
        for size in (2, 2, 2, 5, 5, 5):
            x = torch.randn(size, 3)
            torch.testing.assert_close(traced(x), model(x))
            model[0].weight.mul_(0.9)
    kinds = executor_of(traced._method("forward")._function)._specialized._kinds_for([traced._c]).by_spec
    assert sum(kind.native is not None for kind in kinds.values()) == 2
    x = torch.randn(2, 3)
    traced(x).sum().backward()
    assert model[0].weight.grad is not None


def test_what_has_no_native_form_stays(monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_JIT_NATIVE_AFTER", "0")

    def noisy(x, n: int):
        for _ in range(n):
            x = x + torch.rand(2)
        return x

    def writing(x, n: int):
        for _ in range(n):
            x.add_(1)
        return x

    scripted = torch.jit.script(noisy)
    torch.manual_seed(1)
    first = [scripted(torch.zeros(2), 2) for _ in range(3)]
    torch.manual_seed(1)
    again = [noisy(torch.zeros(2), 2) for _ in range(3)]
    assert all(map(torch.equal, first, again))
    x, scripted = torch.zeros(2), torch.jit.script(writing)
    for _ in range(4):
        assert scripted(x, 2) is not None
    assert x.tolist() == [8.0, 8.0]


class Counter(torch.nn.Module):
    """A list that calls write to."""

    seen: List[int]  # noqa: UP006

    def __init__(self):
        super().__init__()
        self.seen = [0]

    def forward(self, n: int) -> int:
        for i in range(n):
            self.seen.append(i)
        return len(self.seen)


def test_lists_of_modules_are_written_to(monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_JIT_NATIVE_AFTER", "0")
    scripted = torch.jit.script(Counter())
    assert [scripted(2) for _ in range(4)] == [3, 5, 7, 9]


def test_numbers_beyond_64_bits_are_left_to_the_interpreter():
    _, native = compiled("wrapping", [1, 2])
    assert native([2**70, 2]) is None
    _, native = compiled("sorting", [[1, 2]])
    assert native([[2**70, 2]]) is None


def test_program_as_text():
    function = torch.jit.script(programs.decay)._function
    translation = translate(executor_of(function).plan().graph.copy(), [torch.ones(2), 3])
    assert str(translation.program) == (
        "program(in0: int, in1: float32[2]):\n"
        "  loop i2 < in0 while True, t3 = in1:\n"
        "    t4 = region0(t3)\n"
        "    n5 = item(t4)\n"
        "    if n5:\n"
        "      t6 = region1(t3)\n"
        "      t10 = t6\n"
        "    else:\n"
        "      n7 = to_float(i2)\n"
        "      n8 = mul(n7, 0.2)\n"
        "      t9 = region2(t3, n8)\n"
        "      t10 = t9\n"
        "    t3 = t10\n"
        "    while True\n"
        "  return t3\n"
    )
