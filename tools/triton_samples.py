"""Run PyTorch's operator samples through Triton kernels: `python -m tools.triton_samples`.

Each operator of `torch.testing`'s OpInfo is compiled for the target "triton-interpreter", for its first samples of float32.
The results are compared with Rushlight's eager results, and each kernel is compiled to cubins for sm_80 and sm_90. Nothing runs
on a GPU. Needs PyTorch, expecttest and Triton. Prints a table, and per operator what differs, what was refused and why.

    python -m tools.triton_samples --only add,softmax --samples 20
    python -m tools.triton_samples --gradients --no-cubins --minutes 30 --out samples.json
    python -m tools.triton_samples --sanitize
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
import random
import sys
import time
import warnings
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"

import torch as oracle
from torch.testing._internal import common_methods_invocations as samples

import rushlight as torch
from rushlight.compiler.logs import leave, listen
from rushlight.inductor.triton.compiler import compile_apart, spec_of
from tools.operator_samples import (
    Unusable,
    agree,
    arguments_of,
    function_of,
    is_random,
    kind_of,
    name_of,
    run_with_gradients,
    tensors_of,
)


class Pieces:
    """A listener that collects the Triton pieces of all graphs."""

    def __init__(self) -> None:
        self.found: list = []

    def heard(self, log: Any, record: Any) -> None:
        if record.stage == "code":
            self.found.append(record.subject)

    def interpreting(self, log: Any) -> contextlib.AbstractContextManager:
        return contextlib.nullcontext()


class Report:
    """The outcomes of all operators, and their distinct kernels."""

    def __init__(self, sanitize: bool = False) -> None:
        self.sanitize = sanitize
        self.outcomes: dict[str, tuple[str, collections.Counter, list[str]]] = {}
        self.kernels: dict[str, tuple[str, Any, str]] = {}

    def run(self, op: Any, limit: int, gradients: bool) -> None:
        """Run an operator's samples."""
        counts, notes = collections.Counter(), []
        name = name_of(op)
        self.outcomes[name] = kind_of(op), counts, notes
        function = function_of(op)
        if function is None:
            counts["missing"] += 1
            return
        gradients = gradients and op.supports_autograd
        oracle.manual_seed(0)
        for number, sample in enumerate(op.sample_inputs("cpu", oracle.float32, requires_grad=gradients)):
            if number >= limit:
                break
            try:
                given = arguments_of(sample, gradients)
            except Unusable:
                continue
            self._run_sample(name, function, given, counts, notes, gradients)

    def _run_sample(self, name: str, function: Any, given: tuple, counts: Any, notes: list[str], gradients: bool) -> None:
        run = run_with_gradients if gradients else lambda called, given: tensors_of(called(*given[0], **given[1]))
        pieces = Pieces()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                wanted = run(function, given)
            except Exception:
                counts["eager fails"] += 1
                return
            listen(pieces)
            try:
                target = {"target": "triton-sanitizer" if self.sanitize else "triton-interpreter"}
                found = run(torch.compile(lambda *args, **named: function(*args, **named), options=target), given)
            except Exception as error:
                counts["fails"] += 1
                notes.append(f"fails: {type(error).__name__}: {str(error).splitlines()[0][:150]}")
                return
            finally:
                leave(pieces)
        programs = [program for made in pieces.found for _, program in made.programs]
        eager = {f"{why}" for made in pieces.found for why in made.eager.values()}
        if not programs:
            counts["no kernel"] += 1
            notes += [f"refused: {why}" for why in eager] or ["no kernel: views, or nothing that is captured"]
            return
        right = is_random(name, given[1]) or agree(found, wanted)
        counts["agrees" if right else "differs"] += 1
        if not right:
            notes.append("differs")
        if eager:
            counts["in part"] += 1
            notes += [f"in part: {why}" for why in eager]
        for program in programs:
            for launch in program.kernels.values():
                key = f"{launch.text('@')} {launch.parameters} {launch.choice}"
                self.kernels.setdefault(key, (name, launch, program.kernel_source))

    def compile(self, capabilities: tuple[int, ...], most: int | None, batch: int = 200) -> tuple[int, dict[str, list[str]]]:
        """Compile all kernels, or `most` of them at random; returns their number and the errors by operator."""
        work = list(self.kernels.values())
        if most is not None:
            work = random.Random(0).sample(work, min(most, len(work)))
        errors: dict[str, list[str]] = {}
        for start in range(0, len(work), batch):
            part = work[start : start + batch]
            given = [(source, [spec_of(launch)]) for _, launch, source in part]
            for result in compile_apart(given, capabilities, timeout=3600):
                if "error" in result:
                    name = part[result["program"]][0]
                    errors.setdefault(name, []).append(f"sm_{result['capability']}: {result['kernel']}: {result['error']}")
        return len(work), errors


