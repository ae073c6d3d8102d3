"""Traced archives beside OpenVINO: `python -m benchmarks.archives_openvino ARCHIVE.pt ... [--threads 2] [--rounds 3]`.

In: archives that `benchmarks.make_archives` wrote, with their inputs beside them. Out: a table of medians of calls in float32,
each package in a process of its own, the two taking turns; the ratio is the median of the rounds. PyTorch converts the archives
for OpenVINO, in another process before.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.machine import processor

_CONVERT = """
import sys, torch, openvino
model = torch.jit.load(sys.argv[1]).eval()
given = torch.load(sys.argv[1][: -len(".pt")] + ".inputs.pt", weights_only=True)
given = tuple(given[str(index)] for index in range(len(given)))
openvino.save_model(openvino.convert_model(model, example_input=given), sys.argv[2], compress_to_fp16=False)
"""

_RUN = """
import json, sys, time
import rushlight as torch
package, path, converted, threads, seconds = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5])
given = torch.load(path[: -len(".pt")] + ".inputs.pt", weights_only=True)
given = [given[str(index)] for index in range(len(given))]
if package == "rushlight":
    torch.set_num_threads(threads)
    model = torch.jit.load(path).eval()
    call = lambda: model(*given)
else:
    import openvino
    core = openvino.Core()
    core.set_property("CPU", {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"})
    core.set_property("CPU", {"PERFORMANCE_HINT": "LATENCY"})
    request = core.compile_model(core.read_model(converted), "CPU").create_infer_request()
    arrays = [each.numpy() for each in given]
    call = lambda: request.infer(arrays, share_inputs=True, share_outputs=True)
times = []
with torch.no_grad():
    begin = time.perf_counter()
    for _ in range(12):
        call()
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds and len(times) < 400:
        start = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - start)
first = result if package == "rushlight" else torch.from_numpy(next(iter(result.values())))
while not isinstance(first, torch.Tensor):
    first = next(iter(first.values())) if isinstance(first, dict) else first[0]
print(json.dumps({"median": sorted(times)[len(times) // 2], "sum": float(first.double().abs().mean())}))
"""


def measure(path: Path, folder: Path, arguments: argparse.Namespace) -> tuple[float, float, float, bool]:
    """Rushlight's and OpenVINO's seconds, the ratio, and whether the results agree."""
    converted = folder / f"{path.stem}.xml"
    subprocess.run([sys.executable, "-c", _CONVERT, str(path), str(converted)], check=True, capture_output=True)
    rounds = []
    for _ in range(arguments.rounds):
        found = []
        for package in ("rushlight", "openvino"):
            words = [package, str(path), str(converted), str(arguments.threads), str(arguments.seconds)]
            done = subprocess.run([sys.executable, "-c", _RUN, *words], check=True, capture_output=True, text=True)
            found.append(json.loads(done.stdout.splitlines()[-1]))
        rounds.append(found)
    ours, theirs = (statistics.median(each[index]["median"] for each in rounds) for index in (0, 1))
    ratio = statistics.median(each[0]["median"] / each[1]["median"] for each in rounds)
    (one, other), *_ = rounds
    return ours, theirs, ratio, abs(one["sum"] - other["sum"]) <= 2e-3 * max(one["sum"], other["sum"], 1e-3)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("archives", type=Path, nargs="+")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0)
    arguments = parser.parse_args()
    print(
        f"{processor()}, {arguments.threads} threads, float32\n\n| archive | Rushlight | OpenVINO | ratio |\n|---|---|---|---|"
    )
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        for path in arguments.archives:
            try:
                ours, theirs, ratio, agrees = measure(path, Path(folder), arguments)
            except subprocess.CalledProcessError as error:
                print(f"| {path.stem} | {(error.stderr or b'?').strip().splitlines()[-1]!r} | | |", flush=True)
                continue
            ratios.append(ratio)
            note = "" if agrees else " (results differ)"
            print(f"| {path.stem} | {ours * 1e3:.2f} ms | {theirs * 1e3:.2f} ms | {ratio:.2f}{note} |", flush=True)
    if ratios:
        behind = sum(ratio > 1.05 for ratio in ratios)
        print(
            f"\n{len(ratios)} archives, median {statistics.median(ratios):.2f}, highest {max(ratios):.2f}, above 1.05: {behind}"
        )


if __name__ == "__main__":
    main()
