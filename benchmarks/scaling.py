"""A model of a training step on 2 to 1,024 ranks, from what this machine measures, checked where it can be.

`python -m benchmarks.scaling [--plot docs/assets/scaling.png]` measures the latency and bandwidth of messages between two ranks
(by shared memory, by TCP over the loopback device, and over a loopback device that is slowed down to 1 Gbit/s in a network
namespace, where the system permits one), and the phases of a step of one rank. From these it predicts steps of two ranks, which
it also measures, and steps of more ranks on networks whose figures are known. docs/scaling.md explains the model.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.distributed import ROOT, STEPS, WARM_UP, WORKLOADS, Workload
from benchmarks.machine import processor

RESULT = "scaling: "
FLOAT = 4  # bytes
MESSAGES = [1 << power for power in range(12, 26, 2)]  # bytes
RING_MESSAGE = 1 << 17  # bytes: with smaller messages reductions are MPI's, which doubles the distance at each step
SLOW = 1e9 / 8  # bytes a second
RANKS = [2**power for power in range(1, 11)]


@dataclass(frozen=True)
class Network:
    """What a message costs: `latency` seconds, and its bytes by `bandwidth`. Ranks send at the same time."""

    name: str
    latency: float
    bandwidth: float

    def message(self, nbytes: float) -> float:
        """Return the seconds of a message."""
        return self.latency + nbytes / self.bandwidth

    def all_reduce(self, nbytes: float, ranks: int) -> float:
        """Return the seconds of a reduction: a ring, or for small tensors log2(ranks) exchanges of the whole."""
        if nbytes < RING_MESSAGE * ranks:
            return math.ceil(math.log2(ranks)) * self.message(nbytes)
        return 2 * (ranks - 1) * self.message(nbytes / ranks)

    def all_gather(self, nbytes: float, ranks: int) -> float:
        """Return the seconds until each rank has all of `nbytes`; a reduce_scatter takes as long."""
        return (ranks - 1) * self.message(nbytes / ranks)


class Halving(Network):
    """A network on which large reductions and gathers go by halves too: log2(ranks) messages each way, of as many bytes in
    all."""

    def all_reduce(self, nbytes: float, ranks: int) -> float:
        """Return the seconds of a reduction."""
        if nbytes < RING_MESSAGE * ranks:
            return super().all_reduce(nbytes, ranks)
        return 2 * self.all_gather(nbytes, ranks)

    def all_gather(self, nbytes: float, ranks: int) -> float:
        """Return the seconds of a gather."""
        return math.ceil(math.log2(ranks)) * self.latency + (ranks - 1) * nbytes / ranks / self.bandwidth


@dataclass(frozen=True)
class Step:
    """One rank's step: seconds of its phases, the seconds that DDP adds without a network (it copies gradients into buckets),
    the elements of each layer's parameters in the order of the forward pass, and the bytes of the activations that a layer
    spread over ranks exchanges."""

    name: str
    forward: float
    backward: float
    update: float
    copies: float
    layers: tuple[int, ...]
    activation: int

    @property
    def alone(self) -> float:
        """The seconds of a step of one rank."""
        return self.forward + self.backward + self.update

    def data_parallel(self, ranks: int, network: Network) -> float:
        """Return the seconds of a step with DDP: a bucket is reduced when its gradients and the one before are done."""
        total, done, free, backward = sum(self.layers), 0, 0.0, self.backward + self.copies
        for nbytes in buckets([FLOAT * elements for elements in reversed(self.layers)]):
            done += nbytes
            ready = backward * done / (FLOAT * total)
            free = max(ready, free) + network.all_reduce(nbytes, ranks)
        return self.forward + max(backward, free) + self.update

    def sharded(self, ranks: int, network: Network) -> float:
        """Return the seconds of a step with fully_shard: a layer's parameters are gathered while the one before it runs, in
        both passes; its gradients are scattered while the next one runs. Each rank updates its part."""
        count, time_ = len(self.layers), 0.0
        gather = [network.all_gather(FLOAT * elements, ranks) for elements in self.layers]
        time_ += pipelined(gather, [self.forward / count] * count)
        both = [2 * seconds for seconds in reversed(gather)]
        time_ += pipelined(both, [self.backward / count] * count)
        return time_ + self.update / ranks

    def tensor_parallel(self, ranks: int, network: Network) -> float:
        """Return the seconds of a step whose layers are spread over ranks: the work is divided, and each layer waits for two
        reductions of activations in each pass."""
        waits = 4 * (len(self.layers) - 2) * network.all_reduce(self.activation, ranks)
        return self.alone / ranks + waits


def buckets(gradients: Sequence[int]) -> list[int]:
    """Return the bytes of DDP's buckets for gradients in the order in which they arrive."""
    usual = min(max(sum(gradients) // 8, 1 << 20), 25 << 20)
    found, current = [], 0
    for nbytes in gradients:
        current += nbytes
        if current >= (usual if found else 1 << 20):
            found.append(current)
            current = 0
    return [*found, current] if current else found


def pipelined(transfers: list[float], works: list[float]) -> float:
    """Return the seconds until all works are done, each of which needs its transfer, and transfers follow one another."""
    arrived = done = 0.0
    for transfer, work in zip(transfers, works, strict=True):
        arrived += transfer
        done = max(arrived, done) + work
    return done


# What is measured: each in ranks of its own


def probe(dist: Any, torch: Any) -> dict[str, float]:
    """Return the seconds of messages between two ranks by their bytes."""
    me, found = dist.get_rank(), {}
    for nbytes in MESSAGES:
        x, times = torch.ones(nbytes // FLOAT), []
        for _ in range(max(8, min(200, (1 << 25) // nbytes))):
            dist.barrier()
            begin = time.perf_counter()
            for sender in (0, 1):
                dist.send(x, 1) if me == sender == 0 else dist.send(x, 0) if me == sender else dist.recv(x, sender)
            times.append((time.perf_counter() - begin) / 2)
        found[str(nbytes)] = statistics.median(times)
    return found


def phases(torch: Any, workload: Workload, wrapped: bool) -> dict[str, Any]:
    """Return the seconds of the phases of a step, whose batch is the same for any number of ranks; with DDP if `wrapped`."""
    torch.manual_seed(0)
    model, loss_of, batch = workload.build(torch)
    if wrapped:
        model = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    times: list[list[float]] = []
    for _ in range(WARM_UP + STEPS):
        optimizer.zero_grad()
        marks = [time.perf_counter()]
        loss = loss_of(model, batch)
        marks.append(time.perf_counter())
        loss.backward()
        marks.append(time.perf_counter())
        optimizer.step()
        marks.append(time.perf_counter())
        times.append([after - before for before, after in zip(marks, marks[1:], strict=False)])
    forward, backward, update = (statistics.median(column) for column in zip(*times[WARM_UP:], strict=True))
    whole = statistics.median(sum(row) for row in times[WARM_UP:])
    module = getattr(model, "module", model)
    blocks = [sum(each.numel() for each in block.parameters()) for block in module.blocks]
    rest = sum(each.numel() for each in module.parameters()) - sum(blocks)
    activation = FLOAT * batch.shape[0] * (batch.shape[1] - 1) * workload.width
    layers = (rest // 2, *blocks, rest - rest // 2)
    return {"forward": forward, "backward": backward, "update": update, "whole": whole, "layers": layers,
            "activation": activation}  # fmt: skip


def rank_main(task: str) -> None:
    """Do one task as a rank, and print what it found."""
    torch = importlib.import_module("rushlight")
    dist = importlib.import_module("rushlight.distributed")
    dist.init_process_group("mpi")
    torch.set_num_threads(1)
    name, _, wrapped = task.partition("+")
    found = probe(dist, torch) if task == "probe" else phases(torch, WORKLOADS[name], bool(wrapped))
    if dist.get_rank() == 0:
        print(RESULT + json.dumps(found), flush=True)
    dist.destroy_process_group()


TRANSPORTS = {
    "shared memory": {},
    "TCP, loopback": {"OMPI_MCA_btl": "self,tcp", "OMPI_MCA_pml": "ob1"},
    "TCP, 1 Gbit/s": {"OMPI_MCA_btl": "self,tcp", "OMPI_MCA_pml": "ob1", "OMPI_MCA_btl_tcp_if_include": "lo", "SLOW": "1"},
}


def run(ranks: int, task: str, transport: str) -> dict[str, Any]:
    """Start ranks for a task; return what the first of them found. RuntimeError: it failed."""
    settings = TRANSPORTS[transport]
    words = [sys.executable, "-m", "rushlight", "launch", "-n", str(ranks), "--threads", "1", "-m", "benchmarks.scaling",
             "--task", task]  # fmt: skip
    if "SLOW" in settings:
        slowed = f"ip link set lo up && tc qdisc add dev lo root tbf rate {int(SLOW * 8)}bit burst 256kb latency 100ms"
        words = ["unshare", "-n", "sh", "-c", f'{slowed} && exec "$@"', "sh", *words]
    environment = {**os.environ, **settings, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, cwd=ROOT)
    for line in done.stdout.splitlines():
        if RESULT in line:
            return json.loads(line.split(RESULT, 1)[1])
    raise RuntimeError(f"{task} by {transport} failed: {done.stdout[-500:]} {done.stderr[-500:]}")


def fitted(name: str, times: dict[str, float]) -> Network:
    """Return the network of some measured messages: the latency of the smallest, the bandwidth of those of 1 to 4 MB."""
    large = [int(nbytes) / seconds for nbytes, seconds in times.items() if 1 << 20 <= int(nbytes) <= 1 << 22]
    return Network(name, times[str(MESSAGES[0])], statistics.median(large))


def known(software: float) -> list[Network]:
    """Return networks by their published figures: the line rate at 90 %, and a latency to which the library's own is added,
    except on the last two: those are what other designs would reach."""
    fast = 0.9 * 400e9 / 8
    return [
        Network("10 Gbit/s Ethernet", software + 30e-6, 0.9 * 10e9 / 8),
        Network("100 Gbit/s InfiniBand", software + 1.5e-6, 0.9 * 100e9 / 8),
        Network("400 Gbit/s InfiniBand", software + 1.5e-6, fast),
        Halving("400 Gbit/s, by halves", software + 1.5e-6, fast),
        Halving("400 Gbit/s, by halves, from C", 2e-6, fast),
    ]


def gpt2(measured: Step) -> Step:
    """Return the step of GPT-2's smallest model (12 layers, width 768, 50,257 tokens) on 1,024 tokens a rank, at the rate of
    floating-point operations that a measured GPT has."""
    block, ends, positions = 12 * 768 * 768, 50257 * 768, 1024
    scale = (12 * block + ends) / sum(measured.layers)
    return replace(
        measured, name="GPT-2 small", forward=measured.forward * scale, backward=measured.backward * scale,
        update=measured.update * scale, copies=measured.copies * scale, layers=(ends, *[block] * 12, 0),
        activation=FLOAT * positions * 768,
    )  # fmt: skip


def step_of(name: str) -> Step:
    """Measure a step of one rank, without DDP and with it."""
    found, wrapped = (run(1, task, "shared memory") for task in (name, f"{name}+ddp"))
    copies = max(wrapped["whole"] - found["whole"], 0)
    return Step(
        name, found["forward"], found["backward"], found["update"], copies, tuple(found["layers"]), found["activation"]
    )


def check(steps: dict[str, Step], networks: dict[str, Network]) -> None:
    """Print what the model predicts for two ranks beside what they take."""
    print("\n| step of two ranks | transport | alone, ms | predicted, ms | measured, ms |\n|---|---|---:|---:|---:|")
    for name, step in steps.items():
        for transport, network in networks.items():
            # Ranks of this machine share the slowed device.
            shared = replace(network, bandwidth=network.bandwidth / 2) if "Gbit" in transport else network
            predicted, measured = step.data_parallel(2, shared), run(2, f"{name}+ddp", transport)["whole"]
            row = " | ".join(f"{1e3 * seconds:.1f}" for seconds in (step.alone, predicted, measured))
            print(f"| {name} | {transport} | {row} |", flush=True)


FORMS = {
    "data-parallel": Step.data_parallel, "sharded": Step.sharded, "tensor-parallel": Step.tensor_parallel,
}  # fmt: skip


def efficiency(step: Step, form: str, ranks: int, network: Network) -> float:
    """Return the work of all ranks in a second, as a part of what ranks without a network would do."""
    seconds = FORMS[form](step, ranks, network)
    return step.alone / seconds / (ranks if form == "tensor-parallel" else 1)


def predict(steps: list[Step], networks: list[Network], plot: Path | None) -> None:
    """Print the efficiencies, and draw them."""
    shown = RANKS[:1] + RANKS[2::2]
    print("\n| step | form | network | " + " | ".join(f"{ranks} ranks" for ranks in shown) + " |")
    print("|---|---|---|" + "---:|" * len(shown))
    for step in steps:
        for form in FORMS:
            for network in networks:
                parts = [f"{100 * efficiency(step, form, ranks, network):.0f} %" for ranks in shown]
                print(f"| {step.name} | {form} | {network.name} | " + " | ".join(parts) + " |")
    if plot is not None:
        draw(steps, networks, plot)


def draw(steps: list[Step], networks: list[Network], path: Path) -> None:
    """Write the plot: a row for each form, a column for each step."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(len(FORMS), len(steps), figsize=(11, 8), sharex=True, sharey=True, squeeze=False)
    for row, form in zip(panels, FORMS, strict=True):
        for axes, step in zip(row, steps, strict=True):
            for network in networks:
                style = "--" if isinstance(network, Halving) else "-"
                axes.plot(RANKS, [100 * efficiency(step, form, ranks, network) for ranks in RANKS], style, label=network.name)
            axes.set_xscale("log", base=2)
            axes.set_xticks(RANKS[::2], [f"{ranks:,}" for ranks in RANKS[::2]])
            axes.set_ylim(0, 105)
            axes.set_title(f"{step.name}, {form}", fontsize=9)
            axes.grid(alpha=0.3)
    for axes in panels[-1]:
        axes.set_xlabel("ranks")
    for row in panels:
        row[0].set_ylabel("efficiency, %")
    panels[0][0].legend(fontsize=7, loc="lower left")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    """Measure, check and predict."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--task", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        rank_main(options.task)
        return
    print(f"{processor()}\n\n| messages between two ranks | latency, us | bandwidth, GB/s |\n|---|---:|---:|")
    networks = {}
    for transport in TRANSPORTS:
        try:
            networks[transport] = network = fitted(transport, run(2, "probe", transport))
        except RuntimeError as error:
            print(f"| {transport} | {error} | |")
            continue
        print(f"| {transport} | {1e6 * network.latency:.0f} | {network.bandwidth / 1e9:.2f} |", flush=True)
    steps = {name: step_of(name) for name in ("small", "gpt")}
    check(steps, networks)
    shared = networks["shared memory"]
    predict([*steps.values(), gpt2(steps["gpt"])], [shared, *known(shared.latency)], options.plot)


if __name__ == "__main__":
    main()
