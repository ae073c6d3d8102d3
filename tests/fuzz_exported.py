"""Random functions of tensors, exported with open sizes, at changing sizes: `python -m tests.fuzz_exported [--seeds N] [--start S]`.

In: a seed. Out: what the exported program, its decomposed form and its saved and loaded form give at the example's sizes and at
others, beside eager. Prints every program whose results differ, as source. Exit status 1 if there is any.

A program that the export refuses, and sizes that its guards exclude, are counted and not compared.
"""

from __future__ import annotations

import argparse
import io
import sys
import warnings
from collections import Counter
from collections.abc import Callable

import rushlight as torch
from rushlight.core.pytree import tree_flatten
from rushlight.export import Dim, UserError
from tests.inductor.differences import difference
from tests.inductor.open_programs import resized
from tests.inductor.random_programs import Program, random_open_program

SIZES = 5  # calls with other sizes
FORMS: dict[str, Callable] = {
    "exported": lambda program: program,
    "decomposed": lambda program: program.run_decompositions(),
    "loaded": lambda program: _loaded(program),
}


def _loaded(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    written = io.BytesIO()
    torch.export.save(program, written)
    written.seek(0)
    return torch.export.load(written)


class Exported(torch.nn.Module):
    """A module that returns the flat results of a random program."""

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.function = program.function()
        # The parameters are those of the program, since export binds them by name.
        self.forward = self._of(len(program.inputs))

    def _of(self, count: int) -> Callable:
        names = ", ".join(f"a{number}" for number in range(count))
        scope = {"run": self._flat}
        exec(f"def forward({names}): return run({names})", scope)
        return scope["forward"]

    def _flat(self, *inputs: torch.Tensor) -> tuple:
        made = self.function(*inputs)
        made = (made,) if isinstance(made, torch.Tensor) else made
        return tuple(tree_flatten([tuple(each) if isinstance(each, torch.Size) else each for each in made])[0])


def _with_guards(run: Callable) -> Callable:
    """The call, with a failed guard as a RuntimeError, which comparisons report."""

    def call(*inputs: torch.Tensor) -> object:
        try:
            return run(*inputs)
        except AssertionError as error:
            raise RuntimeError(str(error)) from error

    return call


def _copied(run: Callable) -> Callable:
    """The call with copies of its results: the functional form does not keep which results are views."""

    def call(*inputs: torch.Tensor) -> tuple:
        made = [each.contiguous().clone() if isinstance(each, torch.Tensor) else each for each in run(*inputs)]
        return tuple(made)

    return call


def finding(seed: int, counts: Counter) -> str | None:
    """The first difference of an exported program from eager; None if there is none."""
    program = random_open_program(seed, 6)
    module = Exported(program)
    inputs = tuple(spec.make() for spec in program.inputs)
    opened = tuple({dim: Dim.AUTO for dim in range(tensor.dim())} for tensor in inputs)
    try:
        exported = torch.export.export(module, inputs, dynamic_shapes=opened)
    except (UserError, TypeError, NotImplementedError) as error:
        counts[f"refused: {type(error).__name__}: {str(error)[:60]}"] += 1
        return None
    specs = [program.inputs, *(resized(program.inputs, seed * SIZES + attempt) for attempt in range(SIZES))]
    for form, made in FORMS.items():
        try:
            run = _with_guards(made(exported).module())
        except (UserError, TypeError) as error:
            counts[f"{form} refused: {str(error)[:60]}"] += 1
            continue
        for sizes in specs:
            make = lambda sizes=sizes: [spec.make() for spec in sizes]  # noqa: E731
            kept = _copied if form == "decomposed" else lambda call: call
            problem = difference(kept(module), kept(run), make, program.precision)
            if "Guard failed" in problem and sizes is not program.inputs:
                counts["excluded by guards"] += 1
            elif problem.startswith("eager raised") and ("IndexError" in problem or "out of bounds" in problem):
                counts["unused indices"] += 1
            elif problem:
                return f"{form}, sizes {[spec.shape for spec in sizes]}: {problem}"
            else:
                counts["agree"] += 1
    return None


def main() -> int:
    """Run the seeds that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--start", type=int, default=0)
    options = parser.parse_args()
    failures, counts = 0, Counter()
    warnings.simplefilter("ignore")
    for seed in range(options.start, options.start + options.seeds):
        with torch.no_grad():
            found = finding(seed, counts)
        if found:
            failures += 1
            print(f"seed {seed}: {found}\n{random_open_program(seed, 6)}\n", flush=True)
    print(f"{options.seeds} programs, {failures} differ", *(f"  {count} {what}" for what, count in counts.most_common()), sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
