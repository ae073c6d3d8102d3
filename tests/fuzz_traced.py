"""Random functions of tensors, traced and scripted, called with changing sizes: `python -m tests.fuzz_traced [--seeds N] [--start S]`.

In: a seed. Out: what the traced and the scripted function give at the example's sizes and at others, by the interpreter and by
native code, beside what those of PyTorch give. Prints every program whose results differ, as source. Exit status 1 if there is any.
"""

from __future__ import annotations

import argparse
import linecache
import sys
import warnings
from collections.abc import Callable, Sequence

import numpy as np

import rushlight
from tests.fuzz_eager import different_values, pytorch, to_other
from tests.fuzz_scripted import native_after
from tests.inductor.open_programs import resized
from tests.inductor.random_inputs import InputSpec
from tests.inductor.random_programs import Program, random_open_program
from tests.ops.torch_oracle import array_of

SIZES = 5  # calls with other sizes
TOLERANCES = {"float64": 1e-6, "float32": 2e-3, "float16": 2e-2, "bfloat16": 1e-1}

# Errors of PyTorch for code that Rushlight takes.
ONLY_HERE = (
    "Cannot emit expr for: (dots)", "Union(float, int)",  # in its compiler
    "(Scalar a, Scalar b) -> bool",  # traces of comparisons with a bool
    "not implemented for 'Bool'",
)  # fmt: skip
# Errors of Rushlight where PyTorch reads beyond the end of tensors, or writes to memory that several elements share.
ONLY_THERE = ("out of bounds", "refers to a single memory location")


def function_of(program: Program, library: object, name: str) -> Callable:
    """The program's function, with `library` under the name torch."""
    linecache.cache[name] = (len(program.source), None, program.source.splitlines(True), name)
    constants = {key: to_other(pytorch(), spec.make()) for key, spec in program.constants.items()} if library is not rushlight else {
        key: spec.make() for key, spec in program.constants.items()
    }  # fmt: skip
    scope = {"__name__": f"programs_{library.__name__}", "torch": library, "F": library.nn.functional, **constants}
    exec(compile(program.source, name, "exec"), scope)
    return scope["f"]


def inputs_of(specs: Sequence[InputSpec], library: object) -> list:
    """New tensors of a library."""
    made = [spec.make() for spec in specs]
    return made if library is rushlight else [to_other(pytorch(), tensor) for tensor in made]


def results_of(call: Callable, inputs: list) -> list | Exception:
    """What a call gives, or the error that it raises, and the inputs after it."""
    try:
        found = call(*inputs)
    except Exception as error:
        return error
    return [*(found if isinstance(found, tuple | list) else [found]), *inputs]


def unlike(ours: list | Exception, theirs: list | Exception, tolerance: float) -> str | None:
    """How two outcomes differ; None if they agree."""
    if isinstance(ours, Exception) or isinstance(theirs, Exception):
        if isinstance(ours, Exception) and isinstance(theirs, Exception):
            return None
        if any(part in str(ours) for part in ONLY_THERE) or any(part in str(theirs) for part in ONLY_HERE):
            return None
        raised = ours if isinstance(ours, Exception) else theirs
        return f"{'refused' if raised is ours else 'accepted'}: {type(raised).__name__}: {str(raised).strip()[-300:]}"
    if len(ours) != len(theirs):
        return f"{len(ours)} values for {len(theirs)}"
    return next(filter(None, (different(one, other, tolerance) for one, other in zip(ours, theirs, strict=True))), None)


def different(one: object, other: object, tolerance: float) -> str | None:
    """How a value differs from PyTorch's; None if they agree."""
    if isinstance(one, rushlight.Tensor) and isinstance(other, int | float):  # PyTorch makes constants of traced code numbers
        return None if one.tolist() == other else f"{one!r} for {other!r}"
    if not (isinstance(one, rushlight.Tensor) and hasattr(other, "stride")):
        return None if _plain(one) == _plain(other) else f"{one!r} for {other!r}"
    kind = str(other.dtype).removeprefix("torch.")
    if one.dtype.name != kind or tuple(one.shape) != tuple(other.shape):
        return f"{one.dtype.name}{list(one.shape)} for {kind}{list(other.shape)}"
    mine, known = array_of(one.detach()), array_of(other.detach())
    return different_values(mine, known, max(tolerance, TOLERANCES[kind]) if kind in TOLERANCES else 0)


def _plain(value: object) -> object:
    """A value of either library, to compare: lists and sizes as tuples, and tensors in them as numbers."""
    if isinstance(value, tuple | list):
        return tuple(int(each) if hasattr(each, "stride") else _plain(each) for each in value)
    return str(value) if hasattr(value, "stride") else value


def finding(seed: int, is_native: bool) -> str | None:
    """The first difference of a program from PyTorch's; None if there is none."""
    program = random_open_program(seed, 6)
    if "unfold(" in program.source and "index_put_(" in program.source:
        return None  # the order of writes to elements that share memory is not defined
    specs = [program.inputs, *(resized(program.inputs, seed * SIZES + attempt) for attempt in range(SIZES))]
    for form in ("traced", "scripted"):
        made = []
        for library in (rushlight, pytorch()):
            function = function_of(program, library, f"<{form} program {seed} {library.__name__}>")
            example = inputs_of(program.inputs, library)
            made.append(_outcome(form, library, function, example))
        if any(isinstance(each, Exception) for each in made):
            found = unlike(*made, 0.0)
            if found:
                return f"{form}: {found}"
            continue
        ours, theirs = made
        for sizes in specs:
            found = _at(sizes, ours, theirs, program, 3 if is_native else 1)
            if found:
                return f"{form}, sizes {[spec.shape for spec in sizes]}: {found}"
    return None


def _outcome(form: str, library: object, function: Callable, example: list) -> Callable | Exception:
    """The scripted or traced function, or why there is none."""
    try:
        return library.jit.script(function) if form == "scripted" else library.jit.trace(function, tuple(example), check_trace=False)
    except Exception as error:
        return error


def _at(specs: Sequence[InputSpec], ours: Callable, theirs: Callable, program: Program, calls: int) -> str | None:
    known = results_of(theirs, inputs_of(specs, pytorch()))
    if not isinstance(known, Exception) and any(_is_wild(value) for value in known):
        return None  # rounding errors may be of any size
    for call in range(calls):
        found = unlike(results_of(ours, inputs_of(specs, rushlight)), known, TOLERANCES[program.precision])
        if found:
            return f"call {call}: {found}"
    return None


def _is_wild(value: object) -> bool:
    if not hasattr(value, "dtype") or not value.dtype.is_floating_point:
        return False
    array = np.abs(array_of(value.detach()).astype("float64"))
    return bool((array[np.isfinite(array)] > 1e4).any())


def main() -> int:
    """Run the seeds that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--native-every", type=int, default=8, help="native code for each program with such a number")
    options = parser.parse_args()
    failures = 0
    warnings.simplefilter("ignore")
    with rushlight.no_grad(), pytorch().no_grad():
        for seed in range(options.start, options.start + options.seeds):
            is_native = seed % options.native_every == 0
            with native_after("0" if is_native else "1000"):
                found = finding(seed, is_native)
            if found:
                failures += 1
                print(f"seed {seed}: {found}\n{random_open_program(seed, 6)}\n", flush=True)
    print(f"{options.seeds} programs, {failures} differ")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
