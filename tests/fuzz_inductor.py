"""Compares compiled random programs with eager: `python -m tests.fuzz_inductor [--seeds N] [--start SEED] [--statements N]`.

With `--open` each program is compiled once, with open sizes, and compared at several. Prints every program whose results
differ, as source. Exit status 1 if there is any.
"""

from __future__ import annotations

import argparse
import sys
import traceback
import warnings
from unittest import mock

import rushlight as torch
from rushlight.compiler.kept_plans import KeptPlans
from rushlight.inductor import plan_cache
from rushlight.inductor.codegen.cpp import program as codegen
from tests.inductor.differences import difference
from tests.inductor.open_programs import outcome
from tests.inductor.random_programs import Program, random_open_program, random_program


def failure(program: Program, backend: str = "inductor", parallel: bool = False) -> str:
    """The problem with a program's compiled form, or with its cached capture run by its cached plan; "" if both agree.

    `parallel` divides even tiny loops among threads.
    """
    work = 0 if parallel else codegen.PARALLEL_WORK
    names = [(lambda *_: None) if parallel else name for name in (plan_cache.key_of, KeptPlans.name_of)]  # know nothing of this
    try:
        with (
            warnings.catch_warnings(), torch.no_grad(), mock.patch.object(codegen, "PARALLEL_WORK", work),
            mock.patch.object(plan_cache, "key_of", names[0]), mock.patch.object(KeptPlans, "name_of", names[1]),
        ):  # fmt: skip
            warnings.filterwarnings("error", message="compile")
            for way in ("compiled", "by its kept plan"):
                compiled = torch.compile(program.function(), backend=backend)
                found = difference(
                    program.function(), compiled, lambda: [spec.make() for spec in program.inputs], program.precision
                )
                if found:
                    return f"{way}: {found}"
            return ""
    except Exception:
        return traceback.format_exc()


def failure_at_open_sizes(program: Program, seed: int) -> str:
    """The problem with a program compiled once for several sizes; "" if it agrees."""
    try:
        return outcome(program, seed, threads=1 + seed % 2).problem
    except Exception:
        return traceback.format_exc()


def main() -> int:
    """Run the seeds that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--statements", type=int, default=10)
    parser.add_argument("--backend", default="inductor")
    parser.add_argument("--open", action="store_true")
    options = parser.parse_args()
    failed = []
    warnings.filterwarnings("ignore", message="Using a target size")
    for seed in range(options.start, options.start + options.seeds):
        if options.open:
            program = random_open_program(seed, options.statements)
            problem = failure_at_open_sizes(program, seed)
        else:
            program = random_program(seed, options.statements)
            problem = failure(program, options.backend, parallel=seed % 2 == 1)
        if problem:
            failed.append(seed)
            print(f"--- seed {seed} ---\n{program}\n{problem}\n", flush=True)
    print(f"{options.seeds} programs, {len(failed)} failed: {failed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
