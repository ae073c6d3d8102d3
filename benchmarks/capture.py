"""What compiled functions cost beside their work: `python -m benchmarks.capture` prints calls and captures beside torch's.

A compiled `sin(x) + cos(y) * x` on 8 elements is nearly all overhead: guards, checks, memory, results. A capture follows a
BERT of 6 layers to one graph, with guards and generated code, and a backend that returns it as it is. Each library has
processes of its own, in turns.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from types import ModuleType

from benchmarks.machine import ROOT
from benchmarks.report import NOTHING, duration, table
from benchmarks.runner import stay_on_cores
from benchmarks.timing import sample

LIBRARIES = {"rushlight": "Rushlight", "torch": "PyTorch"}
FIXED, OPEN, FIRST, AGAIN = (
    "call on 8 elements", "call on 8 elements, open sizes", "first capture of a 6-layer BERT", "later captures of it",
)  # fmt: skip
ROWS = (FIXED, OPEN, FIRST, AGAIN)
CAPTURES = 5


def tiny_call(torch: ModuleType, dynamic: bool) -> Callable[[], object]:
    """A call of the compiled function."""

    def function(x: object, y: object) -> object:
        return torch.sin(x) + torch.cos(y) * x

    x, y = torch.randn(8), torch.randn(8)
    compiled = torch.compile(function, dynamic=dynamic, fullgraph=True)
    compiled(x, y)
    return lambda: compiled(x, y)


def captures(torch: ModuleType) -> list[float]:
    """Seconds of captures in a row, of a model whose operators have run before."""
    bert = importlib.import_module("examples.bert")
    config = bert.BertConfig(
        vocab_size=1000, hidden_size=96, num_hidden_layers=6, num_attention_heads=12, intermediate_size=384
    )
    model = bert.BertModel(config).eval()
    ids = torch.randint(0, 1000, (2, 16))
    found, graphs = [], []

    def backend(module: object, inputs: list) -> Callable:
        found.append(time.perf_counter() - began)
        graphs.append(module)
        return module.forward

    with torch.no_grad():
        model(ids)
        for _ in range(CAPTURES):
            importlib.import_module(f"{torch.__name__}._dynamo").reset()
            compiled = torch.compile(model, backend=backend)
            began = time.perf_counter()
            compiled(ids)
    if len(graphs) != CAPTURES:
        raise RuntimeError(f"{CAPTURES} captures of a model without graph breaks made {len(graphs)} graphs")
    return found


def measure(library: str, budget: float) -> dict[str, float]:
    """Seconds of each row in this process."""
    torch = importlib.import_module(library)
    sys.modules["rushlight"] = torch  # the model's source says `import rushlight as torch`
    torch.set_num_threads(1)
    first, *later = captures(torch)
    calls = {name: min(sample(tiny_call(torch, name == OPEN), budget)) for name in (FIXED, OPEN)}
    return {**calls, FIRST: first, AGAIN: min(later)}


def run_once(library: str, budget: float) -> dict[str, float]:
    """`measure` in a new process."""
    command = [sys.executable, "-m", "benchmarks.capture", "--measure", library, "--budget", str(budget)]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=True)
    return json.loads(finished.stdout.splitlines()[-1])


def run(rounds: int, budget: float) -> dict[str, dict[str, float]]:
    """The median over rounds of each library's figures; libraries that are not installed are left out."""
    installed = [library for library in LIBRARIES if importlib.util.find_spec(library) is not None]
    found: dict[str, list[dict[str, float]]] = {library: [] for library in installed}
    for _ in range(rounds):
        for library, figures in found.items():
            figures.append(run_once(library, budget))
    return {
        library: {name: statistics.median(one[name] for one in figures) for name in ROWS} for library, figures in found.items()
    }


def section(found: dict[str, dict[str, float]]) -> list[str]:
    """The part of the report: rows down, libraries across, and the ratio to torch where it is installed."""
    rows = []
    for name in ROWS:
        ratio = f"{found['rushlight'][name] / found['torch'][name]:.2f}" if "torch" in found else NOTHING
        rows.append([name, *(duration(figures[name]) for figures in found.values()), ratio])
    header = ["", *(LIBRARIES[library] for library in found), "ratio"]
    return ["### Calls of compiled functions, and captures", "", *table(header, rows)]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.capture", description="Calls and captures beside torch's.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--budget", type=float, default=0.5, help="seconds of calls per row and process")
    parser.add_argument("--measure", choices=tuple(LIBRARIES), help="measure one library in this process, and print JSON")
    options = parser.parse_args(arguments)
    if options.measure:
        stay_on_cores(1)
        print(json.dumps(measure(options.measure, options.budget)))
        return 0
    print("\n".join(section(run(options.rounds, options.budget))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
