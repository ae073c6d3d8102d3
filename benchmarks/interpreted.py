"""Scripted programs that stay with the interpreter, beside PyTorch's: `python -m benchmarks.interpreted`.

In: nothing. Out: a table of times per call and their ratio: the least time of many calls, the median of three processes of each
package, which take turns. Native code is off, since the interpreter is what is measured.
"""

# ruff: noqa: UP006, UP035 (TorchScript's annotations)
import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from typing import Dict, List, NamedTuple

torch = importlib.import_module(os.environ.get("INTERPRETED_LIBRARY", "rushlight"))
PROCESSES = 3
CALLS = 30
WARM_UP = 6


def joining(words: List[str]) -> str:
    """Words in capitals, joined with their lengths."""
    out: List[str] = []
    for w in words:
        out.append(w.upper() + "-" + str(len(w)))
    return ", ".join(out)


def counting(text: str) -> Dict[str, int]:
    """How often each word occurs."""
    found: Dict[str, int] = {}
    for word in text.split(" "):
        if word in found:
            found[word] += 1
        else:
            found[word] = 1
    return found


def palindromes(text: str) -> int:
    """The number of palindromes in a text."""
    n = 0
    for i in range(len(text)):
        a = i
        b = i
        while a >= 0 and b < len(text) and text[a] == text[b]:
            n += 1
            a -= 1
            b += 1
    return n


def formatting(n: int) -> str:
    """A text that grows by formatted numbers."""
    s = ""
    for i in range(n):
        s = s + f"{i}:{i * 2};"
    return s


def stripping(lines: List[str]) -> List[str]:
    """Lines without blanks, some changed."""
    out: List[str] = []
    for line in lines:
        t = line.strip()
        if t.startswith("a") or t.endswith("z"):
            out.append(t.replace("a", "b"))
        elif t.find("q") >= 0:
            out.append(t[1:-1])
    return out


def building(n: int) -> List[int]:
    """A list of numbers, and a sum over it from both ends."""
    xs: List[int] = []
    for i in range(n):
        xs.append(i * i % 7)
    total = 0
    for i in range(len(xs)):
        total += xs[i] * xs[-i - 1]
    xs.append(total)
    return xs


def nested(n: int) -> int:
    """The sum of a table, as a list of rows."""
    rows: List[List[int]] = []
    for i in range(n):
        row: List[int] = []
        for j in range(n):
            row.append(i * j)
        rows.append(row)
    total = 0
    for row in rows:
        for x in row:
            total += x
    return total


def comprehension(xs: List[int]) -> int:
    """A list from another, sorted, and both side by side."""
    ys = [x * 2 + 1 for x in xs]
    zs = sorted(ys)
    t = 0
    for y, z in zip(ys, zs):  # noqa: B905 (TorchScript knows no strict)
        t += y * z
    return t


def dicts(n: int) -> int:
    """A dict by numbers, its items and its keys."""
    d: Dict[int, float] = {}
    for i in range(n):
        d[i * 7 % 31] = float(i)
    total = 0.0
    for k, v in d.items():
        total += float(k) * v
    for k in d.keys():
        if k in d and d[k] > 10.0:
            total += 1.0
    return int(total)


def edits(a: List[int], b: List[int]) -> int:
    """The edit distance, by two rows."""
    before = [j for j in range(len(b) + 1)]
    for i in range(len(a)):
        row = [i + 1]
        for j in range(len(b)):
            row.append(min(min(row[j] + 1, before[j + 1] + 1), before[j] + (0 if a[i] == b[j] else 1)))
        before = row
    return before[-1]


def scalars(n: int) -> int:
    """A sum of numbers, with a branch."""
    s = 0
    for i in range(n):
        if i % 3 == 0:
            s += i * 2
        else:
            s -= 1
    return s


def floats(n: int) -> float:
    """A logistic map."""
    x = 0.5
    for _i in range(n):
        x = x * 3.7 * (1.0 - x)
        if x > 0.9:
            x = x / 2.0
    return x


def collatz(n: int) -> int:
    """The length of a Collatz sequence."""
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


def tensors(x, n: int):
    """A tiny tensor, changed again and again."""
    for _i in range(n):
        x = x * 0.5 + 1.0
    return x


def shapes(x, n: int) -> int:
    """Questions about a tensor's sizes."""
    t = 0
    for _i in range(n):
        t += x.size(0) * x.dim() + x.shape[1]
    return t


def tensor_list(x, n: int):
    """Tensors collected in a list."""
    xs: List[torch.Tensor] = []
    for i in range(n):
        xs.append(x + i)
    return torch.stack(xs)


def items(x) -> float:
    """The sum of a tensor's elements, as numbers."""
    t = 0.0
    for i in range(x.size(0)):
        t += float(x[i])
    return t


