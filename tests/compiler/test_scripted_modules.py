"""Scripted modules as native code: attributes as constants, state, cuts, open sizes; what changes from outside is noticed."""

from __future__ import annotations

import copy
import threading

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.jit.runtime.executor import executor_of
from tests.compiler import scripted_modules as modules


@pytest.fixture(autouse=True)
def _native_at_once(monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_JIT_NATIVE_AFTER", "0")


def natives(scripted, method="forward"):
    """The native forms of a method."""
    return executor_of(scripted._c.type.find_method(method)).natives([scripted._c])


def both(kind):
    """A module in evaluation, and its scripted copy."""
    torch.manual_seed(0)
    made = kind().eval()
    return copy.deepcopy(made), torch.jit.script(made)


def assert_same_state(scripted, eager):
    for name in scripted._c.type.attributes:
        value = getattr(scripted, name)
        if isinstance(value, torch.Tensor | int | float | list | dict) and name != "sizes":
            torch.testing.assert_close(value, getattr(eager, name))
        elif isinstance(value, str):
            assert value == getattr(eager, name)


def assert_same(found, expected):
    if isinstance(expected, str):
        assert found == expected
    elif isinstance(expected, tuple):
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    else:
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("kind", modules.CASES)
def test_results_and_state(kind):
    eager, scripted = both(kind)
    with torch.no_grad():
        for call in range(14):
            arguments = modules.CASES[kind](call)
            assert_same(scripted(*copy.deepcopy(arguments)), eager(*arguments))
            assert_same_state(scripted, eager)
    assert natives(scripted)


def parts(scripted):
    return [(part.what, part.reason) for native in natives(scripted) for part in native.parts()]


def run(scripted, kind, calls=8):
    with torch.no_grad():
        for call in range(calls):
            scripted(*modules.CASES[kind](call))


def test_only_what_has_no_native_form_is_interpreted():
    _, scripted = both(modules.Cut)
    run(scripted, modules.Cut, 12)
    found = parts(scripted)
    assert [what for what, _ in found].count("native") >= 2
    assert any("nonzero" in reason for _, reason in found)


def test_loops_that_values_end_have_native_bodies():
    _, scripted = both(modules.Beams)
    run(scripted, modules.Beams, 12)
    assert "native" in [what for what, _ in parts(scripted)]


def test_code_for_open_sizes_serves_all_of_them():
    class Pooled(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.norm, self.mix = nn.Embedding(20, 8), nn.LayerNorm(8), nn.Conv1d(8, 8, 3, padding=1)

        def forward(self, ids):
            x = self.norm(self.embed(ids))
            batch, length, width = x.shape
            x = self.mix(x.transpose(1, 2)).relu()
            if length > 6:
                x = x[:, :, :6]
            return x.mean(-1), batch * length

    eager, scripted = both(Pooled)
    with torch.no_grad():
        for length in (*range(3, 20), 1, 0 + 2, 40):
            ids = torch.randint(0, 20, (2, length))
            torch.testing.assert_close(scripted(ids), eager(ids))
    assert len(natives(scripted)) == 1


class Changes(nn.Module):
    """What the tests below change from outside."""

    def __init__(self):
        super().__init__()
        self.linear, self.scale, self.names = nn.Linear(3, 3), 1.5, ["a", "b"]
        self.inner = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.0), nn.ReLU())
        self.table = {"a": 1.0}

    def forward(self, x):
        y = self.inner(self.linear(x)) * self.scale
        if self.training:
            y = y + 100.0
        for name in self.names:
            y = y + len(name)
        return y * self.table["a"]


def _double(module):
    module.linear.weight.mul_(2)


def _new_data(module):
    module.linear.weight.data = torch.ones(3, 3)


def _new_parameter(module):
    module.linear.weight = nn.Parameter(torch.full((3, 3), 0.5))


def _other_scale(module):
    module.scale = -2.0


def _train(module):
    module.train()


def _load(module):
    module.load_state_dict({name: value + 1 for name, value in module.state_dict().items()})


def _longer(module):
    module.names.append("more")


def _table(module):
    module.table["a"] = 3.0


def _submodule_trains(module):
    getattr(module.inner, "0").bias.zero_()
    module.inner.train()


CHANGES = [_double, _new_data, _new_parameter, _other_scale, _train, _load, _longer, _table, _submodule_trains]


@pytest.mark.parametrize("change", CHANGES)
def test_changes_from_outside_are_noticed(change):
    eager, scripted = both(Changes)
    x = torch.randn(2, 3)
    with torch.no_grad():
        for _ in range(4):
            torch.testing.assert_close(scripted(x), eager(x))
        assert natives(scripted)
        change(eager)
        change(scripted)
        for _ in range(6):
            torch.testing.assert_close(scripted(x), eager(x))


def test_two_modules_of_one_type_have_code_of_their_own():
    torch.manual_seed(0)
    one, other = Changes().eval(), Changes().eval()
    scripted = torch.jit.script(one), torch.jit.script(other)
    assert scripted[0]._c.type is scripted[1]._c.type
    x = torch.randn(2, 3)
    with torch.no_grad():
        for _ in range(4):
            for made, eager in zip(scripted, (one, other), strict=True):
                torch.testing.assert_close(made(x), eager(x))


def test_calls_for_gradients_are_recorded():
    eager, scripted = both(Changes)
    x = torch.randn(2, 3)
    with torch.no_grad():
        for _ in range(4):
            scripted(x)
    scripted(x).sum().backward()
    eager(x).sum().backward()
    torch.testing.assert_close(scripted.linear.weight.grad, eager.linear.weight.grad)


