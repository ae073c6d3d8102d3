"""Scripted and traced modules as C++: loops, branches, lists, tuples, dicts, strings, None, and state."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.compiler.scripted.regions import Unsupported
from rushlight.deploy import NotExportable, export, scripted
from rushlight.deploy.binding import ModelError
from tests.deploy.built import arrays, built, close


class Streaming(nn.Module):
    """Begins with an empty context, as streams do; remembers how often it ran."""

    context: torch.Tensor

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)
        self.context = torch.zeros(0)
        self.runs: int = 0
        self.names: list[str] = []

    def forward(self, x: torch.Tensor, rate: int) -> tuple[torch.Tensor, int]:
        if rate != 8 and rate != 16:
            raise ValueError(f"the rate is {rate}")
        if not len(self.context):
            self.context = torch.zeros(x.size(0), 4)
        self.runs += 1
        self.context = self.context * 0.5 + x
        return self.layer(self.context) * (2 if rate == 16 else 1), self.runs

    @torch.jit.export
    def forget(self):
        self.context = torch.zeros(0)
        self.runs = 0


@pytest.fixture(scope="module")
def streaming(tmp_path_factory):
    torch.manual_seed(0)
    module = torch.jit.script(Streaming())
    x = torch.rand(2, 4)
    examples = {"forward": [(x, 16), (x, 8)], "forget": ()}
    return module, built(module, examples, tmp_path_factory.mktemp("streaming"), "streaming")


def test_state_of_other_sizes(streaming):
    module, model = streaming
    for rate in (16, 16, 8, 16):
        x = torch.rand(2, 4)
        found, runs = model.forward(x.numpy(), rate)
        expected = module(x, rate)
        close(found, expected[0])
        assert runs == expected[1]
    module.forget()
    model.forget()
    x = torch.rand(2, 4)
    close(model.forward(x.numpy(), 8)[0], module(x, 8)[0])
    model.reset()
    assert model.forward(x.numpy(), 8)[1] == 1


def test_export_leaves_the_module_as_it_is():
    assert torch.jit.script(Streaming()).runs == 0


def test_other_values_are_refused(streaming):
    with pytest.raises(ModelError, match=r"\(rate .= 16\) is (True|False) there|rate is"):
        streaming[1].forward(np.zeros((2, 4), np.float32), 11)
    with pytest.raises(ModelError, match="rate must be an int, got a float"):
        streaming[1].forward(np.zeros((2, 4), np.float32), 8.0)


class Found(NamedTuple):
    steps: int
    last: torch.Tensor


class Language(nn.Module):
    """What structured programs have: loops over values, lists, optional results."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor([1.5, -0.5]))

    def forward(self, n: int, x: torch.Tensor, limits: list[float]) -> tuple[list[int], torch.Tensor | None, Found]:
        seen = [n]
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            seen.append(n)
        total = 0.0
        for limit in limits:
            total += limit
        kept: torch.Tensor | None = None
        steps = 0
        while bool(x.sum() < total):
            x = x + self.scale
            steps += 1
            if steps > 20:
                kept = x
                break
        return seen, kept, Found(steps, x)


def test_loops_lists_and_optionals(tmp_path):
    module = torch.jit.script(Language())
    model = built(module, (6, torch.zeros(2), [1.0, 2.0]), tmp_path)
    for n, limits in ((6, [1.0, 2.0]), (27, [3.5]), (1, []), (7, [100.0])):
        x = torch.rand(2)
        seen, kept, found = model.forward(n, x.numpy(), limits)
        expected = module(n, x, limits)
        assert seen == expected[0]
        assert (kept is None) == (expected[1] is None)
        assert found[0] == expected[2].steps
        close(found[1], expected[2].last)
    with pytest.raises(ModelError, match="limits must be a float, got an int"):
        model.forward(3, np.zeros(2, np.float32), [1])


class Containers(nn.Module):
    def forward(self, parts: dict[str, torch.Tensor], more: list[torch.Tensor], mode: str = "sum"):
        merged = parts["a"] + parts["b"]
        for each in more:
            merged = merged * each
        return {"merged": merged, "parts": [merged + 1, merged - 1]}, mode + "!"


