"""Compares captured random programs with eager: `python -m tests.fuzz_dynamo [--seeds N] [--start SEED] [--print]`.

Prints every program that behaves differently, as source with its seed. Exit status 1 if there is any.
"""

from __future__ import annotations

import argparse
import sys
import traceback
import types
import warnings

import rushlight as torch
from tests.dynamo.harness import Program, check
from tests.dynamo.random_programs import random_source


def program_of(seed: int) -> Program:
    """The program of a seed with its arguments. Its source is registered for tracebacks."""
    name = f"tests.random_program_{seed}"
    module = types.ModuleType(name)
    sys.modules[name] = module  # where dataclasses look
    try:
        exec(compile(random_source(seed), f"<random program {seed}>", "exec"), vars(module))
    finally:
        del sys.modules[name]
    a, b = torch.tensor([1.0, -2.0, 3.0]), torch.tensor([0.5, 2.0, -1.0])
    if seed % 2:
        b.requires_grad_()
    thing = module.Thing(torch.ones(3), 2)
    return Program(module.program, (a, b, seed % 4, [3, 1, 2], {"k": 1}, thing), None)


def failure(seed: int) -> str:
    """The difference between eager and the captured program of a seed; "" if there is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check(program_of(seed))
    except Exception as error:
        return str(error) if isinstance(error, AssertionError) else traceback.format_exc()
    return ""


def main() -> int:
    """Run the seeds that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--print", action="store_true", help="print the sources instead")
    options = parser.parse_args()
    failed = 0
    for seed in range(options.start, options.start + options.seeds):
        found = random_source(seed) if options.print else failure(seed)
        if found:
            failed += not options.print
            print(f"seed {seed}:\n{found}\n", flush=True)
    print(f"{options.seeds} programs from seed {options.start}: {failed} differ from eager")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
