"""Archives beside `torch.jit`: `python -m benchmarks.archives DIR [--threads 1,2] [--only TEXT]`.

DIR is what `benchmarks.make_archives` wrote. Each package runs each archive in a process of its own, one after the other:
medians of calls without gradients, after a warm-up that lets both compile. Results are compared. `--json ROWS.json`
keeps the rows, of which `benchmarks.archives_report` makes a document.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

_RUNNER = r'''
import json, sys, time
package, path, threads, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
if package == "rushlight":
    import rushlight as torch
else:
    import torch
    try:
        import torchvision
    except ImportError:
        pass
torch.set_num_threads(threads)
start = time.perf_counter()
model = torch.jit.load(path).eval()
loaded = time.perf_counter() - start
given = torch.load(path[: -len(".pt")] + ".inputs.pt", weights_only=True)
given = [given[str(index)] for index in range(len(given))]

def flat(value):
    if isinstance(value, torch.Tensor):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [tensor for item in items for tensor in flat(item)]

def repeat(most, count):
    times, begin = [], time.perf_counter()
    while time.perf_counter() - begin < most and len(times) < count:
        start = time.perf_counter()
        result = model(*given)
        times.append(time.perf_counter() - start)
    return times, result

with torch.no_grad():
    start = time.perf_counter()
    result = model(*given)
    first = time.perf_counter() - start
    warm, _ = repeat(max(3 * seconds, 12.0), 12)
    times, result = repeat(seconds, 400)
sums = [float(tensor.double().abs().mean()) if tensor.numel() else 0.0 for tensor in flat(result)]
print(json.dumps({"loaded": loaded, "first": first, "median": sorted(times)[len(times) // 2], "calls": len(times),
                  "sums": sums, "slowest_warm": max(warm)}))
'''


def measure(package: str, python: str, path: Path, threads: int, seconds: float) -> dict:
    """What one process found; {"error": text} where it failed."""
    command = [python, "-c", _RUNNER, package, str(path), str(threads), str(seconds)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=400)
    except subprocess.TimeoutExpired:
        return {"error": "no result in 400 s"}
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        return {"error": (done.stderr.strip().splitlines() or ["nothing printed"])[-1][:160]}
    return json.loads(lines[-1])


def compare(path: Path, threads: int, arguments: argparse.Namespace) -> dict:
    """One row: both packages' times, and whether they agree."""
    ours = measure("rushlight", sys.executable, path, threads, arguments.seconds)
    theirs = measure("torch", arguments.torch_python, path, threads, arguments.seconds)
    row = {"name": path.stem, "threads": threads, "ours": ours, "torch": theirs}
    if "error" not in ours and "error" not in theirs:
        row["ratio"] = ours["median"] / theirs["median"]
        alike = map(_alike, ours["sums"], theirs["sums"])
        row["agrees"] = all(alike) and len(ours["sums"]) == len(theirs["sums"])
    return row


def _alike(one: float, other: float) -> bool:
    """Whether two means are equal but for rounding."""
    return one == other or abs(one - other) <= 2e-3 * max(abs(one), abs(other), 1e-3) or (one != one and other != other)


def line(row: dict) -> str:
    """A row as a line of text."""
    error = row["ours"].get("error") or row["torch"].get("error")
    if error:
        return f"{row['name']:45} {row['threads']}  {error}"
    ours, theirs = row["ours"]["median"] * 1e3, row["torch"]["median"] * 1e3
    note = "" if row["agrees"] else "  DIFFERS"
    return f"{row['name']:45} {row['threads']}  {ours:9.3f} ms  {theirs:9.3f} ms  {row['ratio']:5.2f}{note}"


def main() -> None:
    """Measure, print, and write the table if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--threads", default="2")
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--torch-python", default=sys.executable, help="a Python with torch (and torchvision for detectors)")
    parser.add_argument("--json", type=Path, help="where to keep the rows")
    arguments = parser.parse_args()
    paths = sorted(path for path in arguments.folder.glob("*.pt") if ".inputs" not in path.name and arguments.only in path.name)
    rows = []
    for path in paths:
        for threads in map(int, arguments.threads.split(",")):
            rows.append(compare(path, threads, arguments))
            print(line(rows[-1]), flush=True)
            if arguments.json:
                arguments.json.write_text(json.dumps(rows, indent=1))
    ratios = [row["ratio"] for row in rows if "ratio" in row]
    if ratios:
        above = sum(ratio > 0.9 for ratio in ratios)
        print(f"{len(ratios)} measured, median {statistics.median(ratios):.2f}, highest {max(ratios):.2f}, above 0.9: {above}")


if __name__ == "__main__":
    main()
