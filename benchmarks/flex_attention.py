"""Attention with functions of its scores, compiled, beside torch.compile: `python -m benchmarks.flex_attention [LENGTH ...]`.

8 heads of 64, batch 1, float32, two threads; each package in a process of its own, medians of seven rounds. Out: milliseconds
for each length and function.
"""

from __future__ import annotations

import importlib
import json
import os
import statistics
import subprocess
import sys
import time

from benchmarks.machine import processor

LIBRARY = os.environ.get("FLEX_LIBRARY", "rushlight")
torch = importlib.import_module(LIBRARY)
flex = importlib.import_module(f"{LIBRARY}.nn.attention.flex_attention")
HEADS, DEPTH = 8, 64
ROUNDS = 7
LENGTHS = (256, 1024, 4096)


def slopes(score, b, h, i, j):
    """Scores that fall with the distance, by a slope for each head."""
    return score + (j - i) * torch.exp2(-(h + 1.0))


def causal(b, h, i, j):
    """No query meets a later key."""
    return i >= j


def window(b, h, i, j):
    """Queries meet the 256 keys up to their own place."""
    return (i >= j) & (i - j < 256)


CASES = {
    "no function": (None, None), "slopes": (slopes, None), "causal": (None, causal), "slopes, causal": (slopes, causal),
    "slopes, window": (slopes, window),
}  # fmt: skip


def main() -> None:
    """Measure both packages, and print the table."""
    lengths = list(map(int, sys.argv[1:])) or LENGTHS
    print(processor())
    found = {name: _run(name, lengths) for name in ("rushlight", "torch")}
    print("| length | function | Rushlight | torch.compile | ratio |\n|---|---|---|---|---|")
    for length in lengths:
        for name in CASES:
            ours, theirs = (found[library][f"{length} {name}"] for library in ("rushlight", "torch"))
            print(f"| {length} | {name} | {ours:.2f} ms | {theirs:.2f} ms | {ours / theirs:.2f} |")


def _run(library: str, lengths: list[int]) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.flex_attention", "measure", *map(str, lengths)]
    finished = subprocess.run(command, env={**os.environ, "FLEX_LIBRARY": library}, check=True, capture_output=True, text=True)
    return json.loads(finished.stdout.splitlines()[-1])


def _measure(lengths: list[int]) -> dict[str, float]:
    torch.set_num_threads(2)
    found = {}
    for length in lengths:
        inputs = [torch.randn(1, HEADS, length, DEPTH) for _ in range(3)]
        for name, (score_mod, mask_mod) in CASES.items():
            mask = mask_mod and flex.create_block_mask(mask_mod, None, None, length, length, device="cpu")
            found[f"{length} {name}"] = 1e3 * _median(torch.compile(_attend(score_mod, mask), dynamic=False), inputs)
    return found


def _attend(score_mod, mask):
    return lambda q, k, v: flex.flex_attention(q, k, v, score_mod, mask)


def _median(function, inputs) -> float:
    with torch.no_grad():
        function(*inputs)
        times = []
        for _ in range(ROUNDS):
            start, count = time.perf_counter(), 0
            while count == 0 or time.perf_counter() - start < 0.1:
                function(*inputs)
                count += 1
            times.append((time.perf_counter() - start) / count)
    return statistics.median(times)


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        print(json.dumps(_measure(list(map(int, sys.argv[2:])))))
    else:
        main()
