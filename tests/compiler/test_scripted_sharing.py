"""Scripted modules as native code, where one tensor, list or object is reached in several ways in some calls and not in others,
and where numbers can't be calculated."""

from __future__ import annotations

from typing import List  # noqa: UP035 (TorchScript's annotations)

import pytest

import rushlight as torch
from rushlight import nn
from tests.compiler.test_scripted_modules import assert_same, assert_same_state, both, natives


@pytest.fixture(autouse=True)
def _native_at_once(monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_JIT_NATIVE_AFTER", "0")


def test_which_arguments_are_one_tensor():
    class Weighted(nn.Module):
        def forward(self, a, b, c):
            return a + 2 * b + 3 * c

    eager, scripted = both(Weighted)
    x, y, z = torch.randn(3), torch.randn(3), torch.randn(3)
    with torch.no_grad():
        for given in [(x, x, y)] * 3 + [(x, y, y)] * 3 + [(x, y, x)] * 2 + [(x, y, z)] * 4:
            torch.testing.assert_close(scripted(*given), eager(*given))
    assert natives(scripted)


class Linked(nn.Module):
    """Two lists that become one."""

    first: List[torch.Tensor]  # noqa: UP006
    second: List[torch.Tensor]  # noqa: UP006

    def __init__(self):
        super().__init__()
        self.first, self.second = [torch.zeros(3)], [torch.zeros(3)]

    @torch.jit.export
    def link(self, one: bool):
        self.second = self.first if one else [self.first[0] * 1]

    def forward(self, x):
        self.first[0] = x * 2 + 1
        self.second[0] = self.second[0] * 2 + x
        return self.first[0] + self.second[0] * 3


def test_two_lists_that_become_one():
    eager, scripted = both(Linked)
    with torch.no_grad():
        for call in range(18):
            if call in (6, 12):
                eager.link(call == 6), scripted.link(call == 6)
            x = torch.randn(3)
            torch.testing.assert_close(scripted(x), eager(x))
    assert natives(scripted)


@torch.jit.script
class Counter:
    """An object with a state."""

    def __init__(self, value: torch.Tensor):
        self.value = value

    def add(self, x: torch.Tensor):
        self.value = self.value * 2 + x


class Several(nn.Module):
    """Lists and objects of which a cut leaves two names; which ones are the same, an argument says."""

    def forward(self, x, one: bool):
        lists, others = [x, x * 2], [x + 1, x * 3]
        chosen = lists if one else others
        count, other = Counter(x), Counter(x + 1)
        picked = count if one else other
        found = torch.nonzero(x > 0).flatten().size(0)
        chosen[0] = chosen[0].relu() * 2 + x
        lists[1] = lists[0] * 2 + chosen[1].exp()
        others[0] = others[0] * 2 + lists[1]
        picked.add(x), count.add(x * 2), other.add(x * 3)
        return torch.stack(lists + others + chosen), count.value + other.value * 2 + picked.value * 3, found


@pytest.mark.parametrize("first", [False, True])
def test_lists_and_objects_that_are_the_same_in_some_calls(first, monkeypatch):
    _, scripted = both(Several)
    _, interpreted = both(Several)
    with torch.no_grad():
        for one in [first] * 6 + [not first] * 5 + [first] * 2:
            x = torch.randn(3)
            found = scripted(x, one)
            with monkeypatch.context() as context:
                context.setenv("RUSHLIGHT_JIT_NATIVE", "0")
                assert_same(found, interpreted(x, one))
    assert natives(scripted)


class Divides(nn.Module):
    """Changes state before it divides."""

    def __init__(self):
        super().__init__()
        self.count, self.last = 0, torch.zeros(3)
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x, divisor: int):
        self.count += 1
        self.last = self.last + x
        self.total.add_(x)
        rest = 10 // divisor
        return (x * 2 + self.total).relu(), rest


def test_a_division_by_zero_comes_after_the_effects_before_it():
    eager, scripted = both(Divides)
    with torch.no_grad():
        for divisor in (1, 2, 3, 4, 5, 3, 0, 4, 0, 3):
            x = torch.randn(3)
            if divisor:
                assert_same(scripted(x, divisor), eager(x, divisor))
            else:
                with pytest.raises(ZeroDivisionError):
                    eager(x, divisor)
                with pytest.raises(torch.jit.Error, match="by 0"):
                    scripted(x, divisor)
            assert_same_state(scripted, eager)
    assert natives(scripted)


@pytest.mark.filterwarnings("error")
def test_state_that_shrinks():
    class Shrinks(nn.Module):
        numbers: List[float]  # noqa: UP006

        def __init__(self):
            super().__init__()
            self.numbers = [float(number) for number in range(12)]

        def forward(self, x):
            y = x * self.numbers[-1] + self.numbers[0]
            self.numbers[0] += 1.0
            if len(self.numbers) > 2:
                self.numbers.pop()
            return y.relu() * 2

    eager, scripted = both(Shrinks)
    with torch.no_grad():
        for _ in range(16):
            x = torch.randn(3)
            torch.testing.assert_close(scripted(x), eager(x))