def print_table(report: Report) -> None:
    """Print a row per kind of operator."""
    columns = ("agrees", "differs", "fails", "in part", "no kernel", "eager fails")
    print("| kind | operators | all agree | " + " | ".join(columns) + " |")
    print("|---|" + "---:|" * (len(columns) + 2))
    kinds = ("elementwise", "reductions", "indexing", "products", "others")
    for kind in (*kinds, "all"):
        rows = [counts for each, counts, _ in report.outcomes.values() if kind in (each, "all") and "missing" not in counts]
        total = sum(rows, collections.Counter())
        good = sum(bool(row["agrees"]) and not row["differs"] and not row["fails"] for row in rows)
        print(f"| {kind} | {len(rows)} | {good} | " + " | ".join(str(total[column]) for column in columns) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="comma-separated names of operators, or of kinds")
    parser.add_argument("--samples", type=int, default=5, help="samples per operator")
    parser.add_argument("--gradients", action="store_true", help="compile training, and compare gradients")
    parser.add_argument("--minutes", type=float, help="start no operator after this time; operators come in random order then")
    parser.add_argument("--cubins", type=int, help="compile only this many kernels to cubins, chosen at random")
    parser.add_argument("--no-cubins", action="store_true", help="do not compile kernels to cubins")
    parser.add_argument("--sanitize", action="store_true", help="check each memory access of the kernels")
    parser.add_argument("--out", help="a file for the outcomes of all operators as JSON")
    arguments = parser.parse_args()
    only = set(arguments.only.split(",")) if arguments.only else None
    report, started = Report(arguments.sanitize), time.time()
    chosen = [op for op in samples.op_db if only is None or {op.name, kind_of(op)} & only]
    chosen = [op for op in chosen if oracle.float32 in op.supported_dtypes("cpu")]
    if arguments.minutes is not None:
        random.Random(0).shuffle(chosen)
    for number, op in enumerate(chosen):
        if arguments.minutes is not None and time.time() - started > 60 * arguments.minutes:
            print(f"stopped after {number} of {len(chosen)} operators")
            break
        print(f"{number + 1}/{len(chosen)} {op.name}", file=sys.stderr, flush=True)
        report.run(op, arguments.samples, arguments.gradients)
    print_table(report)
    print(f"\n{len(report.kernels)} distinct kernels; {time.time() - started:.0f} s")
    for name, (_, _, notes) in report.outcomes.items():
        for note, count in collections.Counter(notes).items():
            print(f"  {name}: {note} ({count})")
    tried, errors = (0, {}) if arguments.no_cubins else report.compile((80, 90), arguments.cubins)
    if not arguments.no_cubins:
        count = 2 * tried
        made = count - sum(map(len, errors.values()))
        print(f"{made} of {count} cubins for sm_80 and sm_90; {time.time() - started:.0f} s")
        for name, each in errors.items():
            print(f"  {name}: {each[0][:300]}")
    if arguments.out:
        outcomes = {name: [*outcome, errors.get(name, [])] for name, outcome in report.outcomes.items()}
        with open(arguments.out, "w") as file:
            json.dump(outcomes, file, indent=0)


if __name__ == "__main__":
    main()
