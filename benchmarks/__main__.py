"""The command line: choose, measure, print, write."""

from __future__ import annotations

import argparse
import compileall
import sys
import tempfile
from pathlib import Path

from benchmarks import capture, eager, hook
from benchmarks.contenders import CONTENDERS
from benchmarks.machine import description, import_costs
from benchmarks.quiet import Patience
from benchmarks.report import report
from benchmarks.rounds import ROOT, Outcome, run_workload
from benchmarks.workload import choose
from benchmarks.workloads import WORKLOADS

OUTPUT = Path(__file__).resolve().parent


def names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    workloads = ", ".join(workload.name for workload in WORKLOADS)
    contenders = ", ".join(contender.name for contender in CONTENDERS)
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure Rushlight beside its peers.")
    parser.add_argument("--only", type=names, default=[], help=f"workloads, comma-separated, from: {workloads}")
    parser.add_argument("--contenders", type=names, default=[], help=f"comma-separated, from: {contenders}")
    parser.add_argument("--rounds", type=int, default=3, help="turns per contender; the first has empty caches")
    parser.add_argument("--threads", type=int, default=2, help="for every contender")
    parser.add_argument("--budget", type=float, default=1.5, help="seconds of calls per turn")
    parser.add_argument("--patience", type=float, default=120.0, help="seconds to wait in all for an idle machine")
    parser.add_argument(
        "--output", type=Path, help="folder for results.md and results.png; left out, only a full run writes them"
    )
    options = parser.parse_args(arguments)
    if options.rounds < 1 or options.threads < 1:
        parser.error("--rounds and --threads must be at least 1")
    return options


def write(results: list[list[Outcome]], page: str, folder: Path) -> None:
    """results.md and, where matplotlib is installed, results.png."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.md").write_text(page, encoding="utf-8")
    try:
        from benchmarks.chart import draw
    except ImportError as error:
        print(f"no chart: {error}", file=sys.stderr)
        return
    draw(results, folder / "results.png")


def measure_eager(options: argparse.Namespace, patience: Patience) -> list[str]:
    """The report's part on eager operators."""
    budget = options.budget / len(eager.CASES) * 4
    found = eager.run(options.rounds, options.threads, budget, patience, say=lambda line: print(line, file=sys.stderr))
    return eager.section(found)


def measure_hook(options: argparse.Namespace) -> list[str]:
    """The report's part on programs that compile nothing."""
    return ["", *hook.section(hook.run("rushlight", options.rounds, options.budget / 4), "Rushlight")]


def measure_capture(options: argparse.Namespace) -> list[str]:
    """The report's part on what calls and captures cost."""
    return ["", *capture.section(capture.run(options.rounds, options.budget / 4))]


def main(arguments: list[str]) -> int:
    """0 when every result agrees with the reference, 1 otherwise, 2 for a wrong command line."""
    options = parse_arguments(arguments)
    try:
        workloads = choose(WORKLOADS, options.only or [workload.name for workload in WORKLOADS], "workload")
        usual = [contender.name for contender in CONTENDERS if contender.default]
        contenders = choose(CONTENDERS, options.contenders or usual, "contender")
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    for folder in ("rushlight", "benchmarks", "examples"):
        compileall.compile_dir(ROOT / folder, quiet=1)  # as an installer does
    results, patience = [], Patience(options.patience)
    for workload in workloads:
        with tempfile.TemporaryDirectory(prefix="rushlight-bench-") as folder:
            results.append(
                run_workload(
                    workload,
                    contenders,
                    Path(folder),
                    options.rounds,
                    options.threads,
                    options.budget,
                    patience,
                    say=lambda line: print(line, file=sys.stderr),
                )
            )
    results = [outcomes for outcomes in results if outcomes]
    chosen = bool(options.only or options.contenders)
    operators = [] if chosen else [*measure_eager(options, patience), *measure_capture(options), *measure_hook(options)]
    page = report(results, description(options.threads, options.rounds), import_costs(options.rounds), operators)
    print(page)
    if options.output or not chosen:
        write(results, page, options.output or OUTPUT)
    wrong = [outcome for outcomes in results for outcome in outcomes if outcome.measurements and not outcome.agrees]
    for outcome in wrong:
        print(f"{outcome.contender.title} disagrees with the reference at {outcome.workload.name}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
