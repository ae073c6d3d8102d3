"""Programs written statement by statement: open sizes, tensors that grow, strings, dicts, objects, and what is known of them."""

from __future__ import annotations

import enum
from typing import NamedTuple

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.deploy import NotExportable, export
from rushlight.deploy.binding import ModelError
from rushlight.deploy.direct.statements import Statements
from rushlight.deploy.direct.values import Plan
from rushlight.jit.types import kinds as types
from tests.deploy.built import built, close


class Growing(nn.Module):
    """Several ways in which tensors grow in loops; the number of rows is open."""

    def forward(self, x: torch.Tensor, n: int, limit: float) -> tuple[torch.Tensor, torch.Tensor, list[torch.Tensor]]:
        whole = torch.zeros(0, 2)
        mask = torch.zeros(1)
        kept: list[torch.Tensor] = []
        for i in range(n):
            row = x.sum(0, keepdim=True) * i
            whole = torch.cat([whole, row])
            mask = torch.cat([mask, torch.ones(1)])
            kept.append(row[0])
            if bool((whole.sum(1) + mask[1:]).sum() > limit):
                break
        return whole, torch.stack(kept) if len(kept) > 0 else torch.zeros(1, 2), kept[::2]


@pytest.fixture(scope="module")
def growing(tmp_path_factory):
    module = torch.jit.script(Growing())
    rows = torch.export.Dim("rows")
    example = (torch.rand(3, 2), 4, 1000.0)
    return module, built(module, example, tmp_path_factory.mktemp("growing"), dynamic_shapes=({0: rows}, None, None))


@pytest.mark.parametrize(("rows", "n", "limit"), [(3, 4, 1000.0), (1, 1, 5.0), (5, 0, 5.0), (2, 30, 40.0)])
def test_tensors_grow_by_any_number_of_rounds(growing, rows, n, limit):
    module, model = growing
    x = torch.rand(rows, 2)
    found, expected = model.forward(x.numpy(), n, limit), module(x, n, limit)
    close(found[0], expected[0])
    close(found[1], expected[1])
    assert len(found[2]) == len(expected[2])


class Point(NamedTuple):
    x: int
    label: str


class Color(enum.Enum):
    RED = 1
    BLUE = 2


@torch.jit.script
class Counter:
    def __init__(self, start: int):
        self.count = start
        self.seen: list[str] = []

    def add(self, word: str) -> int:
        self.count += len(word)
        self.seen.append(word)
        return self.count


def words(text: str, numbers: list[int], scale: float) -> tuple[dict[str, int], str, Point, list[int], float | None]:
    counts: dict[str, int] = {}
    counter = Counter(10)
    for place, word in enumerate(text.lower().split(" ")):
        counts[word] = counts.get(word, 0) + 1
        if place % 2 == 0:
            counter.add(word.strip("."))
    numbers = sorted([abs(n) * 2 for n in numbers])
    numbers.insert(0, -1)
    color = Color.RED if len(numbers) > 3 else Color.BLUE
    said = f"{len(counts)} words, {scale}, {numbers}, {color.name}, {counter.seen}"
    best: float | None = None
    for n, m in zip(numbers, numbers[1:], strict=False):
        if best is None or float(m - n) > best:
            best = float(m - n)
    return counts, said, Point(counter.count, said[-4:].upper()), numbers, best


@pytest.mark.parametrize(
    ("text", "numbers", "scale"), [("a bb. a", [3, 1, -2, 5], 0.1), ("", [], 1e22), ("One two one Three", [2], -0.0)]
)
def test_strings_dicts_objects_and_enumerations(spoken, text, numbers, scale):
    function, model = spoken
    counts, said, point, kept, best = function(text, numbers, scale)
    found = model.forward(text, numbers, scale)
    assert found == (counts, said, tuple(point), kept, best)


@pytest.fixture(scope="module")
def spoken(tmp_path_factory):
    function = torch.jit.script(words)
    return function, built(function, ("a b a", [1, 2], 0.5), tmp_path_factory.mktemp("spoken"))


class Remembering(nn.Module):
    """State of every kind: numbers, lists, dicts, tensors that are assigned and tensors that are written to."""

    history: torch.Tensor
    log: list[str]
    last: dict[str, int]

    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.zeros(4, 2))
        self.history = torch.zeros(0, 2)
        self.runs: int = 0
        self.log = []
        self.last = {}

    def forward(self, x: torch.Tensor, name: str) -> tuple[torch.Tensor, torch.Tensor, str]:
        self.runs += 1
        self.log.append(name)
        self.last[name] = self.runs
        row = int(x.sum()) % 4
        self.table[row] += x[0]
        while len(self.history) < self.runs:
            self.history = torch.cat([self.history, x[:1]])
        return self.table.clone(), self.history, f"{self.log} {self.last}"


def test_state_of_every_kind(tmp_path):
    module = torch.jit.script(Remembering())
    model = built(module, (torch.ones(2, 2), "first"), tmp_path)
    for step, name in enumerate(("a", "b", "a")):
        x = torch.rand(2, 2) * step
        found, expected = model.forward(x.numpy(), name), module(x, name)
        close(found[0], expected[0])
        close(found[1], expected[1])
        assert found[2] == expected[2]
    model.reset()
    assert model.forward(np.ones((2, 2), np.float32), "again")[2] == "[again] {again: 1}"


@torch.jit.interface
class Step:
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pass


class Doubled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


class Halved(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, x]) / 2