def test_dicts_lists_and_strings(tmp_path):
    module = torch.jit.script(Containers())
    parts, more = {"a": torch.rand(2), "b": torch.rand(2)}, [torch.rand(2), torch.rand(2)]
    model = built(module, (parts, more), tmp_path)
    given = {"b": parts["b"].numpy(), "a": parts["a"].numpy()}  # in any order
    found, text = model.forward(given, arrays(*more))
    expected, _ = module(parts, more)
    close(found["merged"], expected["merged"])
    close(found["parts"][1], expected["parts"][1])
    assert text == "sum!"
    with pytest.raises(ModelError, match="more must have 2 items, got 1"):
        model.forward(given, arrays(more[0]))
    with pytest.raises(ModelError, match="parts has other items"):
        model.forward({"a": given["a"], "c": given["b"]}, arrays(*more))


def test_traced_with_open_sizes(tmp_path):
    torch.manual_seed(1)
    module = torch.jit.trace(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), torch.rand(2, 5, 8))
    n, t = torch.export.Dim("n", max=16), torch.export.Dim("t", max=64)
    model = built(module, (torch.rand(2, 5, 8),), tmp_path, dynamic_shapes=({0: n, 1: t},))
    for size in ((2, 5), (1, 7), (3, 1), (1, 1)):
        x = torch.rand(*size, 8)
        close(model.forward(x.numpy()), module(x))


def test_decoder_whose_length_the_values_decide(tmp_path):
    from examples.deploy.decoder import Seq2Seq

    torch.manual_seed(0)
    module = torch.jit.script(Seq2Seq().eval())
    model = built(module, (torch.tensor([[3, 4, 5]]), 8), tmp_path)
    for ids, limit in (([3, 4, 5], 8), ([7, 1, 9], 30), ([2, 2, 2], 1)):
        logits, chosen = model.forward(np.array([ids]), limit)
        expected = module(torch.tensor([ids]), limit)
        close(logits, expected[0])
        assert chosen == expected[1]
    with pytest.raises(ModelError, match="no tensors to put together"):
        model.forward(np.array([[3, 4, 5]]), 0)
    with pytest.raises(ModelError, match="raises for these inputs"):
        model.forward(np.array([[3, 4, 99]]), 3)


class Noting(nn.Module):
    """Keeps the last three numbers in a list, and gives it."""

    seen: list[int]

    def __init__(self):
        super().__init__()
        self.seen = [0, 0, 0]

    def forward(self, x: torch.Tensor, n: int) -> tuple[torch.Tensor, list[int]]:
        self.seen[n] = self.seen[n] + 1
        return x * 2 + 1, self.seen


@pytest.mark.parametrize("as_graph", [False, True])
def test_a_list_that_a_run_changes_and_gives(tmp_path, monkeypatch, as_graph):
    def no_form(*given):
        raise Unsupported("not this one")

    if as_graph:
        monkeypatch.setattr(scripted.DirectForm, "__init__", no_form)
    module = torch.jit.script(Noting())
    model = built(module, {"forward": [(torch.rand(2), 1)]}, tmp_path)
    assert model.forward(np.zeros(2, np.float32), 1)[1] == module(torch.zeros(2), 1)[1] == [0, 1, 0]
    if not as_graph:
        for n in (2, 1, 0):
            assert model.forward(np.zeros(2, np.float32), n)[1] == module(torch.zeros(2), n)[1]


