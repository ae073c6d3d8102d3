"""Eager operators and a training step, Rushlight beside PyTorch: `python -m benchmarks.eager` prints the table.

Each library has processes of its own, one per round, in turns; a process measures every case. The last case's result, a loss,
and the sums of the others' show that both libraries computed the same.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import importlib.util
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from benchmarks.machine import ROOT
from benchmarks.quiet import Patience, Watch
from benchmarks.report import duration, table
from benchmarks.rounds import CALM, LONGEST_RUN, environment
from benchmarks.runner import stay_on_cores
from benchmarks.timing import sample

LIBRARIES = {"rushlight": "Rushlight", "torch": "torch"}
SIDE = 4096  # of the large matrices: 64 MB


@dataclasses.dataclass(frozen=True)
class Case:
    """What is timed: `make(torch)` returns the call, of no arguments."""

    name: str
    title: str
    make: Callable[[ModuleType], Callable[[], object]]


def ramp(torch: ModuleType, *shape: int):
    """Numbers within -1 and 3 that both libraries make alike; their sums are not near 0, where errors would count."""
    count = 1
    for size in shape:
        count *= size
    return (torch.arange(count, dtype=torch.float64) * 0.6180339887 % 1 * 4 - 1).to(torch.float32).reshape(shape)


def on_large(function: Callable) -> Callable[[ModuleType], Callable[[], object]]:
    def make(torch: ModuleType) -> Callable[[], object]:
        x, y = ramp(torch, SIDE, SIDE), ramp(torch, SIDE, SIDE).flip(0).contiguous()
        return lambda: function(torch, x, y)

    return make


def on(*shapes: tuple[int, ...], call: Callable) -> Callable[[ModuleType], Callable[[], object]]:
    def make(torch: ModuleType) -> Callable[[], object]:
        operands = [ramp(torch, *shape) for shape in shapes]
        return lambda: call(torch, *operands)

    return make


def small_add(requires_grad: bool) -> Callable[[ModuleType], Callable[[], object]]:
    def make(torch: ModuleType) -> Callable[[], object]:
        a, b = ramp(torch, 8).requires_grad_(requires_grad), ramp(torch, 8)
        return lambda: a + b

    return make


def convolution_step(torch: ModuleType) -> Callable[[], object]:
    x, weight = ramp(torch, 8, 64, 56, 56).requires_grad_(), ramp(torch, 64, 64, 3, 3).requires_grad_()

    def step() -> object:
        x.grad = weight.grad = None
        result = torch.nn.functional.conv2d(x, weight, padding=1).sum()
        result.backward()
        return result.detach()

    return step


def training_step(torch: ModuleType) -> Callable[[], object]:
    """784-256-128-10 with ReLU, batch 64, cross entropy, Adam."""
    nn = torch.nn
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(ramp(torch, *parameter.shape) * 0.02)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5)
    images, labels = ramp(torch, 64, 784), torch.arange(64) % 10

    def step() -> object:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


CASES = [
    Case("add", "a + b, 8 elements", small_add(False)),
    Case("add_grad", "a + b, 8 elements, recorded by autograd", small_add(True)),
    Case("large_copy", "y.copy_(x), 64 MB: a copy into a warm buffer", on_large(lambda torch, x, y: y.copy_(x))),
    Case("large_add", "x + y, 64 MB", on_large(lambda torch, x, y: x + y)),
    Case("large_mul", "x * 2, 64 MB", on_large(lambda torch, x, y: x * 2)),
    Case("large_exp", "exp(x), 64 MB", on_large(lambda torch, x, y: torch.exp(x))),
    Case("large_gelu", "gelu(x), 64 MB", on_large(lambda torch, x, y: torch.nn.functional.gelu(x))),
    Case("large_relu", "relu(x), 64 MB", on_large(lambda torch, x, y: torch.relu(x))),
    Case("large_tanh", "tanh(x), 64 MB", on_large(lambda torch, x, y: torch.tanh(x))),
    Case("transpose", "x.t().contiguous(), 64 MB", on_large(lambda torch, x, y: x.t().contiguous())),
    Case("softmax", "softmax, 4096 x 4096", on_large(lambda torch, x, y: torch.softmax(x, -1))),
    Case("layer_norm", "layer_norm, 4096 x 4096", on_large(lambda torch, x, y: torch.layer_norm(x, (SIDE,), y[0], y[1]))),
    Case("sum", "x.sum(), 64 MB", on_large(lambda torch, x, y: x.sum())),
    Case("sum_rows", "x.sum(0), 64 MB", on_large(lambda torch, x, y: x.sum(0))),
    Case("amax", "x.amax(-1), 64 MB", on_large(lambda torch, x, y: x.amax(-1))),
    Case("var", "x.var(-1), 64 MB", on_large(lambda torch, x, y: x.var(-1))),
    Case("cumsum", "x.cumsum(-1), 64 MB", on_large(lambda torch, x, y: x.cumsum(-1))),
    Case("sort", "sort, 1,000,000 elements", on((1_000_000,), call=lambda torch, x: torch.sort(x)[0])),
    Case("topk", "topk 10 of rows, 1024 x 4096", on((1024, SIDE), call=lambda torch, x: torch.topk(x, 10)[0])),
    Case("matmul", "1024 x 1024 x 1024 matrix product", on((1024, 1024), (1024, 1024), call=lambda torch, a, b: a @ b)),
    Case(
        "linear", "linear, 64 x 784 to 256",
        on((64, 784), (256, 784), (256,), call=lambda torch, x, w, b: torch.nn.functional.linear(x, w, b)),
    ),
    Case(
        "conv2d", "conv2d, 8 x 64 x 56 x 56, 3 x 3",
        on((8, 64, 56, 56), (64, 64, 3, 3), call=lambda torch, x, w: torch.nn.functional.conv2d(x, w, padding=1)),
    ),
    Case("conv2d_step", "the same, forward and backward", convolution_step),
    Case(
        "attention", "attention, 2 x 8 heads, 256 x 64",
        on((2, 8, 256, 64), call=lambda torch, q: torch.nn.functional.scaled_dot_product_attention(q, q, q)),
    ),
    Case("mlp", "MLP 784-256-128-10, batch 64, Adam step", training_step),
]  # fmt: skip


@dataclasses.dataclass
class Figures:
    """Of one case in one process: seconds per call, cores that others kept busy, and the sum of the result's magnitudes."""

    median: float
    others: float
    total: float


