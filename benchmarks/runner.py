"""One contender at one workload, in a process of its own; the measurement goes to a JSON file.

`rounds` starts it as `python -m benchmarks.runner CONTENDER WORKLOAD FOLDER CACHE THREADS BUDGET RESULT`. FOLDER holds
what `rounds.prepare` wrote.
"""

from __future__ import annotations

import dataclasses
import json
import os
import statistics
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.contenders import CONTENDERS, Contender
from benchmarks.memory import peak_memory
from benchmarks.quiet import Watch
from benchmarks.timing import sample
from benchmarks.workload import Workload, choose
from benchmarks.workloads import WORKLOADS


@dataclasses.dataclass(frozen=True)
class Measurement:
    """Seconds, unless said otherwise.

    first: getting ready and the first call; median and best: later calls; difference and cosine: against the float64
    reference, where difference is the largest absolute one; memory: the process's peak in bytes; others: cores that
    other processes kept busy during the later calls.
    """

    first: float
    median: float
    best: float
    difference: float
    cosine: float
    memory: int
    others: float


def stay_on_cores(count: int) -> None:
    """Some libraries take every core they may run on, whatever they are told."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


def cosine(left: np.ndarray, right: np.ndarray) -> float:
    left, right = left.astype(np.float64).ravel(), right.ravel()
    return float(left @ right / (np.linalg.norm(left) * np.linalg.norm(right)))


def measure(
    contender: Contender, workload: Workload, folder: Path, cache: Path, threads: int, budget: float
) -> Measurement:
    """Load, call once, then call for `budget` seconds."""
    inputs, weights = (dict(np.load(folder / f"{name}.npz")) for name in ("inputs", "weights"))
    contender.load(workload, inputs, weights, threads, cache)
    with contender.mode():
        start = time.perf_counter()
        call = contender.start()
        call()
        first = time.perf_counter() - start
        watch = Watch()
        samples = sample(call, budget)
        others = watch.others()
        output = workload.collect(contender.to_numpy(call()))
    memory = peak_memory()
    reference = np.load(folder / "reference.npy")
    if output.shape != reference.shape:
        raise ValueError(f"the result has shape {output.shape}; expected {reference.shape}")
    return Measurement(
        first=first,
        median=statistics.median(samples),
        best=min(samples),
        difference=float(np.abs(output - reference).max()),
        cosine=cosine(output, reference),
        memory=memory,
        others=others,
    )


def main(arguments: list[str]) -> None:
    contender_name, workload_name, folder, cache, threads, budget, result = arguments
    stay_on_cores(int(threads))
    (contender,) = choose(CONTENDERS, [contender_name], "contender")
    (workload,) = choose(WORKLOADS, [workload_name], "workload")
    measurement = measure(contender, workload, Path(folder), Path(cache), int(threads), float(budget))
    Path(result).write_text(json.dumps(dataclasses.asdict(measurement)))


if __name__ == "__main__":
    main(sys.argv[1:])
