"""Second derivatives of the operators, against torch's, on OpInfo's samples in float64.

    python -m tests.yardsticks.second_derivatives                # all operators that support them: a summary
    python -m tests.yardsticks.second_derivatives tanh matmul    # some, by OpInfo's names
    python -m tests.yardsticks.second_derivatives --write        # and add the clean ones to clean_second_derivatives.txt

Compared are the gradients of a weighted sum of the first gradients, with respect to the inputs and to the weights of the outputs.
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
from tests.yardsticks.command_line import add_to_list, chosen_operators, parse_arguments
from tests.yardsticks.conversion import Converter, Unconvertible, as_array, counterpart, tensors_in
from tests.yardsticks.operators import RANDOM, full_name, operators

CLEAN = Path(__file__).with_name("clean_second_derivatives.txt")
SAMPLES = 4
LARGEST = 4000
FINE = frozenset({"ok", "unconvertible", "oracle error", "no second derivative"})


def known() -> dict:
    """The OpInfos with second derivatives in float64, by full name."""
    return {
        name: op for name, op in operators().items()
        if op.supports_gradgrad and op.supports_autograd and torch.float64 in op.supported_backward_dtypes("cpu")
        and not op.name.startswith(RANDOM)
    }  # fmt: skip


def check(op, samples: int = SAMPLES) -> collections.Counter:
    """Compares the first samples of an operator; returns the outcomes."""
    function = counterpart(op)
    if function is None:
        return collections.Counter(["missing"])
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    outcomes: collections.Counter = collections.Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in islice(op.sample_inputs("cpu", torch.float64, requires_grad=True), samples):
            outcomes.update([_outcome(op, function, sample)])
    return outcomes


def _outcome(op, function, sample) -> str:
    converter = Converter()
    try:
        subject, args, kwargs = converter((sample.input, sample.args, sample.kwargs))
    except Unconvertible:
        return "unconvertible"
    if sum(pair[0].numel() for pair in converter.leaves) > LARGEST or "dropout" in str(sample.kwargs):
        return "unconvertible"
    try:
        expected = op.op(sample.input, *sample.args, **sample.kwargs)
        wanted = second(torch, sample.output_process_fn_grad(expected), [pair[0] for pair in converter.leaves])
    except Exception:
        return "oracle error"
    if wanted is None:
        return "no second derivative"
    try:
        actual = function(subject, *args, **kwargs)
        got = second(rushlight, sample.output_process_fn_grad(actual), [pair[1] for pair in converter.leaves])
    except Exception as error:
        return f"{type(error).__name__}: {error}".split("\n")[0][:200]
    if got is None:
        got = [None] * len(wanted)
    return "ok" if all(map(_agree, wanted, got)) else "value"


def second(library, outputs, leaves: list) -> list | None:
    """Gradients of the weighted first gradients with respect to the leaves and the output weights; None if there are none."""
    outputs = [v for v in tensors_in(outputs, library.Tensor) if isinstance(v, library.Tensor) and v.requires_grad]
    if not outputs:
        return None
    starts = [_weights(library, output, seed).requires_grad_() for seed, output in enumerate(outputs)]
    first = library.autograd.grad(outputs, leaves, starts, create_graph=True, allow_unused=True)
    total = 0
    for seed, value in enumerate(first):
        if value is not None and value.requires_grad:
            weighted = (value * _weights(library, value, seed + 50)).sum()
            total = total + (weighted.real if value.is_complex() else weighted)
    if not isinstance(total, library.Tensor):
        return None
    return list(library.autograd.grad(total, [*leaves, *starts], allow_unused=True))


def _weights(library, like, seed: int):
    values = np.random.RandomState(seed).uniform(0.5, 1.5, size=tuple(like.shape))
    return library.from_numpy(np.asarray(values)).to(like.dtype)


def _agree(want, have) -> bool:
    if want is None or have is None:
        return (want is None or not as_array(want).any()) and (have is None or not as_array(have).any())
    if want.layout != torch.strided:
        return True
    a, b = as_array(have), as_array(want)
    scale = max(1.0, float(np.abs(b).max(initial=0)))
    return a.shape == b.shape and np.allclose(a, b, rtol=1e-5, atol=1e-6 * scale, equal_nan=True)


def is_clean(outcomes: collections.Counter) -> bool:
    """Whether at least one sample was compared, and none differs."""
    return outcomes["ok"] > 0 and set(outcomes) <= FINE


def main() -> int:
    """Check the operators named on the command line, or all; print what differs and how many are clean."""
    options = parse_arguments(__doc__, CLEAN)
    torch.set_num_threads(1)
    chosen = chosen_operators(known(), options.names)
    clean, silent = [], 0
    for name, op in chosen.items():
        outcomes = check(op)
        if is_clean(outcomes):
            clean.append(full_name(op))
        elif set(outcomes) <= FINE:
            silent += 1
        else:
            print(f"{name}: " + ", ".join(f"{count} {kind}" for kind, count in outcomes.items()), flush=True)
    print(f"{len(clean)} of {len(chosen)} operators are clean; {silent} have no sample that could be compared")
    if options.write:
        add_to_list(CLEAN, clean)
    return 0


if __name__ == "__main__":
    sys.exit(main())
