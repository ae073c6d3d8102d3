"""How scripted code overlaps: forked branches and several threads on one module, beside the same work one after the other.

`python -m benchmarks.overlap`: each package in a process of its own, one thread within operators, medians. A share of 0.5 is
what two cores can reach. `native` is compiled after the first calls; `interpreted` runs with RUSHLIGHT_JIT_NATIVE=0.
"""

from __future__ import annotations

import importlib
import json
import os
import statistics
import subprocess
import sys
import threading
import time

from benchmarks.machine import processor

torch = importlib.import_module(os.environ.get("OVERLAP_LIBRARY", "rushlight"))
ROUNDS = 9
WARM_UP = 10
CONTENDERS = {
    "Rushlight, native": {}, "Rushlight, interpreted": {"RUSHLIGHT_JIT_NATIVE": "0"}, "torch.jit": {"OVERLAP_LIBRARY": "torch"},
}  # fmt: skip


class Branch(torch.nn.Module):
    """Some layers of work for one core."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(512, 512)
        self.second = torch.nn.Linear(512, 512)

    def forward(self, x):
        for _ in range(6):
            x = torch.tanh(self.second(torch.relu(self.first(x)))) + x
        return x


class Sequential(torch.nn.Module):
    """Two branches, one after the other."""

    def __init__(self):
        super().__init__()
        self.left = Branch()
        self.right = Branch()

    def forward(self, x):
        return self.left(x) + self.right(x)


class Forked(Sequential):
    """Two branches, one of them forked."""

    def forward(self, x):
        future = torch.jit.fork(self.left, x)
        right = self.right(x)
        return torch.jit.wait(future) + right


def seconds(function) -> float:
    """The median time of a call."""
    times = []
    for _ in range(WARM_UP):
        function()
    for _ in range(ROUNDS):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def in_threads(function, count: int) -> None:
    """Call a function once in each of several threads, at once."""

    def call():
        with torch.no_grad():
            function()

    threads = [threading.Thread(target=call) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def measure() -> dict[str, list[float]]:
    """Milliseconds of the parts one after the other, and at once."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(256, 512)
    with torch.no_grad():
        after, forked, module = (torch.jit.script(kind().eval()) for kind in (Sequential, Forked, Branch))
        branches = [seconds(lambda: after(x)), seconds(lambda: forked(x))]
        calls = [seconds(lambda: [module(x) for _ in range(4)]), seconds(lambda: in_threads(lambda: module(x), 4))]
    return {"two branches": [1e3 * each for each in branches], "four calls": [1e3 * each for each in calls]}


def main() -> None:
    """Print the table, or what one contender measured."""
    if os.environ.get("OVERLAP_CHILD"):
        print(json.dumps(measure()))
        return
    print(f"{processor()}\n\n| | work | one after the other | at once | share |\n|---|---|---|---|---|")
    for name, settings in CONTENDERS.items():
        environment = {**os.environ, **settings, "OVERLAP_CHILD": "1"}
        command = [sys.executable, "-m", "benchmarks.overlap"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        for work, (after, at_once) in json.loads(done.stdout.splitlines()[-1]).items():
            print(f"| {name} | {work} | {after:.1f} ms | {at_once:.1f} ms | {at_once / after:.2f} |", flush=True)


if __name__ == "__main__":
    main()
