"""Compiled code against eager, on the samples that torch has of its operators (OpInfo): values, shapes, dtypes, gradients.

    python -m tests.yardsticks.compiled                  # all operators that take float32: a summary
    python -m tests.yardsticks.compiled add mul          # some, by OpInfo's names
    python -m tests.yardsticks.compiled --dtype int64    # of another dtype
    python -m tests.yardsticks.compiled --write          # and add those that are clean now to clean_compiled.txt (float32)

Each sample is a function of its own, with its sizes fixed, then with all of them open. Random and uninitialised outputs are
compared by shape and dtype. What the capture leaves to Python counts as agreeing: only results are looked at. Needs torch and
expecttest, for the samples.
"""

from __future__ import annotations

import collections
import random
import sys
import warnings
from itertools import islice
from pathlib import Path

import numpy as np
import torch

import rushlight
from tests.yardsticks.command_line import add_to_list, argument_parser, chosen_operators
from tests.yardsticks.conversion import Converter, Unconvertible, as_array, counterpart, tensors_in
from tests.yardsticks.operators import FINE, RANDOM, is_clean, operators, weighted_gradients

CLEAN = Path(__file__).with_name("clean_compiled.txt")
SAMPLES = 3
TOLERANCES = {"float16": 2e-2, "bfloat16": 5e-2, "float64": 1e-9, "complex128": 1e-9}  # 1e-4 for all others
OPEN = (False, True)


def check(op, kind: torch.dtype = torch.float32, samples: int = SAMPLES, is_open: tuple = OPEN) -> collections.Counter:
    """Compiles some samples of an operator with static and dynamic sizes; returns the outcomes."""
    function = counterpart(op)
    if function is None:
        return collections.Counter(["missing"])
    gradients = op.supports_autograd and kind in op.supported_backward_dtypes("cpu")
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    outcomes: collections.Counter = collections.Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in islice(op.sample_inputs("cpu", kind, requires_grad=gradients), samples):
            for dynamic in is_open:
                outcomes.update(_outcomes(op, function, sample, gradients, dynamic, TOLERANCES.get(str(kind)[6:], 1e-4)))
    return outcomes


def _outcomes(op, function, sample, gradients: bool, dynamic: bool, tolerance: float) -> list[str]:
    if sample.kwargs.get("dropout_p") or ("training" in sample.kwargs and "dropout" in str(sample.kwargs)):
        return ["random sample"]
    converter = Converter()
    try:
        subject, args, kwargs = converter((sample.input, sample.args, sample.kwargs))
    except Unconvertible:
        return ["unconvertible"]
    leaves = [pair[1] for pair in converter.leaves] if gradients and not op.name.startswith(RANDOM) else []

    def run(subject: object, args: tuple, kwargs: dict) -> object:
        return function(subject, *args, **kwargs)

    try:
        wanted = run(subject, args, kwargs)
        slopes = weighted_gradients(rushlight, wanted, leaves) if leaves else None
    except Exception:
        return ["oracle error"]
    rushlight.compiler.reset()
    try:
        found = rushlight.compile(run, dynamic=dynamic)(subject, args, kwargs)
        difference = _difference(wanted, found, None if op.name.startswith(RANDOM) else tolerance)
        if difference or slopes is None:
            return [difference or "ok"]
        same = _difference(slopes, weighted_gradients(rushlight, found, leaves) or (), 10 * tolerance)
        return [f"gradient {same}" if same else "ok"]
    except Exception as error:
        return [f"{type(error).__name__}: {error}".split("\n")[0][:160]]


def _difference(wanted: object, found: object, tolerance: float | None) -> str | None:
    """The difference between results; None if they agree. Without a tolerance values are ignored. A missing gradient counts as
    zeros."""
    wanted, found = ([*_flat(value)] for value in (wanted, found))
    if len(wanted) != len(found):
        return "structure"
    for want, have in zip(wanted, found, strict=True):
        if want is None or have is None:
            if any(value is not None and as_array(value).any() for value in (want, have)):
                return "none"
            continue
        if isinstance(want, rushlight.Tensor) and (want.dtype, want.requires_grad) != (have.dtype, have.requires_grad):
            return f"{have.dtype}, requires_grad={have.requires_grad}, not {want.dtype}, {want.requires_grad}"
        if isinstance(want, rushlight.Tensor) and (want.is_sparse or want.device.type == "meta"):
            continue
        want, have = as_array(want), as_array(have)
        if want.shape != have.shape:
            return f"shape {have.shape}, not {want.shape}"
        if tolerance and not np.allclose(have, want, rtol=tolerance, atol=tolerance, equal_nan=True):
            return "value"
    return None


def _flat(value: object):
    """The tensors, numbers and missing gradients in a result."""
    if isinstance(value, tuple) and None in value:
        yield from value
    else:
        yield from tensors_in(value, rushlight.Tensor)


def main() -> int:
    """Check the operators named on the command line, or all; print what differs and how many are clean."""
    parser = argument_parser(__doc__, CLEAN)
    parser.add_argument("--dtype", default="float32", help="of the samples: a name of torch's")
    options = parser.parse_args()
    kind = getattr(torch, options.dtype)
    rushlight.set_num_threads(1)
    chosen = chosen_operators(operators(kind), options.names)
    clean = []
    for name, op in chosen.items():
        outcomes = check(op, kind)
        if is_clean(outcomes):
            clean.append(name)
        elif set(outcomes) - FINE:
            print(f"{name}: " + ", ".join(f"{count} {what}" for what, count in outcomes.items()), flush=True)
    print(f"{len(clean)} of {len(chosen)} operators are clean")
    if options.write and kind is torch.float32:
        add_to_list(CLEAN, clean)
    return 0


if __name__ == "__main__":
    sys.exit(main())
