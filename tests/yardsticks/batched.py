"""vmap against a loop, on the samples that torch has of its operators (OpInfo): values, shapes, dtypes, gradients.

    python -m tests.yardsticks.batched                  # all operators that take float32: a summary
    python -m tests.yardsticks.batched add mul          # some, by OpInfo's names
    python -m tests.yardsticks.batched --dtype int64    # of another dtype
    python -m tests.yardsticks.batched --write          # and add those that are clean now to clean_batched.txt (float32)

Each sample is two examples, of which one has its floats scaled; all of its tensors are mapped over, then the first alone, along
its last dimension, then all but the first. What vmap refuses with a message of its own counts as agreeing. Needs torch and
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
from rushlight.core.pytree import tree_flatten, tree_unflatten
from tests.yardsticks.command_line import add_to_list, argument_parser, chosen_operators
from tests.yardsticks.compiled import _difference
from tests.yardsticks.conversion import Converter, Unconvertible, counterpart
from tests.yardsticks.operators import FINE, RANDOM, is_clean, operators, weighted_gradients

CLEAN = Path(__file__).with_name("clean_batched.txt")
SAMPLES = 6
PATTERNS = ("all", "first", "rest")
SCALE = 0.875
REFUSALS = ("vmap:", "Cannot access data pointer of Tensor that doesn't have storage", "Batch norm got a batched tensor")


def check(op, kind: torch.dtype = torch.float32, samples: int = SAMPLES) -> collections.Counter:
    """Runs some samples of an operator under vmap; returns the outcomes."""
    function = counterpart(op)
    if function is None:
        return collections.Counter(["missing"])
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    outcomes: collections.Counter = collections.Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in islice(op.sample_inputs("cpu", kind, requires_grad=False), samples):
            for pattern in PATTERNS:
                outcomes.update(_outcomes(op, function, sample, pattern))
    return outcomes


def _outcomes(op, function, sample, pattern: str) -> list[str]:
    if op.name.startswith(RANDOM) or "dropout" in str(sample.kwargs) or op.name.endswith("attention_forward"):
        return ["random sample"]
    try:
        whole = Converter()((sample.input, sample.args, sample.kwargs))
    except Unconvertible:
        return ["unconvertible"]
    leaves, spec = tree_flatten(whole)
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, rushlight.Tensor)]
    chosen = {"all": places, "first": places[:1], "rest": places[1:]}[pattern]
    if not chosen:
        return []
    dim = -1 if pattern == "first" else 0
    stacks = [rushlight.stack([leaves[place], _other(leaves[place])], dim) for place in chosen]
    gradients = op.supports_autograd
    for stack in stacks if gradients else ():
        if stack.is_floating_point():
            stack.requires_grad_()

    def run(*tensors: rushlight.Tensor) -> list:
        filled = list(leaves)
        for place, tensor in zip(chosen, tensors, strict=True):
            filled[place] = tensor
        subject, args, kwargs = tree_unflatten(filled, spec)
        return [value for value in tree_flatten(function(subject, *args, **kwargs))[0] if isinstance(value, rushlight.Tensor)]

    try:
        copies = [stack.clone() for stack in stacks]
        rows = [run(*(stack.select(dim, index) for stack in copies)) for index in range(2)]
        wanted = [rushlight.stack(column) for column in zip(*rows, strict=True)]
    except Exception:
        return ["oracle error"]
    if not wanted:
        return []
    try:
        found = rushlight.vmap(run, dim, randomness="same")(*(stack.clone() for stack in stacks))
        difference = _difference(wanted, found, 1e-4)
        if difference:
            return [f"{pattern} {difference}"]
        return [_gradient_difference(wanted, found, [stack for stack in stacks if stack.requires_grad], pattern)]
    except Exception as error:
        refused = str(error).startswith(REFUSALS)
        return ["refused" if refused else f"{pattern} {type(error).__name__}: {error}".split("\n")[0][:200]]


def _other(tensor: rushlight.Tensor) -> rushlight.Tensor:
    return tensor * SCALE if tensor.is_floating_point() or tensor.is_complex() else tensor.clone()


def _gradient_difference(wanted: list, found: list, leaves: list, pattern: str) -> str:
    try:
        slopes = weighted_gradients(rushlight, wanted, leaves) if leaves else None
    except RuntimeError:  # the loop's writes cannot be compared, or the loss has no gradient
        slopes = None
    if slopes is None:
        return "ok"
    same = _difference(slopes, weighted_gradients(rushlight, found, leaves) or (), 1e-3)
    return f"{pattern} gradient {same}" if same else "ok"


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
