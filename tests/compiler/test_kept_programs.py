"""Native programs of archives that another process has kept: taken at the first call, where they fit; never where they do not."""

from __future__ import annotations

import enum
from typing import List  # noqa: UP035 (TorchScript's annotations)

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.compiler.scripted.kept_programs import Resumed
from rushlight.jit.runtime.executor import executor_of
from tests.compiler import scripted_modules as modules


@pytest.fixture(autouse=True)
def _folder(monkeypatch, tmp_path):
    monkeypatch.setenv("RUSHLIGHT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("RUSHLIGHT_JIT_NATIVE_AFTER", "0")


def natives(module):
    return executor_of(module._c.type.find_method("forward")).natives([module._c])


class Net(nn.Module):
    """Parameters, a flag, a list of numbers, a constant of the code, a state."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second = nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 4)
        self.scale, self.sizes, self.count, self.last = 2.0, [1, 2], 0, torch.zeros(4)

    def forward(self, x):
        y = self.norm(self.first(x)).relu() * self.scale
        for size in self.sizes:
            y = y + size
        z = self.second(y) + self.last
        self.last = z.mean(0)
        self.count += 1
        return {"z": z, "pair": (z, [y, y])}, self.count


@pytest.fixture
def saved(tmp_path):
    """An archive that a first load has run until there was a program."""
    torch.manual_seed(0)
    path = str(tmp_path / "net.pt")
    torch.jit.script(Net().eval()).save(path)
    first = torch.jit.load(path)
    with torch.no_grad():
        for _ in range(4):
            first(torch.ones(3, 4))
    assert natives(first)
    return path


def interpreted(path, xs, monkeypatch):
    """What the interpreter gives for an archive."""
    with monkeypatch.context() as context, torch.no_grad():
        context.setenv("RUSHLIGHT_JIT_NATIVE", "0")
        module = torch.jit.load(path)
        return [module(x) for x in xs]


def test_the_first_call_is_native(saved, monkeypatch):
    xs = [torch.randn(3, 4) for _ in range(3)]
    expected = interpreted(saved, xs, monkeypatch)
    module = torch.jit.load(saved)
    with torch.no_grad():
        first = module(xs[0])
        (native,) = natives(module)
        found = [first, *map(module, xs[1:])]
    assert isinstance(native, Resumed)
    torch.testing.assert_close(found, expected)
    result = found[0][0]
    assert result["z"].data_ptr() == result["pair"][0].data_ptr()
    assert result["pair"][1][0].data_ptr() == result["pair"][1][1].data_ptr()


def test_other_values_of_attributes_do_not_fit(saved):
    module, other = torch.jit.load(saved), torch.jit.load(saved)
    x = torch.randn(3, 4)
    with torch.no_grad():
        module(x)
        other.scale = 3.0
        expected = Net().eval()
        expected.load_state_dict(module.state_dict())
        expected.scale, expected.last = 3.0, torch.zeros(4)
        for _ in range(6):
            torch.testing.assert_close(other(x), expected(x))


def test_other_sizes_and_other_weights(saved, monkeypatch):
    module = torch.jit.load(saved)
    with torch.no_grad():
        for rows in (5, 5, 5, 3, 7):
            x = torch.randn(rows, 4)
            again = torch.jit.load(saved)
            again.last = module.last.clone()
            again.count = module.count
            with monkeypatch.context() as context:
                context.setenv("RUSHLIGHT_JIT_NATIVE", "0")
                expected = again(x)
            torch.testing.assert_close(module(x), expected)
        module = torch.jit.load(saved)
        module.second.weight.mul_(2.0)
        module.second.bias.zero_()
        found = module(torch.ones(3, 4))[0]
        y = found["pair"][1][0]
        torch.testing.assert_close(found["z"], y @ module.second.weight.t())


def test_damaged_entries_are_not_used(saved, monkeypatch, tmp_path):
    xs = [torch.randn(3, 4)]
    expected = interpreted(saved, xs, monkeypatch)
    (entry,) = (tmp_path / "cache").glob("*.program")
    content = entry.read_bytes()
    for damaged in (b"", content[:-5], content[:60] + b"x" + content[61:], content[::-1], b"x" * 200):
        entry.write_bytes(damaged)
        module = torch.jit.load(saved)
        with torch.no_grad():
            torch.testing.assert_close([module(xs[0])], expected)
        assert not any(isinstance(native, Resumed) for native in natives(module))


@pytest.mark.parametrize("kind", [modules.Flags, modules.GrowingCache, modules.Recurrent, modules.Chosen])
def test_modules(kind, tmp_path):
    torch.manual_seed(0)
    made, path = kind().eval(), str(tmp_path / "m.pt")
    torch.jit.script(made).save(path)
    for _ in range(2):
        loaded, eager = torch.jit.load(path), kind().eval()
        eager.load_state_dict(made.state_dict())
        with torch.no_grad():
            for call in range(6):
                torch.manual_seed(call)
                arguments = modules.CASES[kind](call)
                torch.testing.assert_close(loaded(*arguments), eager(*arguments))


def test_a_program_serves_only_the_arguments_it_was_made_for(tmp_path):
    class Shaped(nn.Module):
        def forward(self, a, b, c, sizes: List[int], name: str, scales: List[float]):  # noqa: UP006
            x = (a + 2 * b + 3 * c).reshape(sizes)
            return (x + 1 if name == "one" else x * 3).sum(0) * scales[0]

    path, one, other = str(tmp_path / "shaped.pt"), torch.ones(6), torch.arange(6.0)
    torch.jit.script(Shaped()).save(path)
    for given in (
        (one, one, other, [2, 3], "one", [1.0]), (one, other, other, [2, 3], "one", [1.0]),
        (one, one, other, [3, 2], "one", [1.0]), (one, one, other, [2, 3], "two", [1.0]),
        (one, one, other, [2, 3], "one", [2.0, 3.0]),
    ):  # fmt: skip
        loaded = torch.jit.load(path)
        with torch.no_grad():
            for _ in range(4):
                torch.testing.assert_close(loaded(*given), Shaped()(*given))


class Order(enum.Enum):
    ROWS = "rows"
    COLUMNS = "columns"


class Ordered(nn.Module):
    """An attribute that is an item of an enumeration, and a constant of the code that is one."""

    def __init__(self, order):
        super().__init__()
        self.order, self.layer = order, nn.Linear(4, 4)

    def forward(self, x):
        y = self.layer(x).relu()
        return y.sum(1) if self.order == Order.ROWS else y.sum(0) * 2


@pytest.mark.parametrize("order", Order)
def test_enumerations(tmp_path, order):
    path = str(tmp_path / "ordered.pt")
    model = Ordered(order)
    torch.jit.script(model).save(path)
    x = torch.randn(4, 4)
    with torch.no_grad():
        for _ in range(3):
            torch.jit.load(path)(x)
        last = torch.jit.load(path)
        torch.testing.assert_close(last(x), model(x))
    (native,) = natives(last)
    assert isinstance(native, Resumed) and list((tmp_path / "cache").glob("*.code"))


def test_what_was_worth_while_is_made_at_once(tmp_path):
    """Processes that call once: the second one makes the program, the third one takes it."""
    path = str(tmp_path / "ordered.pt")
    torch.jit.script(Ordered(Order.ROWS)).save(path)
    modules = [torch.jit.load(path) for _ in range(3)]
    with torch.no_grad():
        for module in modules:
            module(torch.ones(3, 4))
    found = [natives(module) for module in modules]
    assert not found[0] and found[1] and not isinstance(found[1][0], Resumed) and isinstance(found[2][0], Resumed)
