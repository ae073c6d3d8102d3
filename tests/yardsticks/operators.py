"""Torch's own operator samples (OpInfo) run against Rushlight: every operator of the CPU, forward and gradients.

    python -m tests.yardsticks.operators                  # all operators: a summary
    python -m tests.yardsticks.operators add mul          # some, by OpInfo's names
    python -m tests.yardsticks.operators --dtype int64    # samples of another dtype than float32
    python -m tests.yardsticks.operators --write          # and add those that are clean now to clean_operators.txt (float32)

An operator is clean when all its samples agree in structure, shape, dtype, value and, where torch supports it, gradient. Values
are torch's in float32, or those that it gives for the sample in float64.
Random and uninitialised outputs are compared by shape and dtype. Needs torch and expecttest.

Not clean are `as_strided_scatter`, in which torch's gradient passes on what was overwritten, and the five `jiterator` operators,
which torch has on CUDA alone.
"""

from __future__ import annotations

import collections
import random
import sys
import warnings
from pathlib import Path

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

import rushlight
from tests.yardsticks.command_line import add_to_list, argument_parser, chosen_operators
from tests.yardsticks.conversion import Converter, Unconvertible, as_array, counterpart, tensors_in

CLEAN = Path(__file__).with_name("clean_operators.txt")
FINE = frozenset({"ok", "gradient ok", "random sample", "refused", "unconvertible", "oracle error"})
RANDOM = (
    "rand", "empty", "new_empty", "bernoulli", "multinomial", "normal", "uniform", "cauchy", "exponential", "geometric",
    "log_normal", "nn.functional.dropout", "nn.functional.alpha_dropout", "nn.functional.feature_alpha_dropout",
    "nn.functional.rrelu", "nn.functional.fractional_max_pool", "svd_lowrank", "pca_lowrank",
)  # fmt: skip


def full_name(op) -> str:
    """OpInfo's name with its variant: "std_mean.unbiased"."""
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def operators(kind: torch.dtype = torch.float32) -> dict:
    """The OpInfos of operators that take a dtype on the CPU, by full name."""
    return {full_name(op): op for op in op_db if kind in op.supported_dtypes("cpu")}


def check(op, kind: torch.dtype = torch.float32) -> collections.Counter:
    """Runs the samples of an operator: counts by kind of outcome. Kinds outside of FINE name a difference."""
    function = counterpart(op)
    if function is None:
        return collections.Counter(["missing"])
    gradients = op.supports_autograd and kind in op.supported_backward_dtypes("cpu")
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    outcomes = collections.Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in op.sample_inputs("cpu", kind, requires_grad=gradients):
            outcomes.update(_outcomes(op, function, sample, gradients))
    return outcomes


def is_clean(outcomes: collections.Counter) -> bool:
    """Whether at least one sample was compared, and none differs."""
    return outcomes["ok"] > 0 and set(outcomes) <= FINE


def _outcomes(op, function, sample, gradients: bool) -> list[str]:
    converter = Converter()
    try:
        subject, args, kwargs = converter((sample.input, sample.args, sample.kwargs))
    except Unconvertible:
        return ["unconvertible"]
    try:
        expected = op.op(sample.input, *sample.args, **sample.kwargs)
    except Exception:
        return ["oracle error"]
    try:
        actual = function(subject, *args, **kwargs)
    except Exception as error:
        return [_described(error)]
    is_random = op.name.startswith(RANDOM) or _drops_elements(op, sample)
    difference = compare(expected, actual, *tolerances(op), values=not is_random)
    if difference == "value" and (_is_more_exact(op, sample, actual) or _is_same_up_to_gauge(op, sample, expected, actual)):
        difference = None
    if difference:
        return [difference]
    if not gradients or not converter.leaves or is_random:
        return ["ok"]
    return ["ok", *_gradient_outcomes(op, sample, expected, actual, converter.leaves)]


def _drops_elements(op, sample) -> bool:
    """Whether a sample uses dropout: it is a keyword, or a positional argument of attention."""
    if op.name == "nn.functional.multi_head_attention_forward":
        return sample.kwargs["training"] and sample.args[9] > 0
    return bool(sample.kwargs.get("dropout_p") or ("training" in sample.kwargs and "dropout" in str(sample.kwargs)))


def _is_more_exact(op, sample, actual) -> bool:
    """Whether a float32 result matches torch's for the same sample in float64: torch's own float32 result may be less exact."""
    wide = sample.transform(lambda x: x.double() if isinstance(x, torch.Tensor) and x.dtype is torch.float32 else x)
    try:
        expected = op.op(wide.input, *wide.args, **wide.kwargs)
    except Exception:
        return False
    widened = [have.double() if have.dtype is rushlight.float32 else have for have in tensors_in(actual, rushlight.Tensor)]
    return compare(list(tensors_in(expected, torch.Tensor)), widened, *tolerances(op)) is None


