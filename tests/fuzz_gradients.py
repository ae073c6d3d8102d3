"""Compares gradients of compiled random programs with eager's: `python -m tests.fuzz_gradients --seeds N --start SEED`.

Prints every program whose results, gradients or effects differ, as source. Exit status 1 if there is any.
"""

from __future__ import annotations

import argparse
import functools
import sys
import traceback
import warnings
from collections.abc import Callable

import rushlight as torch
from rushlight.core.pytree import tree_flatten
from tests.inductor.differences import difference
from tests.inductor.random_programs import Program, random_program

Options = dict[str, object]
# Partitioning options, used in turn.
OPTIONS: tuple[Options, ...] = ({}, {"memory_budget": 0.0}, {"partitioner": "default"}, {"memory_budget": 0.5})


class Case:
    """A program, and its differentiable inputs and constants: those that eager can differentiate by."""

    def __init__(self, program: Program):
        self.program = program
        self.chosen: set[int] = set()
        names = list(program.constants)
        for position in range(len(program.inputs) + len(names)):
            self.chosen.add(position)
            if not self._runs():
                self.chosen.discard(position)

    @property
    def has_gradients(self) -> bool:
        """Whether any input is differentiable."""
        return bool(self.chosen)

    def make_inputs(self) -> list[torch.Tensor]:
        """New inputs, then new constants."""
        specs = [*self.program.inputs, *self.program.constants.values()]
        return [spec.make().requires_grad_(position in self.chosen) for position, spec in enumerate(specs)]

    def _runs(self) -> bool:
        try:
            differentiated(self.function())(*self.make_inputs())
        except RuntimeError:
            return False
        return True

    def function(self, compile: Callable = lambda body: body) -> Callable:
        """The program, as `compile` makes it, as a function of inputs and constants."""
        body = self.program.function()
        call, names, count = compile(body), list(self.program.constants), len(self.program.inputs)

        def run(*tensors: torch.Tensor) -> object:
            body.__globals__.update(zip(names, tensors[count:], strict=True))
            return call(*tensors[:count])

        return run


def differentiated(function: Callable) -> Callable:
    """A function that returns the results and the gradients of their weighted sum with respect to the inputs."""

    def run(*inputs: torch.Tensor) -> tuple:
        results = function(*inputs)
        outputs = [value for value in tree_flatten(results)[0] if isinstance(value, torch.Tensor) and value.requires_grad]
        total = sum((_weighted(value) for value in outputs), torch.zeros(()))
        if total.requires_grad:
            total.backward()
        return results, [value.grad for value in inputs]

    return run


def _weighted(value: torch.Tensor) -> torch.Tensor:
    weights = (torch.arange(value.numel()) % 5 - 1.5).reshape(value.shape)
    return (value.float() * weights).sum()


def failure(
    program: Program, backend: str = "inductor", options: Options | None = None, dynamic: bool | None = None
) -> str:
    """The problem with the compiled program's gradients; "" if they agree. With `dynamic` its sizes are dynamic."""
    case = Case(program)
    if not case.has_gradients or any(spec.special for spec in program.inputs):
        return ""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message="compile")
            compiled = case.function(functools.partial(torch.compile, backend=backend, options=options, dynamic=dynamic))
            eager = differentiated(case.function())
            return difference(eager, differentiated(compiled), case.make_inputs, program.precision)
    except Exception:
        return traceback.format_exc()


def main() -> int:
    """Run the seeds that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--statements", type=int, default=8)
    parser.add_argument("--backend", default="inductor")
    parser.add_argument("--dynamic", action="store_true", default=None, help="leave all sizes open")
    options = parser.parse_args()
    failed = []
    warnings.filterwarnings("ignore", message="Using a target size")
    for seed in range(options.start, options.start + options.seeds):
        program = random_program(seed, options.statements)
        problem = failure(program, options.backend, OPTIONS[seed % len(OPTIONS)], options.dynamic)
        if problem:
            failed.append(seed)
            print(f"--- seed {seed} ---\n{program}\n{problem}\n", flush=True)
    print(f"{options.seeds} programs, {len(failed)} failed: {failed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