class Fails(nn.Module):
    """Counts before it looks up what may not be there."""

    def __init__(self):
        super().__init__()
        self.embed, self.count, self.last = nn.Embedding(5, 3), 0, torch.zeros(3)

    def forward(self, ids):
        self.count += 1
        rows = self.embed(ids)
        self.last = rows.sum(0) * 2
        return rows.tanh()


def test_an_error_leaves_the_module_as_the_interpreter_does():
    eager, scripted = both(Fails)
    with torch.no_grad():
        for _ in range(4):
            scripted(torch.tensor([1, 2])), eager(torch.tensor([1, 2]))
        for made in (scripted, eager):
            with pytest.raises((IndexError, RuntimeError)):
                made(torch.tensor([1, 7]))
        assert_same_state(scripted, eager)
        torch.testing.assert_close(scripted(torch.tensor([3, 0])), eager(torch.tensor([3, 0])))
        assert_same_state(scripted, eager)


def test_results_are_of_each_call_alone():
    class Kept(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.state = nn.Linear(2, 2), torch.zeros(2)

        def forward(self, x):
            self.state = self.linear(x) + self.state
            return [self.state, self.state * 2], self.state

    eager, scripted = both(Kept)
    with torch.no_grad():
        results = [scripted(torch.ones(2)) for _ in range(5)]
        expected = [eager(torch.ones(2)) for _ in range(5)]
    torch.testing.assert_close(results, expected)
    (first, _), last = results[-1]
    assert first.data_ptr() == last.data_ptr() == scripted.state.data_ptr()


def test_several_threads():
    eager, scripted = both(Changes)
    given = [torch.randn(2, 3) for _ in range(4)]
    with torch.no_grad():
        expected = [eager(x) for x in given]
    found: dict[int, bool] = {}

    def work(index):
        with torch.no_grad():
            found[index] = all(torch.allclose(scripted(given[index]), expected[index]) for _ in range(60))

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == dict.fromkeys(range(4), True)


def test_shared_memory_of_arguments_that_are_written_to():
    class Adds(nn.Module):
        def forward(self, x, y):
            x.add_(y)
            y.mul_(2.0)
            return x * y

    scripted, eager = torch.jit.script(Adds()), Adds()
    with torch.no_grad():
        for _ in range(4):
            x, y = torch.randn(3), torch.randn(3)
            pair = x.clone(), y.clone()
            torch.testing.assert_close(scripted(x, y), eager(*pair))
            torch.testing.assert_close((x, y), pair)
        base, other = torch.arange(4.0), torch.arange(4.0)
        for _ in range(3):
            torch.testing.assert_close(scripted(base[:2], base[2:]), eager(other[:2], other[2:]))
            torch.testing.assert_close(base, other)
            torch.testing.assert_close(scripted(base, base), eager(other, other))
            torch.testing.assert_close(base, other)


def test_methods_called_again_from_hooks():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.total = nn.Linear(2, 2), torch.zeros(2)

        def forward(self, x):
            self.total = self.total + self.linear(x).sum(0)
            return self.total.tanh() * 2

    _, scripted = both(Counting)
    depth = [0]

    def hook(module, arguments):
        if depth[0] < 1:
            depth[0] += 1
            module(arguments[0] + 1)
            depth[0] -= 1

    eager, _ = both(Counting)
    for made in (scripted, eager):
        made.register_forward_pre_hook(hook)
    with torch.no_grad():
        for _ in range(6):
            x = torch.randn(3, 2)
            torch.testing.assert_close(scripted(x), eager(x))
            torch.testing.assert_close(scripted.total, eager.total)


def test_saved_and_loaded_modules_run_alike(tmp_path):
    eager, scripted = both(modules.Recurrent)
    scripted.save(str(tmp_path / "m.pt"))
    loaded = torch.jit.load(str(tmp_path / "m.pt"))
    with torch.no_grad():
        for call in range(8):
            arguments = modules.CASES[modules.Recurrent](call)
            torch.testing.assert_close(loaded(*arguments), eager(*arguments))
    assert natives(loaded)


class Trained(nn.Module):
    """A net in training: running statistics, a part without gradients, a state with a history."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second = nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 4)
        self.state, self.carries = torch.zeros(4), True

    def forward(self, x):
        y = self.norm(self.first(x)).relu()
        y = y + y.detach() * 0.5
        z = self.second(y) + self.state
        if self.carries:
            self.state = z.mean(0) * 0.5
        return torch.softmax(z, -1)


@pytest.mark.parametrize("asks", [False, True])
def test_gradients(asks):
    torch.manual_seed(0)
    eager = Trained()
    scripted = torch.jit.script(copy.deepcopy(eager))
    for _ in range(3):  # backward through two calls each
        total = []
        for made in (eager, scripted):
            made.zero_grad()
            made.state = torch.zeros(4)
        given = [torch.randn(5, 4, requires_grad=asks) for _ in range(2)]
        for made in (eager, scripted):
            loss = sum((made(x) ** 2).sum() for x in given)
            loss.backward()
            total.append((loss.detach(), [x.grad for x in given], [each.grad for each in made.parameters()]))
            for x in given:
                x.grad = None
        torch.testing.assert_close(total[1], total[0])
        torch.testing.assert_close(scripted.norm.running_var, eager.norm.running_var)
    assert natives(scripted)


def test_places_in_the_memory_of_an_argument():
    eager, scripted = both(modules.Places)
    memory = torch.randn(20)
    with torch.no_grad():
        for call in range(8):
            given = memory[call : call + 4]
            assert_same(scripted(given), eager(given))
