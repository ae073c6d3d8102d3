"""Tangents of the operators by forward mode, against torch's, on OpInfo's samples in float64.

    python -m tests.yardsticks.tangents                # all operators that support them: a summary
    python -m tests.yardsticks.tangents tanh matmul    # some, by OpInfo's names
    python -m tests.yardsticks.tangents --write        # and add the clean ones to clean_tangents.txt

Compared are the tangents of the outputs, where all inputs that require grad have some; without recording.
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

CLEAN = Path(__file__).with_name("clean_tangents.txt")
SAMPLES = 4
LARGEST = 4000
FINE = frozenset({"ok", "unconvertible", "oracle error", "no tangent"})


def known() -> dict:
    """The OpInfos with forward mode in float64, by full name."""
    return {
        name: op for name, op in operators().items()
        if op.supports_forward_ad and op.supports_autograd and torch.float64 in op.supported_backward_dtypes("cpu")
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
        wanted = pushed(torch, op.op, sample.input, sample.args, sample.kwargs)
    except Exception:
        return "oracle error"
    if all(tangent is None for tangent in wanted):
        return "no tangent"
    try:
        got = pushed(rushlight, function, subject, args, kwargs)
    except Exception as error:
        return f"{type(error).__name__}: {error}".split("\n")[0][:200]
    return "ok" if len(wanted) == len(got) and all(map(_agree, wanted, got)) else "value"


def pushed(library, function, *arguments: object) -> list:
    """The tangents of the outputs. Those of the arguments' tensors are numbered in order."""
    forward_ad, seeds = library.autograd.forward_ad, iter(range(100))
    with library.no_grad(), forward_ad.dual_level():
        subject, args, kwargs = _dual(library, arguments, seeds)
        outputs = tensors_in(function(subject, *args, **kwargs), library.Tensor)
        return [forward_ad.unpack_dual(output).tangent for output in outputs if isinstance(output, library.Tensor)]


def _dual(library, value, seeds):
    if isinstance(value, library.Tensor):
        if not value.requires_grad:
            return value
        return library.autograd.forward_ad.make_dual(value.detach(), _weights(library, value, next(seeds)))
    if isinstance(value, list | tuple):
        made = [_dual(library, item, seeds) for item in value]
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    return {key: _dual(library, item, seeds) for key, item in value.items()} if isinstance(value, dict) else value


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