def tuples(n: int) -> int:
    """Fibonacci numbers, in a tuple."""
    p = (1, 2)
    for _i in range(n):
        a, b = p
        p = (b, (a + b) % 1000)
    return p[0]


class Point(NamedTuple):
    """A point of a grid."""

    x: int
    y: int


def named(n: int) -> int:
    """A list of named tuples, and their fields."""
    ps: List[Point] = []
    for i in range(n):
        ps.append(Point(i, i + 1))
    t = 0
    for p in ps:
        t += p.x * p.y
    return t


@torch.jit.script
class Counter:
    """Counts and adds up."""

    def __init__(self, start: int):
        self.n = start
        self.total = 0

    def add(self, k: int) -> None:
        """Count k."""
        self.n += 1
        self.total += k


def classes(n: int) -> int:
    """An object whose method changes its attributes."""
    c = Counter(3)
    for i in range(n):
        c.add(i)
    return c.n + c.total


def asserts(n: int) -> int:
    """Conditions that hold, and an exception that is not raised."""
    t = 0
    for i in range(n):
        assert i >= 0, "negative"
        if i > 1000000:
            raise ValueError("big")
        t += i
    return t


def anys(xs: List[int]) -> int:
    """Values of either of two types, told apart."""
    t = 0
    for x in xs:
        y: int | str = x
        if x % 2 == 0:
            y = "s"
        if isinstance(y, int):
            t += y
        else:
            t += 1
    return t


def optionals(n: int) -> int:
    """A number that may be missing."""
    last: int | None = None
    t = 0
    for i in range(n):
        if last is not None:
            t += last
        if i % 3 == 0:
            last = i
        else:
            last = None
    return t


class Scaling(torch.nn.Module):
    """A module whose parameter and attribute are read in a loop."""

    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(4))
        self.k = 3

    def forward(self, x, n: int):
        """Scale and move n times."""
        for _i in range(n):
            x = x * self.w + float(self.k)
        return x


def tiny(x: int) -> int:
    """One addition: the price of a call."""
    return x + 1


def tiny_tensor(x):
    """The same of a tensor."""
    return x + 1


def arguments() -> list[tuple[object, tuple]]:
    """The programs with what they are called with."""
    words = [f"w{i * i % 97}" for i in range(500)]
    lines = [f"  a{i}dz " if i % 3 else f" q{i}r" for i in range(500)]
    numbers = list(range(500))
    return [
        (tiny, (1,)), (tiny_tensor, (torch.ones(4),)), (joining, (words,)), (counting, (" ".join(words),)),
        (palindromes, ("abacabadabacaba" * 10,)), (formatting, (300,)), (stripping, (lines,)), (building, (1000,)),
        (nested, (40,)), (comprehension, (numbers,)), (dicts, (500,)),
        (edits, ([i * 7 % 5 for i in range(40)], [i * 3 % 5 for i in range(30)])), (scalars, (3000,)), (floats, (3000,)),
        (collatz, (97,)), (tensors, (torch.ones(4), 100)), (shapes, (torch.ones(3, 4), 500)),
        (tensor_list, (torch.ones(4), 50)), (items, (torch.ones(100),)), (tuples, (1000,)), (named, (300,)),
        (classes, (1000,)), (asserts, (1000,)), (anys, (numbers,)), (optionals, (1000,)), (Scaling(), (torch.ones(4), 100)),
    ]  # fmt: skip


def least_time(program: object, given: tuple) -> float:
    """The seconds of the fastest of many calls."""
    scripted = torch.jit.script(program)
    times = []
    for _ in range(WARM_UP + CALLS):
        start = time.perf_counter()
        scripted(*given)
        times.append(time.perf_counter() - start)
    return min(times[WARM_UP:])


def measure() -> dict[str, float]:
    """The times of this process's library, by program."""
    with torch.no_grad():
        pairs = [(getattr(program, "__name__", type(program).__name__), program, given) for program, given in arguments()]
        return {name: least_time(program, given) for name, program, given in pairs}


def measured(library: str) -> dict[str, float]:
    """The times of a library in a process of its own."""
    environment = {**os.environ, "INTERPRETED_LIBRARY": library, "RUSHLIGHT_JIT_NATIVE": "0", "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-m", "benchmarks.interpreted", "--inside"]
    return json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    """Measure and print."""
    if "--inside" in sys.argv:
        print(json.dumps(measure()))
        return
    found = [(measured("rushlight"), measured("torch")) for _ in range(PROCESSES)]
    print(f"{'':16}{'Rushlight':>12}{'PyTorch':>12}{'ratio':>8}")
    for name in found[0][0]:
        own, peer = (statistics.median(each[index][name] for each in found) for index in (0, 1))
        print(f"{name:16}{own * 1e6:>10.1f}us{peer * 1e6:>10.1f}us{own / peer:>8.2f}")


if __name__ == "__main__":
    main()