def _is_same_up_to_gauge(op, sample, expected, actual) -> bool:
    """Whether results agree in the parts that the sample determines: singular vectors, say, are free in their signs."""
    process = sample.output_process_fn_grad
    return compare(process(expected), process(actual), *tolerances(op)) is None


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".split("\n")[0][:160]


def tolerances(op) -> tuple[float, float]:
    """Relative and absolute tolerance for float32 results: 1e-4, or what OpInfo grants the operator."""
    relative = absolute = 1e-4
    for group in op.decorators:
        for decorator in getattr(group, "decorators", [group]):
            granted = getattr(decorator, "d", None)
            if isinstance(granted, dict) and hasattr(granted.get(torch.float32), "atol"):
                absolute = max(absolute, granted[torch.float32].atol)
                relative = max(relative, granted[torch.float32].rtol)
    return relative, absolute


def compare(expected: object, actual: object, relative: float, absolute: float, values: bool = True) -> str | None:
    """The kind of difference between nested results: "structure", "shape", "dtype" or "value"; None if they agree."""
    wanted, got = list(tensors_in(expected, torch.Tensor)), list(tensors_in(actual, rushlight.Tensor))
    if len(wanted) != len(got):
        return "structure"
    for want, have in zip(wanted, got, strict=True):
        for attribute in ("dtype", "layout"):
            ours, theirs = (str(getattr(tensor, attribute, None)) for tensor in (have, want))
            if ours != theirs:
                return f"{attribute} {ours}, not {theirs}"
        want, have = as_array(want), as_array(have)
        if want.shape != have.shape:
            return f"shape {have.shape}, not {want.shape}"
        if want.dtype != have.dtype:
            return f"dtype {have.dtype}, not {want.dtype}"
        if values and not np.allclose(have, want, rtol=relative, atol=absolute, equal_nan=True):
            return "value"
    return None


def _gradient_outcomes(op, sample, expected, actual, leaves: list) -> list[str]:
    try:
        wanted = weighted_gradients(torch, sample.output_process_fn_grad(expected), [pair[0] for pair in leaves])
    except Exception:
        return ["oracle error"]
    if wanted is None:
        return []
    try:
        got = weighted_gradients(rushlight, sample.output_process_fn_grad(actual), [pair[1] for pair in leaves])
    except Exception as error:
        return ["gradient " + _described(error)]
    if got is None:
        return ["no gradient"]
    relative, absolute = tolerances(op)
    for want, have in zip(wanted, got, strict=True):
        if not _gradients_agree(want, have, max(relative, 1e-3), max(absolute, 1e-3)):
            return ["gradient value"]
    return ["gradient ok"]


def weighted_gradients(library, outputs: object, leaves: list) -> tuple | None:
    """Gradients of a weighted sum of the outputs, the weights drawn from a fixed seed."""
    outputs = [
        value for value in tensors_in(outputs, library.Tensor) if isinstance(value, library.Tensor) and value.requires_grad
    ]
    if not outputs:
        return None
    total = 0
    for seed, output in enumerate(outputs):
        weights = np.random.RandomState(seed).uniform(0.5, 1.5, size=tuple(output.shape)).astype(np.float32)
        weighted = (output * library.from_numpy(np.asarray(weights)).to(output.dtype)).sum()
        total = total + (weighted.abs() if output.is_complex() else weighted)
    return library.autograd.grad(total, leaves, allow_unused=True)


def _gradients_agree(want, have, relative: float, absolute: float) -> bool:
    if want is None or have is None:
        return (want is None or not as_array(want).any()) and (have is None or not as_array(have).any())
    if want.layout != torch.strided:
        return True
    if have.layout != rushlight.strided:  # a sparse tensor's gradient has its elements alone, torch's may have others
        ones = rushlight.ones_like(have.values())
        pattern = rushlight.sparse_csr_tensor(have.crow_indices(), have.col_indices(), ones, tuple(have.shape))
        return np.allclose(as_array(have), as_array(want) * as_array(pattern), rtol=relative, atol=absolute)
    return np.allclose(as_array(have), as_array(want), rtol=relative, atol=absolute, equal_nan=True)


def main() -> int:
    """Check the operators named on the command line, or all; print what differs and how many are clean."""
    parser = argument_parser(__doc__, CLEAN)
    parser.add_argument("--dtype", default="float32", help="of the samples: a name of torch's")
    options = parser.parse_args()
    kind = getattr(torch, options.dtype)
    torch.set_num_threads(1)
    chosen = chosen_operators(operators(kind), options.names)
    clean = []
    for name, op in chosen.items():
        outcomes = check(op, kind)
        if is_clean(outcomes):
            clean.append(name)
        else:
            print(f"{name}: " + ", ".join(f"{count} {what}" for what, count in outcomes.items()))
    print(f"{len(clean)} of {len(chosen)} operators are clean")
    if options.write and kind is torch.float32:
        add_to_list(CLEAN, clean)
    return 0


if __name__ == "__main__":
    sys.exit(main())