def test_what_has_no_form_is_refused(tmp_path):
    @torch.jit.script
    def chosen(x: torch.Tensor, mask: torch.Tensor):
        while bool(x.sum() < 10):
            x = torch.cat([x, x])
        return torch.unique(x)

    with pytest.raises(NotExportable, match="(?s)forward cannot be exported.*as one graph:.*statement by statement:"):
        export(chosen, (torch.ones(2), torch.ones(2).bool()), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(NotExportable, match="has no method 'nothing'; it has forward"):
        export(torch.jit.script(Containers()), {"nothing": ()}, tmp_path / "out")


@torch.jit.script
def numbers(x: float, y: float, i: int, by: int) -> tuple[float, float, float, float, float, float, float, int, int]:
    return x**y, math.sin(x), math.exp(x), math.asin(x), math.fmod(x, y), math.log1p(x), round(x), i << by, i >> by


@torch.jit.script
def numbers_in_a_loop(x: float, y: float, i: int, by: int, text: str) -> list[float]:
    found: list[float] = []
    while len(found) < 3:
        found = found + [x**y, math.sinh(x), math.acos(x), float(i << by), float(i >> by)]
    return found


@pytest.mark.parametrize("function", [numbers, numbers_in_a_loop])
def test_numbers_beyond_the_domains_of_functions(tmp_path, function):
    rest = ("a",) if function is numbers_in_a_loop else ()
    model = built(function, (1.5, 2.0, 3, 1, *rest), tmp_path)
    for x, y, i, by in (
        (-7.0, 3.0, -7, 64), (0.0, 0.0, 1, 63), (math.inf, 2.0, -1, 100), (1e4, 0.0, 1, 0), (-0.25, 0.5, 5, 2), (math.nan, 1.0, 0, 0),
    ):  # fmt: skip
        found, expected = model.forward(x, y, i, by, *rest), function(x, y, i, by, *rest)
        np.testing.assert_allclose(np.array(found, float), np.array(expected, float), rtol=1e-12)
    with pytest.raises(ModelError, match="ZeroDivisionError: 0.0 cannot be raised to a negative power"):
        model.forward(0.0, -1.0, 1, 1, *rest)
    with pytest.raises(ModelError, match="RuntimeError: negative shift count"):
        model.forward(1.0, 1.0, 1, -1, *rest)


def test_open_sizes_may_be_zero_and_keep_their_bounds(tmp_path):
    module = torch.jit.script(nn.Linear(3, 2))
    dims = torch.export.Dim("n"), torch.export.Dim("n", min=1, max=8)
    model, bounded = (
        built(module, (torch.rand(4, 3),), tmp_path / str(number), dynamic_shapes=({0: dim},)) for number, dim in enumerate(dims)
    )
    for n in (0, 1, 2, 9):
        x = torch.rand(n, 3)
        close(model.forward(x.numpy()), module(x))
    for n in (0, 9):
        with pytest.raises(ModelError, match=r"input must be as in input: float32\[n, 3\] with 1 to 8 in dimension 0, got the sizes"):
            bounded.forward(np.zeros((n, 3), np.float32))


def test_examples_of_another_form(tmp_path):
    program = torch.export.export(nn.Linear(3, 2), (torch.rand(1, 3),))
    scripted_module, x = torch.jit.script(nn.Linear(3, 2)), torch.rand(2, 3)
    for model, example, said in (
        (nn.Linear(3, 2), x, "is a tuple of the call's arguments, got Tensor"),
        (scripted_module, x, "the example of a call is a tuple of its arguments"),
        (scripted_module, {}, "names no method"),
        (scripted_module, [], "got an empty list"),
        ({}, (), "the dict of methods is empty"),
        ({"forward": nn.Linear(3, 2)}, (), "holds exported programs .*, got Linear"),
        (program, (x,), "an exported program has its inputs and sizes already"),
    ):
        with pytest.raises((TypeError, ValueError), match=said):
            export(model, example, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@torch.jit.script
def described(x: float, n: int) -> str:
    return f"{x} and {n}"


class Cleared(nn.Module):
    """A state that a call sets to a number or to zero."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(2))

    def forward(self, x: torch.Tensor, start: float | None) -> torch.Tensor:
        if start is not None:
            self.total = torch.zeros_like(self.total) + start
        self.total = self.total + x
        return self.total


def test_floats_of_the_example_are_not_taken_for_granted(tmp_path):
    model = built(described, (1.5, 2), tmp_path / "described")
    for x in (1e20, math.nan, 0.1, -0.0):
        assert model.forward(x, 7) == described(x, 7)
    module = torch.jit.script(Cleared())
    model = built(module, (torch.ones(2), 2.5), tmp_path / "cleared")
    for start in (1.0, None, 3.5, None):
        close(model.forward(np.ones(2, np.float32), start), module(torch.ones(2), start))
