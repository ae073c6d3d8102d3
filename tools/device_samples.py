"""Run PyTorch's operator samples in eager on a device: `python -m tools.device_samples`.

Each operator of `torch.testing`'s OpInfo runs on the CPU and on "cuda" for its first samples; results, their devices, and with
`--gradients` the gradients are compared. Without a GPU the device is the stand-in, whose kernels Triton interprets in Python.
Operators run in worker processes, so that one that ends its process is a row of the report, too. Needs PyTorch, expecttest and
Triton. Prints the counts of outcomes, and per operator what differs and what ran on the CPU.

    python -m tools.device_samples --only add,softmax --samples 5
    python -m tools.device_samples --dtype bfloat16 --gradients --workers 2 --out outcomes.json
    python -m tools.device_samples --every 10      # each tenth operator
    python -m tools.device_samples --repeats 4     # by launch plans, too

An outcome of a sample is one of: "agrees"; "through the CPU", which agrees by an operator that ran there; "no device", which
agrees and has only CPU tensors as results and arguments; "differs"; "fails"; "eager fails" on the CPU, too; "too slow"; and
"crashes".
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import queue
import selectors
import subprocess
import sys
import threading
import time
import warnings
from typing import Any

from rushlight.cuda import libcuda

if libcuda.find() is None:
    os.environ["TRITON_INTERPRET"], os.environ["RUSHLIGHT_CUDA_DRIVER"] = "1", "interpreter"

import torch as oracle
from torch.testing._internal import common_methods_invocations as samples

import rushlight as torch
from rushlight.cuda.kernels import warn_of_host
from tools.operator_samples import (
    Unusable,
    agree,
    arguments_of,
    function_of,
    is_random,
    name_of,
    run_with_gradients,
    tensors_of,
)

SECONDS = 180  # per operator
PROBLEMS = ("differs", "fails", "too slow", "crashes")
THROUGH_CPU = "has no kernel for CUDA devices"
BROKEN = "CUDA error"  # after one, a process's calls of the driver fail


def moved(value: Any) -> Any:
    """Return an argument on the device."""
    if isinstance(value, torch.Tensor):
        return value.detach().to("cuda").requires_grad_(value.requires_grad)
    if isinstance(value, torch.device) or value == "cpu":
        return torch.device("cuda")
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(moved, value))
    if isinstance(value, list | tuple):
        return type(value)(map(moved, value))
    if isinstance(value, dict):
        return {name: moved(each) for name, each in value.items()}
    return value


def compare(name: str, found: list, wanted: list, given: tuple, has_device: bool) -> str:
    """Return what is wrong with results on the device; nothing if they are right."""
    if len(found) != len(wanted):
        return f"differs: {len(found)} tensors instead of {len(wanted)}"
    if has_device and not all(each.is_cuda for each in found):
        return "differs: a result is on the CPU"
    kinds = [(each.dtype, each.shape) for each in found]
    if kinds != [(each.dtype, each.shape) for each in wanted]:
        return f"differs: {kinds} instead of {[(each.dtype, each.shape) for each in wanted]}"
    if is_random(name, given[1]) or agree([each.cpu() for each in found], wanted):
        return ""
    return "differs: values"


def run_sample(name: str, function: Any, given: tuple, gradients: bool, repeats: int) -> tuple[str, list[str]]:
    """Return the outcome of a sample, and notes. Runs on the device after the first ones are by launch plans."""
    run = run_with_gradients if gradients else lambda called, given: tensors_of(called(*given[0], **given[1]))
    there = moved(given[0]), moved(given[1])
    has_device = bool(tensors_of([there[0], list(there[1].values())])) or "device" in there[1]
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            wanted = run(function, given)
        except Exception:
            return "eager fails", []
        heard.clear()
        warn_of_host.cache_clear()
        try:
            for _ in range(repeats):
                problem = compare(name, run(function, there), wanted, given, has_device)
                if problem:
                    break
                there = moved(given[0]), moved(given[1])
        except Exception as error:
            return "fails", [f"fails: {type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}"]
    if problem:
        return "differs", [problem]
    by_cpu = [str(each.message).split(" has no kernel")[0] for each in heard if THROUGH_CPU in str(each.message)]
    if by_cpu:
        return "through the CPU", [f"on the CPU: {each}" for each in by_cpu]
    return ("agrees" if has_device else "no device"), []


def run_operator(op: Any, limit: int, kind: Any, gradients: bool, repeats: int) -> list[tuple[str, list[str]]]:
    """Return the outcomes of an operator's samples."""
    function = function_of(op)
    if function is None:
        return [("missing", [])]
    gradients = gradients and op.supports_autograd
    oracle.manual_seed(0)
    outcomes = []
    for number, sample in enumerate(op.sample_inputs("cpu", kind, requires_grad=gradients)):
        if number >= limit:
            break
        try:
            outcomes.append(run_sample(name_of(op), function, arguments_of(sample, gradients), gradients, repeats))
        except Unusable:
            continue
    return outcomes


