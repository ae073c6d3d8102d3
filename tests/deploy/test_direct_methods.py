"""The language of programs written statement by statement: methods through interfaces, managers, unions, strings, lists, numbers."""

# ruff: noqa: UP031, UP032 (ways of making text that are tested)

from __future__ import annotations

import ctypes
import math
import re
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.deploy.binding import ModelError
from rushlight.deploy.direct.methods import resolve_methods
from tests.deploy.built import built, close


@torch.jit.interface
class Step:
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pass


class Doubled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


class Negated(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return -x


class Choosing(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = nn.ModuleList([Doubled(), Negated()])

    def forward(self, x: torch.Tensor, which: int) -> torch.Tensor:
        step: Step = self.steps[which]
        return step.forward(x)


@torch.jit.script
class Timer:
    def __init__(self, log: list[str], name: str):
        self.log = log
        self.name = name

    def __enter__(self):
        self.log.append("in " + self.name)
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any):
        self.log.append("out " + self.name)


def timed(names: list[str], limit: int | str | list[int]) -> tuple[list[str], int]:
    log: list[str] = []
    for name in names:
        with Timer(log, name) as timer:
            log.append(timer.name.upper())
            if len(log) > 5:
                break
    if isinstance(limit, int):
        return log, limit
    if isinstance(limit, str):
        return log, len(limit)
    return log, sum(limit)


def test_managers_and_unions(tmp_path):
    function = torch.jit.script(timed)
    model = built(function, (["a"], 3), tmp_path)
    for names, limit in ((["x", "y"], 7), (["p", "q", "r"], "four"), ([], [1, 2, 3])):
        assert model.forward(names, limit) == function(names, limit)
    with pytest.raises(ModelError, match="limit must be one of"):
        model.forward([], 1.5)


def optional(x: torch.Tensor, bias: torch.Tensor | None, scale: float | None, n: int) -> torch.Tensor | None:
    if n < 0:
        return None
    for _ in range(n):
        x = torch.cat([x, x])
    if bias is not None:
        x = x + bias
    return x if scale is None else x * scale


def test_optional_arguments(tmp_path):
    function = torch.jit.script(optional)
    model = built(function, (torch.rand(2), torch.rand(1), 0.5, 2), tmp_path)
    for bias, scale, n in ((torch.rand(1), 2.0, 3), (None, None, 0), (None, 0.5, 1), (torch.rand(1), None, -1)):
        x = torch.rand(2)
        found = model.forward(x.numpy(), None if bias is None else bias.numpy(), scale, n)
        expected = function(x, bias, scale, n)
        assert (found is None) == (expected is None)
        if expected is not None:
            close(found, expected)


def spelled(a: str, b: str, n: int, x: float) -> list[str]:
    made = [a.upper(), a.lower(), a.title(), a.capitalize(), a.swapcase(), a.strip(), a.lstrip("ab"), a.rstrip(), a + b, b * n]
    made += [a.replace(b, "-"), a.zfill(12), a.ljust(9, "."), a.rjust(9), a.center(n + 4, "*"), a[1:n], a[-1:], a[::-1], a[n:]]
    made += a.split(" ") + a.split() + a.split(b, 1) + a.splitlines() + list(a.partition(b)) + list(a.rpartition(b)) + list(b)
    made += [
        "|".join(a.split()),
        "{} of {}".format(n, x),
        "%d%% %5.2f %s" % (n, x, b),
        str(x),
        str(n),
        str(n > 3),
        hex(n),
        bin(n),
    ]
    flags = [
        a.isdigit(),
        a.isalpha(),
        a.isspace(),
        a.isupper(),
        a.islower(),
        a.startswith(b),
        a.endswith(b),
        b in a,
        a < b,
        a == b,
    ]
    numbers = [a.find(b), a.rfind(b), a.count(b), len(a), ord(b[0]), int("12") + n, round(float("2.5") * 2)]
    return made + [str(each) for each in flags] + [str(each) for each in numbers] + [chr(n + 97)]


def test_methods_of_strings(tmp_path):
    function = torch.jit.script(spelled)
    model = built(function, ("some text", "t", 3, 0.5), tmp_path)
    for values in (("some text", "t", 3, 0.5), (" ab\nAb  c ", "b", 5, 1e-9), ("", "x", 0, -2.0), ("12 é", "é", 2, 1 / 3)):
        try:
            expected = function(*values)
            found = model.forward(*values)
        except ModelError as error:
            assert "beyond ASCII" in str(error) and not values[0].isascii()
            continue
        assert found == expected


def numbers(values: list[int], more: list[float], n: int) -> tuple[list[int], list[float], dict[int, str], int]:
    made = [each for each in values]
    made.extend(range(n, 0, -2))
    made.reverse()
    made.insert(1, n)
    last = made.pop()
    made.remove(n)
    made.sort(reverse=True)
    made[0] = made[-1] // 2 + abs(last) % 7 - (n << 1)
    found = {each: str(each * 2) for each in made}
    del found[made[1]]
    found.update({100: "c"})
    reals = sorted(more) + [max(more), min(more), sum(more), float(n) ** 0.5, math.floor(more[0]) + 0.5, math.exp(more[0])]
    counted = made.count(made[0]) + made.index(made[-1]) + len(found) + int(n in made) + min(made) + sum(made)
    for key, text in found.items():
        counted += key if text != "4" else 1
    return made[:3] + made[-2:], reals, found, counted


def test_lists_dicts_and_numbers(tmp_path):
    function = torch.jit.script(numbers)
    model = built(function, ([3, 1, 2], [0.5, 1.5], 4), tmp_path)
    for values in (([3, 1, 2], [0.5, 1.5], 4), ([5, -9, 12, 12], [-1.25], 7), ([0, 8], [3.0, 2.0, 1.0], 9)):
        found, expected = model.forward(*values), function(*values)
        assert (found[0], found[2], found[3]) == (expected[0], expected[2], expected[3])
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-12)


