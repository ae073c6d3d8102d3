"""What recording for the explorer's page costs: `python -m benchmarks.explorer [MODEL] [--rounds 3]`.

The first call of a model (BERT-base over 128 tokens by default), each in a process of its own with an empty cache, with and
without `explorer.record`; then the page's size, and how far the times on it add up to the calls that were measured from
outside.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.machine import processor
from benchmarks.workloads import WORKLOADS

CALLS = 20


def _first_call(name: str, page: str | None) -> dict:
    """The first call's seconds, the median of later ones, and what a page says of those."""
    import rushlight as torch
    from rushlight import explorer
    from rushlight.explorer.page import recordings_of

    workload = next(each for each in WORKLOADS if each.name == name)
    model = workload.torch_function(torch, workload.weights())
    given = [torch.from_numpy(each) for each in workload.inputs().values()]
    with torch.no_grad():
        torch.compile(lambda x: x + 1)(torch.ones(4))  # warm up: a first capture imports the compiler
        compiled = torch.compile(model)
        recording = explorer.record(page) if page else None
        if recording:
            recording.__enter__()
        times = []
        for _ in range(CALLS + 1):
            begin = time.perf_counter()
            compiled(*given)
            times.append(time.perf_counter() - begin)
        found = {"first": times[0], "later": statistics.median(times[1:])}
        if recording:
            begin = time.perf_counter()
            recording.__exit__(None, None, None)
            found["writing"] = time.perf_counter() - begin
            found["bytes"] = Path(page).stat().st_size
            (shown,) = recordings_of(Path(page).read_text())
            runs = [call for call in shown["calls"] if call["kind"] in ("hit", "pack")]
            first = next(position for position, call in enumerate(runs) if call["kind"] == "hit")
            found["shown"] = sum(call["seconds"] for call in runs[first + 1 :])
            found["kernels"] = sum(each["kernels"] for each in shown["runs"]) / sum(each["seconds"] for each in shown["runs"])
            found["outside"] = sum(times[1:])
    return found


def _in_process(name: str, recorded: bool) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        page = [str(Path(folder) / "page.html")] if recorded else []
        environment = {**os.environ, "RUSHLIGHT_CACHE_DIR": folder}
        command = [sys.executable, "-m", "benchmarks.explorer", name, "--in-process", *page]
        return json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", nargs="?", default="bert_base", choices=[each.name for each in WORKLOADS])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--in-process", nargs="?", const="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.in_process is not None:
        print(json.dumps(_first_call(options.model, options.in_process or None)))
        return
    print(processor())
    runs = [(_in_process(options.model, False), _in_process(options.model, True)) for _ in range(options.rounds)]
    plain, recorded = (statistics.median(pair[which]["first"] for pair in runs) for which in (0, 1))
    print(f"first call: {plain:.3f} s, recorded {recorded:.3f} s: {recorded / plain - 1:+.0%}")
    later, while_recorded = (statistics.median(pair[which]["later"] for pair in runs) for which in (0, 1))
    print(f"later calls: {later * 1e3:.2f} ms, recorded {while_recorded * 1e3:.2f} ms")
    last = runs[-1][1]
    print(f"page: {last['bytes']:,} bytes, written in {last['writing']:.2f} s")
    shown, outside = last["shown"], last["outside"]
    print(f"on the page: {shown:.3f} s of {outside:.3f} s in later calls: {shown / outside:.1%}")
    print(f"kernels: {last['kernels']:.1%} of the runs")


if __name__ == "__main__":
    main()