def wanted_operators(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the operators that are asked for, by name."""
    kind = getattr(oracle, arguments.dtype)
    only = set(arguments.only.split(",")) if arguments.only else None
    found = [op for op in samples.op_db if kind in op.supported_dtypes("cpu")]
    if only is not None:
        found = [op for op in found if {op.name, name_of(op)} & only]
    return {name_of(op): op for op in found[:: arguments.every]}


def work(arguments: argparse.Namespace) -> None:
    """Answer names of operators, a line each, by their outcomes as JSON."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # operators may print, which must not get between the answers
    operators = wanted_operators(arguments)
    for line in sys.stdin:
        kind = getattr(oracle, arguments.dtype)
        asked = arguments.samples, kind, arguments.gradients, arguments.repeats
        outcomes = run_operator(operators[line.strip()], *asked)
        print(json.dumps(outcomes), file=answers, flush=True)


class Worker:
    """A process that runs operators one after the other. It is started again after one that ended it or was too slow."""

    def __init__(self) -> None:
        self._process: subprocess.Popen | None = None

    def run(self, name: str) -> list:
        """Return the outcomes of an operator."""
        if self._process is None:
            command = [sys.executable, "-m", "tools.device_samples", *sys.argv[1:], "--worker"]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
        self._process.stdin.write(name + "\n")
        self._process.stdin.flush()
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            is_late = not selector.select(SECONDS)
        line = "" if is_late else self._process.stdout.readline()
        outcomes = json.loads(line) if line else None
        if outcomes is None or any(BROKEN in note for _, notes in outcomes for note in notes):
            self.stop()
        if outcomes is not None:
            return outcomes
        return [("too slow" if is_late else "crashes", [])]

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def run_all(names: list[str], workers: int) -> dict[str, list]:
    """Return the outcomes of operators, which processes share."""
    waiting: queue.SimpleQueue = queue.SimpleQueue()
    for name in names:
        waiting.put(name)
    outcomes: dict[str, list] = {}

    def serve() -> None:
        worker = Worker()
        while not waiting.empty():
            try:
                name = waiting.get_nowait()
            except queue.Empty:
                break
            outcomes[name] = worker.run(name)
        worker.stop()

    threads = [threading.Thread(target=serve) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {name: outcomes[name] for name in names}


def print_report(outcomes: dict[str, list], seconds: float) -> None:
    """Print counts, and a line for each operator with a note or a problem."""
    counts = collections.Counter(outcome for each in outcomes.values() for outcome, _ in each)
    print(f"{len(outcomes)} operators; {seconds:.0f} s; samples: {dict(counts.most_common())}")
    for name, each in outcomes.items():
        notes = collections.Counter(
            note for outcome, said in each for note in (said or ([outcome] if outcome in PROBLEMS else []))
        )
        for note, count in notes.items():
            print(f"  {name}: {note} ({count})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="comma-separated names of operators")
    parser.add_argument("--every", type=int, default=1, help="run only each n-th operator")
    parser.add_argument("--samples", type=int, default=2, help="samples per operator")
    parser.add_argument("--repeats", type=int, default=1, help="runs of each sample on the device")
    parser.add_argument("--dtype", default="float32", help="the samples' dtype")
    parser.add_argument("--gradients", action="store_true", help="compare gradients, too")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--out", help="a file for the outcomes of all operators as JSON")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work(arguments)
        return
    started = time.time()
    outcomes = run_all(list(wanted_operators(arguments)), arguments.workers)
    print_report(outcomes, time.time() - started)
    if arguments.out:
        with open(arguments.out, "w") as file:
            json.dump(outcomes, file, indent=0)


if __name__ == "__main__":
    main()