def measure(library: str, threads: int, budget: float, only: list[str]) -> dict[str, Figures]:
    """Every case in this process."""
    torch = importlib.import_module(library)
    torch.set_num_threads(threads)
    found = {}
    for case in CASES:
        if only and case.name not in only:
            continue
        call = case.make(torch)
        total = float(call().detach().double().abs().sum())
        watch = Watch()
        samples = sample(call, budget)
        found[case.name] = Figures(statistics.median(samples), watch.others(), total)
    return found


def run_once(library: str, threads: int, budget: float, only: list[str], folder: Path) -> dict[str, Figures]:
    """`measure` in a new process; RuntimeError with its last words when it fails."""
    result = folder / "figures.json"
    result.unlink(missing_ok=True)
    command = [sys.executable, "-m", "benchmarks.eager", "--measure", library, "--threads", str(threads)]
    command += ["--budget", str(budget), "--only", ",".join(only), "--result", str(result)]
    finished = subprocess.run(
        command, cwd=ROOT, env=environment(threads, folder), capture_output=True, text=True, timeout=LONGEST_RUN
    )
    if finished.returncode or not result.exists():
        words = finished.stderr.strip().splitlines()
        raise RuntimeError(f"{library}: {words[-1] if words else f'ended with status {finished.returncode}'}")
    return {name: Figures(**figures) for name, figures in json.loads(result.read_text()).items()}


def run(
    rounds: int, threads: int, budget: float, patience: Patience, say: Callable[[str], None], only: list[str] | None = None
) -> dict[str, list[dict[str, Figures]]]:
    """The figures of each installed library, a round after the other."""
    present = [library for library in LIBRARIES if importlib.util.find_spec(library) is not None]
    found: dict[str, list[dict[str, Figures]]] = {library: [] for library in present}
    with tempfile.TemporaryDirectory(prefix="rushlight-bench-") as folder:
        for turn in range(rounds):
            for library in present:
                patience.wait(CALM)
                found[library].append(run_once(library, threads, budget, only or [], Path(folder)))
                say(f"eager operators, round {turn + 1} of {rounds}, {LIBRARIES[library]}: measured")
    return found


def seconds(rounds: list[dict[str, Figures]], name: str) -> tuple[float, bool]:
    """The median of the calm rounds' medians, and whether there was no calm round."""
    figures = [measured[name] for measured in rounds]
    calm = [figure for figure in figures if figure.others < CALM]
    return statistics.median(figure.median for figure in calm or figures), not calm


def agree(found: dict[str, list[dict[str, Figures]]], name: str) -> bool:
    """Whether the results' sums are near one another."""
    totals = [measured[name].total for rounds in found.values() for measured in rounds]
    return max(totals) - min(totals) <= 1e-2 * max(1.0, max(map(abs, totals)))


def section(found: dict[str, list[dict[str, Figures]]]) -> list[str]:
    """The part of the report: cases down, each library's time, and the ratio of the first to the last."""
    header = ["", *(LIBRARIES[library] for library in found), "ratio"]
    made = []
    for case in CASES:
        if not all(case.name in measured for rounds in found.values() for measured in rounds):
            continue
        times = [seconds(rounds, case.name) for rounds in found.values()]
        cells = [duration(time) + (" disturbed" if disturbed else "") for time, disturbed in times]
        ratio = f"{times[0][0] / times[-1][0]:.2f}" if len(times) > 1 else "-"
        made.append([case.title, *cells, ratio + ("" if agree(found, case.name) else " DISAGREES")])
    return ["### Eager operators", "", *table(header, made)]


def main(arguments: list[str]) -> int:
    """0 when the results agree, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.eager", description="Eager Rushlight beside eager PyTorch.")
    parser.add_argument("--only", default="", help=f"cases, comma-separated, from: {', '.join(case.name for case in CASES)}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--budget", type=float, default=0.3, help="seconds of calls per case and round")
    parser.add_argument("--patience", type=float, default=60.0, help="seconds to wait in all for an idle machine")
    parser.add_argument("--measure", choices=LIBRARIES, help="measure one library in this process, into --result")
    parser.add_argument("--result", type=Path)
    options = parser.parse_args(arguments)
    only = [name for name in options.only.split(",") if name]
    if options.measure:
        stay_on_cores(options.threads)
        found = measure(options.measure, options.threads, options.budget, only)
        options.result.write_text(json.dumps({name: dataclasses.asdict(figures) for name, figures in found.items()}))
        return 0

    def say(line: str) -> None:
        print(line, file=sys.stderr)

    results = run(options.rounds, options.threads, options.budget, Patience(options.patience), say, only)
    lines = section(results)
    print("\n".join(lines))
    return 1 if any("DISAGREES" in line for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