class Choosing(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = nn.ModuleList([Doubled(), Halved()])

    def forward(self, x: torch.Tensor, which: torch.Tensor) -> torch.Tensor:
        step: Step = self.steps[int(which)]
        return step.forward(x)


def test_modules_chosen_by_a_value(tmp_path):
    module = torch.jit.script(Choosing())
    model = built(module, (torch.rand(3), torch.tensor(0)), tmp_path)
    for which in (0, 1):
        x = torch.rand(3)
        close(model.forward(x.numpy(), np.array(which)), module(x, torch.tensor(which)))
    with pytest.raises(ModelError, match=r"IndexError: .*out of range"):
        model.forward(np.zeros(3, np.float32), np.array(7))


def checked(x: torch.Tensor, values: list[int], key: str) -> int:
    found = {"a": 1}
    assert len(values) > 1, f"only {len(values)} values"
    if bool(x.sum() < 0):
        raise ValueError("the sum is negative: " + key)
    return values[int(x[0])] // values[1] + found[key]


@pytest.mark.parametrize(
    ("x", "values", "key", "said"),
    [
        ([1.0], [1], "a", "AssertionError: only 1 values"),
        ([-1.0], [1, 2], "b", r"ValueError: the sum is negative: b \(test_direct.py:\d+\)"),
        ([5.0], [1, 2], "a", "IndexError: list index out of range"),
        ([0.0], [1, 0], "a", "ZeroDivisionError"),
        ([0.0], [1, 2], "z", "KeyError: 'z'"),
    ],
)
def test_errors_say_what_python_says(checking, x, values, key, said):
    with pytest.raises(ModelError, match=said):
        checking.forward(np.array(x, np.float32), values, key)
    assert checking.forward(np.array([0.0], np.float32), [7, 2], "a") == 4


@pytest.fixture(scope="module")
def checking(tmp_path_factory):
    return built(torch.jit.script(checked), (torch.ones(1), [1, 2, 3], "a"), tmp_path_factory.mktemp("checking"))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((np.ones(1, np.float64), [1, 2], "a"), "dtype float32"),
        ((np.ones(1, np.float32), [1, 2.0], "a"), "values must be an int, got a float"),
        ((np.ones(1, np.float32), [1, 2], 3), "key must be a string, got an int"),
        ((np.ones(2, np.float32), [1, 2], "a"), r"x must be as in x: float32\[1\], got the sizes \[2\]"),
    ],
)
def test_other_arguments_are_refused(checking, values, said):
    with pytest.raises(ModelError, match=said):
        checking.forward(*values)


def appended(values: list[str]) -> int:
    values.append("more")
    return len(values)


def shown(x: torch.Tensor, text: str) -> str:
    while bool(x.sum() < 2):
        x = torch.cat([x, x])
    return f"{text} {x}"


@pytest.mark.parametrize(
    ("function", "example", "said"),
    [
        (appended, (["a"],), "is changed, which a caller in C would not see"),
        (shown, (torch.ones(1), "a"), "of a tensor as text"),
    ],
)
def test_what_is_refused(tmp_path, function, example, said):
    with pytest.raises(NotExportable, match=said):
        export(torch.jit.script(function), example, tmp_path / "out")
    assert not (tmp_path / "out").exists()


class WithComplex(nn.Module):
    def __init__(self):
        super().__init__()
        self.turn = 1 - 2j

    def forward(self, text: str, x: torch.Tensor) -> tuple[str, complex, list[complex], torch.Tensor]:
        return text + "!", self.turn, [3 + 4j, self.turn], x * 2


def test_complex_constants(tmp_path):
    module, x = torch.jit.script(WithComplex()), torch.rand(2)
    model = built(module, ("a", x), tmp_path)
    text, turn, several, doubled = model.forward("b", x.numpy())
    assert (text, turn.dtype, turn.shape, complex(turn)) == ("b!", np.complex128, (), 1 - 2j)
    assert [complex(each) for each in several] == [3 + 4j, 1 - 2j]
    close(doubled, x * 2)


def test_lists_that_branches_give_hold_what_was_computed_in_them(tmp_path):
    class Chosen(nn.Module):
        def forward(self, x: torch.Tensor, key: str) -> list[torch.Tensor]:
            return [x, x + 2, x * 3] if key == "more" else [x.exp()]

    module = torch.jit.script(Chosen())
    model = built(module, (torch.rand(2), "more"), tmp_path)
    x = torch.rand(2)
    for key in ("more", "less"):
        for found, expected in zip(model.forward(x.numpy(), key), module(x, key), strict=True):
            close(found, expected)


def test_layers_with_lists_of_weights_beside_buffers_that_are_written(tmp_path):
    class Counting(nn.Module):
        """Its recurrent layer has a list of weights of several ranks; the buffers are state."""

        def __init__(self):
            super().__init__()
            self.layer = nn.GRU(3, 4, batch_first=True)
            self.names: list[str] = ["even", "odd"]
            self.register_buffer("count", torch.zeros((), dtype=torch.int64))
            self.register_buffer("hidden", torch.zeros(1, 1, 4))

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, str]:
            found, hidden = self.layer(x, self.hidden)
            self.hidden.copy_(hidden)
            self.count += 1
            return found, self.names[int(self.count.item()) % 2]

    torch.manual_seed(0)
    module, rows = torch.jit.script(Counting()), torch.export.Dim("rows", min=1)
    model = built(module, (torch.rand(1, 3, 3),), tmp_path, dynamic_shapes=({1: rows},))
    for length in (3, 1, 5, 2):
        x = torch.rand(1, length, 3)
        found, expected = model.forward(x.numpy()), module(x)
        close(found[0], expected[0])
        assert found[1] == expected[1]


def test_what_is_known_of_constants_settles():
    plan, kind = Plan(), types.ListType(types.INT)
    statements, constants = Statements(plan, None), [[1, 1, 16], [1, 1, 16]]
    statements.constant(constants[0], kind)
    plan.grew = False
    statements.constant(constants[1], kind)
    assert not plan.grew
