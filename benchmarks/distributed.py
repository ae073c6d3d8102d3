"""A training step of two ranks with one thread each, beside one rank with two threads and PyTorch's DDP over gloo.

`python -m benchmarks.distributed [--rounds 3] [--workload small,gpt,wide]`: the GPT of `examples/distributed`, one of 4 layers,
and a network of large layers with few inputs, whose gradients take the most time. All ranks together have the same batch.
Contenders run after one another, every rank in a process of its own, pinned to a core; the table has medians over the rounds.
`bytes` is what a rank sends in a step: Open MPI counts it in a run of its own, and the kernel for gloo, which sends over the
loopback device.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.machine import processor

ROOT = Path(__file__).resolve().parent.parent
LETTERS, BATCH = 128, 8
STEPS, WARM_UP = 30, 8
RESULT = "benchmark: "


@dataclass(frozen=True)
class Workload:
    """A GPT over `context` letters; without a context a network of `layers` square layers."""

    layers: int
    width: int
    context: int = 0
    heads: int = 1

    def build(self, torch: Any) -> tuple[Any, Any, Any]:
        """Return the model, its loss as a function of the model and a batch, and the batch of all ranks."""
        generator = torch.Generator().manual_seed(1)
        if not self.context:
            layers = [(torch.nn.Linear(self.width, self.width), torch.nn.ReLU()) for _ in range(self.layers)]
            model = torch.nn.Sequential(*(each for pair in layers for each in pair))
            return model, lambda model, x: model(x).square().mean(), torch.randn(BATCH, self.width, generator=generator)
        sys.modules.setdefault("torch", torch)
        sys.path.insert(0, str(ROOT / "examples" / "distributed"))
        gpt = importlib.import_module("gpt")
        gpt.CONTEXT = self.context
        letters = torch.randint(LETTERS, (BATCH, self.context + 1), generator=generator)
        model = gpt.GPT(LETTERS, self.width, self.heads, self.layers)
        return model, lambda model, x: gpt.loss_of(model, x[:, :-1], x[:, 1:]), letters


WORKLOADS = {
    "small": Workload(layers=2, width=64, context=64, heads=4),
    "gpt": Workload(layers=4, width=256, context=128, heads=8),
    "wide": Workload(layers=4, width=2048),
}


@dataclass(frozen=True)
class Contender:
    """A library, eager or compiled, on some ranks that share two threads."""

    library: str
    compiled: bool
    ranks: int

    @property
    def name(self) -> str:
        shape = "2 ranks, 1 thread each" if self.ranks == 2 else "1 rank, 2 threads"
        return f"{self.library}, {'compiled' if self.compiled else 'eager'}, {shape}"

    def command(self, workload: str) -> list[str]:
        program = ["-m", "benchmarks.distributed", "--measure", workload, *(["--compile"] if self.compiled else [])]
        if self.library == "rushlight":
            return [sys.executable, "-m", "rushlight", "launch", "-n", str(self.ranks), *program]
        return [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(self.ranks), *program]

    def measure(self, workload: str, **variables: str) -> dict[str, Any]:
        """Start the ranks; return what the first of them found, and the output."""
        environment = {
            **os.environ, "BENCHMARK_LIBRARY": self.library, "OMP_NUM_THREADS": str(2 // self.ranks), "PYTHONPATH": str(ROOT),
            **variables,
        }  # fmt: skip
        done = subprocess.run(self.command(workload), env=environment, capture_output=True, text=True, check=False, cwd=ROOT)
        for line in done.stdout.splitlines():
            if RESULT in line:
                return json.loads(line.split(RESULT, 1)[1]) | {"output": done.stdout}
        raise RuntimeError(f"{self.name} failed: {done.stdout[-1000:]}\n{done.stderr[-2000:]}")

    def bytes_sent(self, workload: str) -> float:
        """Return the bytes that a rank sends in a step."""
        if self.library != "rushlight":
            return self.measure(workload)["loopback"] / self.ranks / (WARM_UP + STEPS)
        counted = {"OMPI_MCA_pml_monitoring_enable": "1", "OMPI_MCA_pml_monitoring_enable_output": "1"}
        lines = self.measure(workload, **counted)["output"].splitlines()
        sums = [re.search(r"\[rank 0\] [EC]\s.*\s(\d+) bytes", line) for line in lines]
        return sum(int(found[1]) for found in sums if found) / (WARM_UP + STEPS)


CONTENDERS = [
    Contender(library, compiled, ranks)
    for compiled in (False, True) for ranks in (2, 1) for library in ("rushlight", "torch")
]  # fmt: skip


def training(torch: Any, workload: Workload, compiled: bool) -> Any:
    """Return a function that makes one step."""
    rank, ranks = torch.distributed.get_rank(), torch.distributed.get_world_size()
    torch.manual_seed(0)
    model, loss_of, batch = workload.build(torch)
    if ranks > 1:
        model = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    if compiled:
        model = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    mine = batch[rank * BATCH // ranks : (rank + 1) * BATCH // ranks]

    def step() -> Any:
        optimizer.zero_grad()
        loss = loss_of(model, mine)
        loss.backward()
        optimizer.step()
        return loss

    return step


def loopback_bytes() -> int:
    """Return the bytes that the loopback device has sent since the machine started."""
    lines = Path("/proc/net/dev").read_text().splitlines()
    return next(int(line.split(":")[1].split()[8]) for line in lines if line.strip().startswith("lo:"))


def measure(workload: Workload, compiled: bool) -> dict[str, float]:
    """Return the median time of a step of this rank, in milliseconds, and its last loss."""
    torch = importlib.import_module(os.environ["BENCHMARK_LIBRARY"])
    torch.distributed.init_process_group("gloo")
    rank, ranks, cores = torch.distributed.get_rank(), torch.distributed.get_world_size(), sorted(os.sched_getaffinity(0))
    if ranks > 1:
        os.sched_setaffinity(0, {cores[rank % len(cores)]})
    torch.set_num_threads(2 // ranks)
    step, times, sent = training(torch, workload, compiled), [], loopback_bytes()
    for number in range(WARM_UP + STEPS):
        begin = time.perf_counter()
        loss = step()
        if number >= WARM_UP:
            times.append(time.perf_counter() - begin)
    sent = loopback_bytes() - sent
    torch.distributed.destroy_process_group()
    return {"milliseconds": 1e3 * statistics.median(times), "loss": loss.item(), "loopback": sent}


def report(workload: str, rounds: int) -> None:
    """Print the table of a workload: what two ranks of PyTorch take is 1."""
    found = [[each.measure(workload) for each in CONTENDERS] for _ in range(rounds)]
    times = {each: [one[index]["milliseconds"] for one in found] for index, each in enumerate(CONTENDERS)}
    print(f"\n| {workload} | ms a step | beside PyTorch's two ranks | MB sent |\n|---|---:|---:|---:|")
    for contender, milliseconds in times.items():
        yardstick = times[Contender("torch", contender.compiled, 2)]
        ratio = statistics.median(ours / theirs for ours, theirs in zip(milliseconds, yardstick, strict=True))
        sent = f"{contender.bytes_sent(workload) / 1e6:.2f}" if contender.ranks > 1 else ""
        print(f"| {contender.name} | {statistics.median(milliseconds):.1f} | {ratio:.2f} | {sent} |", flush=True)


def main() -> None:
    """Print the tables, or what this rank measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workload", default=",".join(WORKLOADS))
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--compile", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        found = measure(WORKLOADS[options.measure], options.compile)
        if os.environ.get("RANK", "0") == "0":
            print(RESULT + json.dumps(found), flush=True)
        return
    print(processor())
    for workload in options.workload.split(","):
        report(workload, options.rounds)


if __name__ == "__main__":
    main()
