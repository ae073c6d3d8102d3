"""Scripted functions and a traced encoder beside PyTorch's, in turns in one process: `python -m benchmarks.scripted`.

In: nothing. Out: a table of times per call, and Rushlight's as a share of PyTorch's. The encoder is compared with Rushlight's
own `compile`.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from types import ModuleType
from typing import List, Tuple  # noqa: UP035 (TorchScript's annotations)

import torch

import rushlight
from examples.bert import BertConfig, BertModel
from examples.minilm import SentenceEncoder

ROUNDS = 15
WARM_UP = 60


def collatz(limit: int) -> Tuple[int, int]:  # noqa: UP006
    """The number below `limit` with the longest Collatz sequence."""
    best = 0
    best_n = 0
    for n in range(1, limit):
        steps = 0
        m = n
        while m != 1:
            if m % 2 == 0:
                m = m // 2
            else:
                m = 3 * m + 1
            steps += 1
        if steps > best:
            best = steps
            best_n = n
    return best, best_n


def sieve(n: int) -> List[int]:  # noqa: UP006
    """The primes below n."""
    flags = [True] * n
    primes: List[int] = []  # noqa: UP006
    for i in range(2, n):
        if flags[i]:
            primes.append(i)
            j = i * i
            while j < n:
                flags[j] = False
                j += i
    return primes


def branching(x, n: int):
    """Tiny tensors, and a branch on their sum."""
    for i in range(n):
        if bool(x.sum() > 0):
            x = x * 0.5 - 0.1
        else:
            x = x + float(i) * 0.2
    return x


def lstm(x, h, c, w_ih, w_hh, b):
    """An LSTM cell over the rows of x."""
    for t in range(x.size(0)):
        gates = x[t] @ w_ih.t() + h @ w_hh.t() + b
        i, f, g, o = gates.chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
    return h, c


def recurrent(x, h, w, u):
    """A recurrent cell, whose states are collected in a list and added up."""
    outputs = [h]
    for t in range(x.size(0)):
        h = (x[t] @ w + h @ u).tanh()
        outputs.append(h)
    total = outputs[0]
    for output in outputs:
        total = total + output
    return total


def edits(a: List[int], b: List[int]) -> int:  # noqa: UP006
    """The edit distance, by two rows."""
    before = [j for j in range(len(b) + 1)]
    for i in range(len(a)):
        row = [i + 1]
        for j in range(len(b)):
            row.append(min(min(row[j] + 1, before[j + 1] + 1), before[j] + (0 if a[i] == b[j] else 1)))
        before = row
    return before[-1]


def heat(u, n: int):
    """Diffusion along a line, in place."""
    for _ in range(n):
        u[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return u


def smoothed(x, alpha: float):
    """A moving average, element by element."""
    y = x.clone()
    for i in range(1, x.size(0)):
        y[i] = alpha * x[i] + (1 - alpha) * y[i - 1]
    return y


def inputs(name: str, library: ModuleType, width: int = 128) -> tuple:
    """The arguments of a function, in one library."""
    library.manual_seed(0)
    sizes = [(100, 1, width), (1, width), (1, width), (4 * width, width), (4 * width, width), (4 * width,)]
    return {
        "collatz": lambda: (3000,), "sieve": lambda: (2000,), "branching": lambda: (library.ones(4), 100),
        "lstm": lambda: tuple(library.randn(size) * 0.1 for size in sizes),
        "recurrent": lambda: tuple(library.randn(size) * 0.1 for size in ((50, 2, 16), (2, 16), (16, 16), (16, 16))),
        "edits": lambda: ([i * 7 % 5 for i in range(40)], [i * 3 % 5 for i in range(30)]),
        "heat": lambda: (library.randn(64), 50), "smoothed": lambda: (library.randn(100), 0.1),
    }[name]()  # fmt: skip


def seconds(call: Callable[[], object]) -> float:
    """One call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def in_turns(calls: list[Callable[[], object]]) -> list[float]:
    """The median time of each call, measured in turns after a warm-up."""
    for call in calls:
        for _ in range(WARM_UP):
            call()
    found = [[seconds(call) for call in calls] for _ in range(ROUNDS)]
    return [statistics.median(times) for times in zip(*found, strict=True)]


def functions() -> list[tuple[str, float, float]]:
    """Each function's name, Rushlight's time and PyTorch's."""
    rows = []
    for function in (branching, collatz, sieve, lstm, recurrent, edits, heat, smoothed):
        calls = []
        for library in (rushlight, torch):
            scripted, given = library.jit.script(function), inputs(function.__name__, library)
            calls.append(lambda scripted=scripted, given=given: scripted(*given))
        rows.append((function.__name__, *in_turns(calls)))
    return rows


def encoder() -> tuple[str, float, float]:
    """MiniLM's sizes: traced, and compiled."""
    config = BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)
    model = SentenceEncoder(BertModel(config)).eval()
    ids = rushlight.randint(0, 1000, (8, 32))
    mask = rushlight.ones(8, 32, dtype=rushlight.int64)
    traced, compiled = rushlight.jit.trace(model, (ids, mask)), rushlight.compile(model)
    return ("traced MiniLM beside compile", *in_turns([lambda: traced(ids, mask), lambda: compiled(ids, mask)]))


def main() -> None:
    """Measure and print."""
    with rushlight.no_grad(), torch.no_grad():
        rows = [*functions(), encoder()]
    print(f"{'':32}{'Rushlight':>12}{'peer':>12}{'ratio':>8}")
    for name, own, peer in rows:
        print(f"{name:32}{own * 1e6:>10.1f}us{peer * 1e6:>10.1f}us{own / peer:>8.3f}")


if __name__ == "__main__":
    main()
