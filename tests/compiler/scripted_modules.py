"""Modules whose scripted form is compared with the module itself, call by call: flags, state, containers, parts that only the
interpreter runs. `CASES` gives each a maker of arguments for a call's number."""

from __future__ import annotations

from collections import namedtuple
from typing import Dict, List, NamedTuple, Optional, Tuple  # noqa: UP035 (TorchScript's annotations)

import rushlight as torch
from rushlight import nn


class Flags(nn.Module):
    """Branches on attributes that are never assigned."""

    def __init__(self):
        super().__init__()
        self.linear, self.norm, self.drop = nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5)
        self.mode, self.sizes, self.scale, self.use = "wide", [1, 2, 3], 2.0, True

    def forward(self, x):
        y = self.drop(self.norm(self.linear(x)))
        if self.training:
            y = y + 1
        if self.mode == "wide" and self.use:
            for size in self.sizes:
                y = y * self.scale + size
        return y.relu()


class Recurrent(nn.Module):
    """A state that data-dependent branches assign, and a counter."""

    n: int

    def __init__(self):
        super().__init__()
        self.linear, self.n = nn.Linear(3, 3), 0
        self.hidden = torch.zeros(3)
        self.register_buffer("mean", torch.zeros(3))

    def forward(self, x):
        self.n += 1
        y = self.linear(x)
        if bool(y.sum() > 0):
            self.hidden = self.hidden + y
        else:
            self.hidden = self.hidden - 1.0
        for _ in range(5):
            if bool(self.hidden.sum() > float(3 * self.n)):
                break
            self.hidden = self.hidden * 1.1 + 0.1
        self.mean.mul_(0.9).add_(y * 0.1)
        return self.hidden * 1.0, self.n


class GrowingCache(nn.Module):
    """A cache of keys that grows by one row per call."""

    def __init__(self):
        super().__init__()
        self.linear, self.keys, self.n = nn.Linear(4, 4), torch.zeros(1, 0, 4), 0

    def forward(self, x):
        self.keys = torch.cat([self.keys, self.linear(x)], 1)
        self.n += 1
        weights = torch.softmax(x @ self.keys.transpose(1, 2), -1)
        return weights @ self.keys, self.n


class Lists(nn.Module):
    """Lists and dicts in attributes, mutated by calls."""

    keys: List[torch.Tensor]  # noqa: UP006
    named: Dict[str, torch.Tensor]  # noqa: UP006

    def __init__(self):
        super().__init__()
        self.keys, self.named, self.linear, self.count = [], {}, nn.Linear(3, 3), 0

    def forward(self, x, scale: float):
        key = self.linear(x) * scale
        self.keys.append(key)
        self.named["last"] = key
        self.count += 1
        total = torch.cat(self.keys).sum(0)
        if len(self.keys) > 4:
            self.keys.pop(0)
        return total * scale, self.named


Pair = namedtuple("Pair", ["first", "second"])


class Named(NamedTuple):
    """A tuple with names."""

    value: torch.Tensor
    count: int


class Structured(nn.Module):
    """Arguments and results of every structure."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(
        self, xs: List[torch.Tensor], pair: Tuple[torch.Tensor, int], named: Dict[str, torch.Tensor],  # noqa: UP006
        mask: Optional[torch.Tensor] = None,  # noqa: UP045
    ):  # fmt: skip
        y = self.linear(xs[0]) + pair[0] * pair[1] + named["a"]
        xs.append(y)
        if mask is not None:
            y = y * mask
        z = y.relu()
        z.add_(1.0)
        return {"y": y, "z": z, "again": z}, xs, Named(z * 2, len(xs))


class Cut(nn.Module):
    """Parts that only the interpreter runs: data-dependent sizes, strings, random numbers, exceptions."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(4, 8), nn.Linear(8, 8), ""

    def forward(self, x, name: str):
        y = self.first(x).tanh()
        y = self.second(y).sigmoid() * 2
        found = torch.nonzero(y[0] > 1.0).flatten()
        self.last = name + "-" + str(found.size(0))
        z = y.index_select(1, found) * 3.0
        z = z.relu() - z.sum()
        if z.numel() > 1000:
            raise ValueError("too large")
        words = self.last.split("-")
        w = torch.matmul(z, z.t()).exp()
        return w.log1p() + len(words), self.last


class Beams(nn.Module):
    """A loop with a data-dependent end, and a list that grows in it."""

    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.GRUCell(6, 6), nn.Linear(6, 5)

    def forward(self, state, longest: int):
        found: List[torch.Tensor] = []  # noqa: UP006
        for index in range(longest):
            state = self.cell(state, state)
            best = self.out(state).argmax(1)
            found.append(best)
            if bool((best == index).all()):
                break
        return torch.stack(found, 1), state


@torch.jit.interface
class Step(nn.Module):
    """The interface of the steps of `Chosen`."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pass


class Twice(nn.Module):
    """A step."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) * 2 + self.linear(x.relu())


class Chosen(nn.Module):
    """A submodule behind an interface, and forked branches."""

    step: Step

    def __init__(self):
        super().__init__()
        self.step, self.other = Twice(), nn.Linear(3, 3)

    def forward(self, x):
        future = torch.jit.fork(self.other, x)
        y = self.step.forward(x).tanh()
        return y + torch.jit.wait(future) * y


class NoGrad(nn.Module):
    """A part under no_grad."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        with torch.no_grad():
            y = self.linear(x).relu()
            y = y * y + x
        return y * 2, torch.is_grad_enabled()


class Chunks(nn.Module):
    """Overlapping windows over a buffer that was split before."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        y = self.linear(x)
        y /= 2.0
        windows = y.view(4, 2, 4).transpose(0, 1).as_strided([2, 3, 2, 4], [4, 8, 8, 1])
        return torch.einsum("bcxd,bcyd->bcxy", windows, windows)


class Places(nn.Module):
    """Views of an argument at any storage offset."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return self.linear(x.as_strided([2, 4], [2, 1], 1)).relu() + x.mean()


def _structured(call: int) -> tuple:
    mask = None if call % 2 else torch.ones(3)
    return [torch.randn(3)], (torch.randn(3), 2), {"a": torch.randn(3)}, mask


CASES = {
    Flags: lambda call: (torch.randn(2, 4),),
    Recurrent: lambda call: (torch.randn(3),),
    GrowingCache: lambda call: (torch.randn(1, 1, 4),),
    Lists: lambda call: (torch.randn(2, 3), 1.0 + call * 0.1),
    Structured: _structured,
    Cut: lambda call: (torch.randn(2, 4), f"call{call}"),
    Beams: lambda call: (torch.randn(2, 6), 4 + call % 3),
    Chosen: lambda call: (torch.randn(2, 3),),
    NoGrad: lambda call: (torch.randn(2, 3),),
    Chunks: lambda call: (torch.randn(8, 4),),
}