def spoken(n: int, words: list[str]) -> int:
    for place, word in enumerate(words):
        print(place, word, n / 2, [n], word == "b")
    return n


def test_what_is_printed(tmp_path, capfd):
    function = torch.jit.script(spoken)
    model = built(function, (3, ["a"]), tmp_path)
    capfd.readouterr()
    model.forward(3, ["a", "b"])
    ctypes.CDLL(None).fflush(None)
    found = capfd.readouterr().out
    function(3, ["a", "b"])
    assert found == capfd.readouterr().out


def test_a_branch_for_each_module():
    module = torch.jit.script(Choosing())
    graph = module._c.type.find_method("forward").prepared_graph()
    resolve_methods(graph, module._c)
    text = re.sub(r" # .*", "", str(graph))
    kinds = re.findall(r"= ([\w:]+)(\[name=\"\w+\"\])?\(", text)
    assert [kind + name for kind, name in kinds if kind != "prim::Constant"] == [
        'prim::GetAttr[name="steps"]', "prim::ModuleContainerIndex", "aten::eq", "prim::If",
        'prim::GetAttr[name="0"]', "aten::mul", "aten::eq", "prim::If", 'prim::GetAttr[name="1"]', "aten::neg",
        "prim::RaiseException", "prim::Uninitialized",
    ]  # fmt: skip


def chosen(x: torch.Tensor, mask: torch.Tensor, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, int]:
    picked = x[mask]
    if picked.size(0) > 2:
        picked = picked + 1
    best = picked[rows[: picked.size(0)].argmax()] if picked.size(0) > 0 else torch.zeros(2)
    return picked, best, torch.nonzero(x > 0.5), len(torch.masked_select(x, x > 0.5))


def test_what_elements_choose(tmp_path):
    function = torch.jit.script(chosen)
    mask = torch.tensor([True, False, True, True])
    model = built(function, (torch.rand(4, 2), mask, torch.rand(4)), tmp_path)
    for mask in ([True, False, True, True], [False] * 4, [False, True, False, False], [True] * 4):
        x, rows = torch.rand(4, 2), torch.rand(4)
        found = model.forward(x.numpy(), np.array(mask), rows.numpy())
        expected = function(x, torch.tensor(mask), rows)
        for one, other in zip(found[:3], expected[:3], strict=True):
            close(one, other)
        assert found[3] == expected[3]
