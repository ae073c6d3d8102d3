"""Random scripted programs of numbers, lists and tensors, called with other sizes and values each time.

    python -m tests.fuzz_scripted [--seeds N] [--start S]

In: a seed. Out: for each call the results of the executor, which makes native code at once and keeps it for later calls, beside
the interpreter's. Prints every program whose results differ, as source. Exit status 1 if there is any.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import linecache
import os
import random
import sys
import warnings
from collections.abc import Iterator

import rushlight as torch
from rushlight.jit.function import Function
from rushlight.jit.runtime.executor import executor_of, run_function
from tests.compiler.random_scripts import Writer
from tests.compiler.test_scripted import assert_same

HEAD = "from typing import List, Tuple\n\nimport rushlight as torch\nfrom rushlight import Tensor\n\n\n"
CALLS = 16
# Lengths of other tensors follow that of the argument.
LENGTHS = {
    "torch.ones(3)": "torch.ones(x.size(0))", "torch.arange(3)": "torch.arange(x.size(0))", "y[: 3]": "y[: x.size(0)]",
    "y.view(3)": "y.view(-1)", "torch.zeros(3)": "torch.zeros(x.size(0))", "x[:2]": "x[: x.size(0) - 1]",
    "y[:2]": "y[: y.size(0) - 1]",
}  # fmt: skip


@contextlib.contextmanager
def native_after(seconds: str) -> Iterator[None]:
    """Make native code of scripted functions after so many seconds in the interpreter."""
    before = os.environ.get("RUSHLIGHT_JIT_NATIVE_AFTER")
    os.environ["RUSHLIGHT_JIT_NATIVE_AFTER"] = seconds
    try:
        yield
    finally:
        os.environ.pop("RUSHLIGHT_JIT_NATIVE_AFTER")
        if before is not None:
            os.environ["RUSHLIGHT_JIT_NATIVE_AFTER"] = before


def source_of(seed: int) -> str:
    """The text of a seed's program."""
    text = Writer(seed, tensors=True).text()
    for fixed, following in LENGTHS.items():
        text = text.replace(fixed, following)
    return HEAD + text


def function_of(seed: int) -> Function:
    """The program of a seed, scripted."""
    source, name = source_of(seed), f"<program {seed}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    scope: dict[str, object] = {"__name__": f"programs_{seed}"}
    exec(compile(source, name, "exec"), scope)
    return torch.jit.script(scope["program"])._function


def arguments_of(seed: int) -> Iterator[list]:
    """The arguments of each call: sizes come again, and change; a few tensors are not contiguous."""
    draw = random.Random(seed)
    generator = torch.Generator().manual_seed(seed)
    for call in range(CALLS):
        length = 3 if call < 3 else draw.choice((3, 3, 4, 5, 6, 8))
        x = torch.randn(length, generator=generator)
        if draw.random() < 0.15:
            x = torch.randn(length, 2, generator=generator)[:, 0]
        a, b = draw.choice((0, 1, 2, -5, 7, 2**62)), draw.choice((1, 2, -3, 9, 0))
        yield [a, b, draw.choice((0.5, -3.25, 100.0, 0.0)), [draw.randint(-4, 9) for _ in range(draw.randint(1, 4))], x]


def finding(seed: int) -> str | None:
    """The first difference between the executor and the interpreter; None if there is none."""
    function, reference = function_of(seed), function_of(seed)
    for call, arguments in enumerate(arguments_of(seed)):
        given, others = copy.deepcopy(arguments), copy.deepcopy(arguments)
        try:
            expected: object = executor_of(reference)._interpret(others)
        except Exception as error:
            expected = error
        try:
            results: object = run_function(function, given)
        except Exception as error:
            results = error
        if isinstance(results, Exception) or isinstance(expected, Exception):
            if type(results) is not type(expected):
                return f"call {call} {arguments}: {results!r} for {expected!r}"
            continue
        try:
            assert_same(results, expected[0] if isinstance(expected, list) else expected)
            assert_same(given[4:], others[4:])  # a caller keeps its lists: scripted functions get copies
        except AssertionError as error:
            return f"call {call} {arguments}: {error}"
    return None


def main() -> int:
    """Run the seeds that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--start", type=int, default=0)
    options = parser.parse_args()
    failures = 0
    warnings.simplefilter("ignore")
    with torch.no_grad(), native_after("0"):
        for seed in range(options.start, options.start + options.seeds):
            found = finding(seed)
            if found:
                failures += 1
                print(f"seed {seed}: {found}\n{source_of(seed)}\n", flush=True)
    print(f"{options.seeds} programs, {failures} differ")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
