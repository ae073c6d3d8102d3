"""Scripted functions with loops and branches, for comparing native code with the interpreter and with Python."""

from __future__ import annotations

import math
from typing import List, Tuple  # noqa: UP035 (TorchScript's annotations)

import rushlight as torch
from rushlight import Tensor


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


def divisions(a: int, b: int) -> Tuple[int, int, float]:  # noqa: UP006
    """Division in three forms, in a loop."""
    q = 0
    r = 0
    d = 0.0
    for _ in range(1):
        q = a // b
        r = a % b
        d = a / b
    return q, r, d


def float_divisions(a: float, b: float) -> Tuple[float, float, float]:  # noqa: UP006
    """The same divisions with floats."""
    q = 0.0
    r = 0.0
    d = 0.0
    for _ in range(1):
        q = a // b
        r = a % b
        d = a / b
    return q, r, d


def zero_divisions(a: float, b: float) -> Tuple[float, float]:  # noqa: UP006
    """Float divisions by zero that give infinities."""
    q = 0.0
    d = 0.0
    for _ in range(1):
        q = a // b
        d = a / b
    return q, d


def wrapping(a: int, n: int) -> int:
    """Products and sums beyond 64 bits."""
    for i in range(n):
        a = a * 6364136223846793005 + 1442695040888963407 - i
    return a


def bits(a: int, b: int) -> int:
    """Bitwise operators."""
    out = 0
    for i in range(4):
        out = out ^ ((a << i) | (b >> i)) & (a ^ b)
    return out


def mathematics(x: float, n: int) -> float:
    """Functions of floats, with branches."""
    total = 0.0
    for i in range(n):
        y = x * float(i) + 0.5
        if y > 2.0 and i % 3 != 0:
            total += math.sqrt(y) + math.sin(y)
        elif not (y < 1.0):
            total -= math.cos(y) * math.tanh(y)
        else:
            total += float(int(y)) + math.floor(y) - abs(-y) + max(y, 0.25) + min(i, 3)
    return total


def countdown(start: int, stop: int, step: int) -> List[int]:  # noqa: UP006
    """Ranges with steps."""
    found: List[int] = []  # noqa: UP006
    for i in range(start, stop, step):
        found.append(i)
    return found


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


def sorting(values: List[int]) -> List[int]:  # noqa: UP006
    """A copy of a list, sorted by exchange, without its last element."""
    out = values + [7]
    for i in range(len(out)):
        for j in range(len(out) - 1 - i):
            if out[j] > out[j + 1]:
                low = out[j + 1]
                out[j + 1] = out[j]
                out[j] = low
    out.pop()
    return out


def element(values: List[float], index: int) -> float:  # noqa: UP006
    """A list element at an index that may be negative or out of range."""
    total = 0.0
    for _ in range(2):
        total += values[index]
    return total


def early(n: int) -> int:
    """Returns and breaks inside loops."""
    total = 0
    for i in range(n):
        if i == 5:
            continue
        if i > 20:
            break
        if total > 100:
            return -total
        total += i * i
    return total


def refusing(n: int) -> int:
    """A program that raises an exception itself."""
    total = 0
    for i in range(n):
        if i > 3:
            raise ValueError(f"too many: {i}")
        total += i
    return total


def decay(x: Tensor, n: int) -> Tensor:
    """Tiny tensors, and a branch on their sum."""
    for i in range(n):
        if bool(x.sum() > 0):
            x = x * 0.5 - 0.1
        else:
            x = x + float(i) * 0.2
    return x


def swapped(a: Tensor, b: Tensor, n: int) -> Tuple[Tensor, Tensor]:  # noqa: UP006
    """Tensors that swap in every round."""
    for _ in range(n):
        a, b = b, a * 2 + b
    return a, b


def lstm(x: Tensor, h: Tensor, c: Tensor, w_ih: Tensor, w_hh: Tensor, b: Tensor) -> Tuple[Tensor, Tensor, Tensor]:  # noqa: UP006
    """An LSTM cell over the rows of x."""
    outputs: List[Tensor] = []  # noqa: UP006
    for t in range(x.size(0)):
        gates = x[t] @ w_ih.t() + h @ w_hh.t() + b
        i, f, g, o = gates.chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        outputs.append(h)
    return torch.stack(outputs), h, c


def rows(x: Tensor, index: int) -> Tensor:
    """Rows at indices computed by the program, joined along the last dimension."""
    found: List[Tensor] = []  # noqa: UP006
    for i in range(3):
        found.append(x[index - i] * 2)
    return torch.cat(found, 0) + torch.stack(found, 1).sum()


def newton(x: Tensor) -> Tuple[Tensor, int]:  # noqa: UP006
    """A loop whose condition is a tensor."""
    y = torch.ones_like(x)
    steps = 0
    while bool(((y * y - x).abs() > 1e-4).any()) and steps < 50:
        y = (y + x / y) / 2
        steps += 1
    return y, steps


def measured(x: Tensor) -> Tensor:
    """Sizes and dtypes as numbers."""
    total = 0
    for i in range(x.dim()):
        total += x.size(i) * (i + 1)
    if x.size(0) > 2 and x.is_floating_point():
        return x * total
    return x - total


def maybe_same(x: Tensor, n: int) -> Tensor:
    """Returns the argument itself if the loop runs zero times."""
    for _ in range(n):
        x = x + 1
    return x


def greedy(logits: Tensor, start: int, n: int) -> List[int]:  # noqa: UP006
    """A greedy decoder over a table of next-token scores."""
    tokens = [start]
    for _ in range(n):
        tokens.append(int(logits[tokens[-1]].argmax()))
    return tokens
