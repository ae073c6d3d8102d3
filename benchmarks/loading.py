"""Loading TorchScript archives and calling them once, beside PyTorch: `python -m benchmarks.loading ARCHIVE.pt ...`.

In: archives, as `benchmarks.make_archives` writes them: the arguments of a call lie beside each as `ARCHIVE.inputs.pt`, a dict
of tensors and numbers by position; an archive without is only loaded. Out: a table of milliseconds, medians of three fresh
processes each, and Rushlight's as a share of PyTorch's: with an empty cache folder ("cold"), and with what earlier processes
left there ("warm"). `import` is the library's, outside of both; what `jit.load` imports beyond that counts as loading.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

_PROGRAM = """
import json, os, sys, time
start = time.perf_counter()
{library}
imported = time.perf_counter()
module = torch.jit.load(sys.argv[1])
loaded = time.perf_counter()
inputs = torch.load(sys.argv[2]).values() if os.path.exists(sys.argv[2]) else None
before = time.perf_counter()
if inputs is not None:
    with torch.no_grad():
        module(*inputs)
called = time.perf_counter()
print(json.dumps([imported - start, loaded - imported, called - before]))
"""
_LIBRARIES = {"PyTorch": "import torch", "Rushlight": "import rushlight as torch"}
_ROUNDS = 3
_WARM_UP = 2  # processes that fill the cache folder before the warm ones are measured


def main() -> None:
    """Measure the archives of the command line, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("archives", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=_ROUNDS)
    options = parser.parse_args()
    print("| archive | PyTorch: import, load, call | cold: import, load, call | warm: import, load, call | cold | warm |")
    print("|---|---|---|---|---|---|")
    ratios = [_print_row(path, options.rounds) for path in options.archives]
    cold, warm = (statistics.geometric_mean(column) for column in zip(*ratios, strict=True))
    print(f"| geometric mean | | | | {cold:.2f} | {warm:.2f} |")


def _print_row(path: Path, rounds: int) -> tuple[float, float]:
    """Print an archive's row; the shares of PyTorch's time that load and call take, cold and warm."""
    with tempfile.TemporaryDirectory() as cache:
        for _ in range(_WARM_UP):
            _run("Rushlight", path, cache)
        _run("PyTorch", path, cache)
        times: dict[str, list[list[float]]] = {"PyTorch": [], "cold": [], "warm": []}
        for number in range(rounds):  # in turns, so that what else the machine does falls on all
            for name in ("PyTorch", "warm", "cold")[:: (-1) ** number]:
                times[name].append(_measure(name, path, cache))
    medians = {name: [statistics.median(column) for column in zip(*rows, strict=True)] for name, rows in times.items()}
    whole = {name: statistics.median(load + call for _, load, call in rows) for name, rows in times.items()}
    cold, warm = whole["cold"] / whole["PyTorch"], whole["warm"] / whole["PyTorch"]
    shown = " | ".join(", ".join(f"{1000 * each:.0f}" for each in medians[name]) for name in ("PyTorch", "cold", "warm"))
    print(f"| {path.stem} | {shown} | {cold:.2f} | {warm:.2f} |", flush=True)
    return cold, warm


def _measure(name: str, path: Path, cache: str) -> list[float]:
    if name != "cold":
        return _run("PyTorch" if name == "PyTorch" else "Rushlight", path, cache)
    with tempfile.TemporaryDirectory() as empty:
        return _run("Rushlight", path, empty)


def _run(library: str, path: Path, cache: str) -> list[float]:
    """The seconds that import, load and first call take in a process of their own."""
    program = _PROGRAM.format(library=_LIBRARIES[library])
    command = [sys.executable, "-c", program, str(path), str(path.with_suffix(".inputs.pt"))]
    environment = {**os.environ, "RUSHLIGHT_CACHE_DIR": cache}
    finished = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return json.loads(finished.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
