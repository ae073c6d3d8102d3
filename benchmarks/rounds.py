"""Runs contenders in turns, each in a new process, and gathers their measurements.

A busy machine is noisy for seconds at a time; rounds in which every contender has its turn spread that over all.
"""

from __future__ import annotations

import dataclasses
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.contenders import Contender
from benchmarks.quiet import Patience
from benchmarks.runner import Measurement
from benchmarks.workload import Workload

ROOT = Path(__file__).resolve().parents[1]
LONGEST_RUN = 900  # seconds
CALM = 0.15  # cores; other processes may take less than this


@dataclasses.dataclass
class Outcome:
    """What one contender did at one workload: a measurement per round, or why there is none."""

    contender: Contender
    workload: Workload
    measurements: list[Measurement] = dataclasses.field(default_factory=list)
    problem: str = ""

    @property
    def calm(self) -> list[Measurement]:
        """The rounds that other processes did not disturb; all of them when there is none."""
        return [measurement for measurement in self.measurements if measurement.others < CALM] or self.measurements

    @property
    def disturbed(self) -> bool:
        """Whether every round was disturbed, so that the times say little."""
        return min(measurement.others for measurement in self.measurements) >= CALM

    @property
    def median(self) -> float:
        """Seconds per call: the median of the calm rounds' medians."""
        return statistics.median(measurement.median for measurement in self.calm)

    @property
    def best(self) -> float:
        return min(measurement.best for measurement in self.measurements)

    @property
    def first_with_empty_cache(self) -> float:
        """Seconds of the first call in the first round, before which the cache folder was empty."""
        return self.measurements[0].first

    @property
    def first_with_warm_cache(self) -> float | None:
        """Median seconds of the first call in later rounds, new processes that find the cache filled."""
        later = [measurement.first for measurement in self.measurements[1:]]
        return statistics.median(later) if later else None

    @property
    def difference(self) -> float:
        return max(measurement.difference for measurement in self.measurements)

    @property
    def cosine(self) -> float:
        return min(measurement.cosine for measurement in self.measurements)

    @property
    def memory(self) -> int:
        return max(measurement.memory for measurement in self.measurements)

    @property
    def agrees(self) -> bool:
        """Whether every round's result was as near the reference as the workload asks."""
        return self.difference <= self.workload.tolerance


def prepare(workload: Workload, folder: Path) -> None:
    """Write inputs, weights and the reference result, for every contender to read."""
    inputs, weights = workload.inputs(), workload.weights()
    np.savez(folder / "inputs.npz", **inputs)
    np.savez(folder / "weights.npz", **weights)
    np.save(folder / "reference.npy", workload.reference(inputs, weights))


def environment(threads: int, cache: Path) -> dict[str, str]:
    """Thread counts and cache folders, for whichever library reads them."""
    counts = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    caches = ("RUSHLIGHT_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
    return {
        **os.environ,
        **dict.fromkeys(counts, str(threads)),
        **dict.fromkeys(caches, str(cache)),
    }


def run_once(contender: Contender, workload: Workload, folder: Path, threads: int, budget: float) -> Measurement:
    """One measurement in a new process. Raises RuntimeError with the process's last words when it fails."""
    cache = folder / f"cache-{contender.name}"
    cache.mkdir(exist_ok=True)
    result = folder / "measurement.json"
    result.unlink(missing_ok=True)
    values = (contender.name, workload.name, folder, cache, threads, budget, result)
    command = [sys.executable, "-m", "benchmarks.runner", *map(str, values)]
    try:
        finished = subprocess.run(
            command, cwd=ROOT, env=environment(threads, cache), capture_output=True, text=True, timeout=LONGEST_RUN
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"took over {LONGEST_RUN} s") from None
    if finished.returncode or not result.exists():
        words = finished.stderr.strip().splitlines()
        raise RuntimeError(words[-1] if words else f"ended with status {finished.returncode}")
    return Measurement(**json.loads(result.read_text()))


def run_workload(
    workload: Workload,
    contenders: list[Contender],
    folder: Path,
    rounds: int,
    threads: int,
    budget: float,
    patience: Patience,
    say: Callable[[str], None],
) -> list[Outcome]:
    """All rounds of one workload, for the contenders that have a way to run it."""
    prepare(workload, folder)
    outcomes = [Outcome(contender, workload) for contender in contenders if contender.takes(workload)]
    for outcome in outcomes:
        missing = outcome.contender.missing()
        outcome.problem = f"not installed: {', '.join(missing)}" if missing else ""
    for turn in range(rounds):
        for outcome in outcomes:
            if not outcome.problem:
                patience.wait(CALM)
                take_turn(outcome, folder, threads, budget)
                state = outcome.problem or f"{outcome.measurements[-1].median * 1e3:.4g} ms"
                say(f"{workload.name}, round {turn + 1} of {rounds}, {outcome.contender.title}: {state}")
    return outcomes


def take_turn(outcome: Outcome, folder: Path, threads: int, budget: float) -> None:
    """Add a measurement, or note why there is none."""
    try:
        outcome.measurements.append(run_once(outcome.contender, outcome.workload, folder, threads, budget))
    except RuntimeError as error:
        outcome.problem = f"failed: {error}"
