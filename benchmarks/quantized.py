"""Quantized models beside PyTorch: `python -m benchmarks.quantized` runs the same archives in both, with the same threads.

Needs PyTorch, which writes the archives (`quantized_models.py`). Each contender runs each archive in a process of its own, in
turns; a figure is the median of three processes, each of which says the least time of many calls. Results are compared too:
how much they differ, over the largest. Integers are equal where sums of products are, and PyTorch's saturate where activations
need all 8 bits, on processors that do not multiply bytes by one instruction.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile

from benchmarks.machine import processor

TURNS = 3
NAMES = ("resnet18", "encoder_dynamic", "encoder_static")

_RUN = """
import os, sys, time, json, warnings
path, threads, calls = json.loads(sys.argv[1])
os.environ["OMP_NUM_THREADS"] = str(threads)
warnings.simplefilter("ignore")
LIBRARY
torch.set_num_threads(threads)
model, x = torch.jit.load(path + ".pt").eval(), torch.load(path + ".input.pt")
with torch.no_grad():
    for _ in range(4):
        result = model(x)
    best = 1e9
    for _ in range(calls):
        began = time.perf_counter()
        model(x)
        best = min(best, time.perf_counter() - began)
print(json.dumps({"seconds": best, "result": [float(each) for each in result.flatten()[:4096]]}))
"""
CONTENDERS = {"PyTorch": "import torch", "Rushlight": "import rushlight as torch"}


def _run(library: str, *given: object) -> dict:
    program = _RUN.replace("LIBRARY", library)
    done = subprocess.run([sys.executable, "-c", program, json.dumps(given)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{library} failed: {done.stderr[-800:]}")
    return json.loads(done.stdout.splitlines()[-1])


def _measure(path: str, threads: int, calls: int) -> tuple[dict[str, float], float]:
    """The seconds of each contender, and how far apart the results are."""
    found: dict[str, list[dict]] = {name: [] for name in CONTENDERS}
    for _ in range(TURNS):
        for name, library in CONTENDERS.items():
            found[name].append(_run(library, path, threads, calls))
    ours, theirs = (found[name][0]["result"] for name in ("Rushlight", "PyTorch"))
    apart = max(abs(a - b) for a, b in zip(ours, theirs, strict=True)) / max(map(abs, theirs))
    return {name: statistics.median(each["seconds"] for each in runs) for name, runs in found.items()}, apart


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--calls", type=int, default=20, help="calls in a process, of which the fastest counts")
    parser.add_argument("--archives", metavar="FOLDER", help="archives that were written before")
    parser.add_argument("names", nargs="*", default=NAMES, help=f"of {', '.join(NAMES)}; by default all")
    options = parser.parse_args()
    print(processor())
    print(f"{'':16} {'PyTorch, ms':>12} {'Rushlight, ms':>14} {'quotient':>9} {'apart':>9}")
    with tempfile.TemporaryDirectory() as made:
        folder = options.archives or made
        if not options.archives:
            subprocess.run([sys.executable, "-m", "benchmarks.quantized_models", folder], check=True)
        for name in options.names:
            times, apart = _measure(f"{folder}/{name}", options.threads, options.calls)
            theirs, ours = (1e3 * times[each] for each in ("PyTorch", "Rushlight"))
            print(f"{name:16} {theirs:12.2f} {ours:14.2f} {ours / theirs:9.2f} {apart:9.1e}")


if __name__ == "__main__":
    main()