def test_the_default_dtype_changes():
    class Makes(nn.Module):
        def forward(self, x):
            return (torch.zeros(3) + 1) * 2 + torch.ones(3), x * 2

    eager, scripted = both(Makes)
    x = torch.randn(3)
    try:
        for kind in [torch.float32] * 3 + [torch.float64] * 3 + [torch.float32] * 2:
            torch.set_default_dtype(kind)
            assert_same(scripted(x), eager(x))
    finally:
        torch.set_default_dtype(torch.float32)
    assert len(natives(scripted)) == 2


def test_writes_of_numbers_that_change():
    class Fills(nn.Module):
        def forward(self, x, number: float):
            x[:, 1:].fill_(number)
            y = (x * 2).add_(number)
            y.mul_(number).sub_(1)
            return x, y.relu()

    eager, scripted = both(Fills)
    with torch.no_grad():
        for number in (1.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0):
            x = torch.randn(2, 3)
            given = x.clone()
            assert_same(scripted(given, number), eager(x, number))
            torch.testing.assert_close(given, x)
    assert natives(scripted)


@pytest.mark.parametrize("kind", [torch.uint8, torch.int8, torch.int64])
def test_divisions_by_numbers_that_change(kind):
    class Halves(nn.Module):
        def forward(self, x, number: int):
            return x / number, x * 2

    eager, scripted = both(Halves)
    for number in (2, 2, 3, 4, 5, -2, -3, 300, 7):
        x = torch.arange(6).to(kind)
        assert_same(scripted(x, number), eager(x, number))
    assert natives(scripted)


def test_making_native_code_draws_no_random_numbers(monkeypatch):
    class Drops(nn.Module):
        def __init__(self):
            super().__init__()
            self.drop = nn.Dropout(0.5)
            self.register_buffer("buffer", torch.zeros(2, 3))

        def forward(self, x):
            found = torch.nonzero(x > 0.1).size(0)
            self.buffer.fill_(0.5)
            self.buffer.copy_(self.drop(x))
            return self.buffer * 2, found

    scripted, interpreted = torch.jit.script(Drops()), torch.jit.script(Drops())
    with torch.no_grad():
        for call in range(8):
            x = torch.randn(2, 3)
            torch.manual_seed(call)
            found = scripted(x)
            state = torch.get_rng_state()
            torch.manual_seed(call)
            with monkeypatch.context() as context:
                context.setenv("RUSHLIGHT_JIT_NATIVE", "0")
                assert_same(found, interpreted(x))
            assert torch.equal(state, torch.get_rng_state())
    assert natives(scripted)


class Guarded(nn.Module):
    """A part without gradients between a cut and what needs some."""

    def __init__(self):
        super().__init__()
        self.linear, self.state = nn.Linear(3, 3), torch.zeros(2, 3)

    def forward(self, x, count: int):
        z = x * 2
        found = torch.nonzero(x > 0.1).size(0)
        z = (z + 1).tanh()
        with torch.no_grad():
            self.state = (x * 2).tanh()
        for _ in range(count):
            self.state = self.linear(z).tanh()
        return z.sort(1)[0] * 0.5, found


def test_gradients_after_a_part_without():
    eager, scripted = both(Guarded)
    for count in (1, 1, 1, 1, 2, 0, 0, 1, 1):
        x = torch.randn(2, 3)
        assert_same(scripted(x, count), eager(x, count))
        assert_same_state(scripted, eager)
        assert scripted.state.requires_grad == eager.state.requires_grad == bool(count)
    assert natives(scripted)


class LeavesItsBuffer(nn.Module):
    """One part gives the buffer itself, another writes to the buffer: `where` says in which way."""

    def __init__(self, where: str):
        super().__init__()
        self.register_buffer("buffer", torch.zeros(2, 3))
        self.drop = nn.Dropout(0.5)
        self.where = where

    def forward(self, x):
        v = x.clone()
        for _ in range(2):
            q = torch.nonzero(x > 0.1).size(0)
            if self.where == "branch":
                v = self.drop(self.buffer) if q >= 0 else v
            elif self.where == "view":
                v = self.buffer[:, 0:2] if q >= 0 else v
            else:
                v = self.drop(self.buffer)
        if bool(x.sum() < 1000.0):
            self.buffer[0] = x[0] * 2
        return (v / 1.5).tanh(), v * 2


@pytest.mark.parametrize("where", ["loop", "branch", "view"])
def test_a_part_gives_memory_that_another_writes_to(where):
    eager, scripted = LeavesItsBuffer(where).eval(), torch.jit.script(LeavesItsBuffer(where).eval())
    with torch.no_grad():
        for _ in range(8):
            x = torch.randn(2, 3)
            for found, expected in zip(scripted(x), eager(x), strict=True):
                torch.testing.assert_close(found, expected)
    assert natives(scripted)
