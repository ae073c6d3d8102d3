"""Pure Python beside compiled functions: `python -m benchmarks.hook` prints what the frame hook costs those who do not use it.

A loop of calls and a recursion run before anything is compiled, while a compiled function exists, and after `reset()`; each of
these states has processes of its own, in turns, beside ones that import nothing.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import statistics
import subprocess
import sys
from collections.abc import Callable

from benchmarks.machine import ROOT
from benchmarks.report import duration, table
from benchmarks.runner import stay_on_cores
from benchmarks.timing import sample

STATES = {
    "plain": "nothing imported",
    "before": "imported",
    "while": "a compiled function exists",
    "after": "after reset()",
}


def add(a: int, b: int) -> int:
    return a + b


def loop(count: int) -> int:
    total = 0
    for index in range(count):
        total = add(total, index)
    return total


def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


CASES: dict[str, Callable[[], object]] = {
    "loop of 30,000 calls": lambda: loop(30_000),
    "recursion, 8,000 calls": lambda: fibonacci(18),
}


def prepare(library: str, state: str) -> object:
    """Bring the process into a state; what is returned has to be kept."""
    if state == "plain":
        return None
    torch = importlib.import_module(library)
    if state == "before":
        return torch
    compiled = torch.compile(lambda x: x + 1, backend="eager")
    compiled(torch.ones(3))
    if state == "after":
        importlib.import_module(f"{library}.compiler").reset()
    return compiled


def measure(library: str, state: str, budget: float) -> dict[str, float]:
    """Seconds of each case in this process: the least of many, which other processes disturb least."""
    kept = prepare(library, state)
    found = {name: min(sample(case, budget)) for name, case in CASES.items()}
    del kept
    return found


def run_once(library: str, state: str, budget: float) -> dict[str, float]:
    """`measure` in a new process."""
    command = [sys.executable, "-m", "benchmarks.hook", "--measure", state, "--library", library, "--budget", str(budget)]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=True)
    return json.loads(finished.stdout)


def run(library: str, rounds: int, budget: float) -> dict[str, dict[str, float]]:
    """The median over rounds of each state's figures."""
    found: dict[str, list[dict[str, float]]] = {state: [] for state in STATES}
    for _ in range(rounds):
        for state, figures in found.items():
            figures.append(run_once(library, state, budget))
    return {
        state: {name: statistics.median(one[name] for one in figures) for name in CASES} for state, figures in found.items()
    }


def section(found: dict[str, dict[str, float]], title: str) -> list[str]:
    """The part of the report: states down, and each case's ratio to the process that imports nothing."""
    rows = []
    for state, text in STATES.items():
        cells = [f"{duration(seconds)} ({seconds / found['plain'][name]:.2f})" for name, seconds in found[state].items()]
        rows.append([text, *cells])
    return [f"### Pure Python beside {title} (time, and ratio to a process without it)", "", *table(["", *CASES], rows)]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hook", description="Pure Python while functions are compiled.")
    parser.add_argument("--library", choices=("rushlight", "torch"), default="rushlight")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--budget", type=float, default=0.5, help="seconds of calls per case and process")
    parser.add_argument("--measure", choices=STATES, help="measure one state in this process, and print JSON")
    options = parser.parse_args(arguments)
    if options.measure:
        stay_on_cores(1)
        print(json.dumps(measure(options.library, options.measure, options.budget)))
        return 0
    print("\n".join(section(run(options.library, options.rounds, options.budget), options.library)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
