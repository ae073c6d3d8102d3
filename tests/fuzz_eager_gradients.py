"""First and second gradients of random calls of every aten operator beside PyTorch's: `python -m tests.fuzz_eager_gradients --trials 20`.

Calls are those of tests.fuzz_eager whose results agree. Compared are the gradients of a weighted sum of all results by each
tensor, those of a weighted sum of these, and whether there is an error. A finding is replayed with `--only aten::mul.Tensor --trial 17`. The exit status is 1 if there
was a finding.
"""

from __future__ import annotations

import itertools
import sys
import warnings

import rushlight
from rushlight.ops.dispatcher import OpOverload
from tests import fuzz_arguments
from tests.fuzz_eager import UNSPECIFIED, Calls, different_values, flat, pytorch, to_other, unlike
from tests.ops.torch_oracle import array_of, torch_operator

RANDOM = ("dropout", "rand", "bernoulli", "rrelu", "normal", "multinomial", "poisson", "binomial", "exponential", "gumbel")
TOLERANCES = {"float16": 3e-2, "bfloat16": 1e-1, "float32": 2e-4, "float64": 1e-7, "complex64": 5e-4, "complex128": 1e-7}
NOT_DIFFERENTIABLE = ("derivative for", "not implemented for", "does not require grad", "not differentiable", "Could not run")
# Intended differences: part of an operator's name, and the beginning of the finding.
KNOWN: dict[str, str | tuple[str, ...]] = {
    "addcmul": "value", "atan2": "value",  # PyTorch multiplies ints that overflow
    "polar": "value",  # PyTorch takes the sign of the result for that of the direction
    "as_strided_scatter": "value",  # PyTorch's gradient has the elements that were replaced
    "logit": "value",  # outside its domain
    "logcumsumexp": "value", "sinc": "value", "float_power": "value",  # infinite or huge inputs
    "psi": "value inf for", "digamma": "value inf for", "polygamma": "value",  # at their poles
    "triplet_margin_loss": "value",  # p = 0
    "var": ("value", "gradient is not None"), "std": ("value", "gradient is not None"),  # without degrees of freedom
    "prod": "value", "pow": "value",  # NaN, and zeros to complex powers
    "mish": "value", "lerp": "value", "logaddexp": "value", "renorm": "value",  # infinite inputs
    "elu": "value",  # the second derivative at 0
    "window": "refused", "fake_quantize": "refused", "mkldnn": ("refused", "crashes"), "adaptive_avg_pool1d": "refused",
    "logical": "value",  # PyTorch leaves the gradient of what was overwritten
    "diag": "value", "trace": "value", "unfold": "value",  # leaves whose elements share memory
    "margin_ranking_loss": "value", "softplus": "value", "ndtr": "value", "cosine_similarity": "value",  # NaN, infinity, halves
    "det": "value", "norm_except_dim": "value", "special_psi": "value",
}  # fmt: skip


def with_gradients(value: object) -> object:
    """An argument in which floating and complex tensors are leaves that ask for gradients."""
    if isinstance(value, list | tuple):
        return type(value)(with_gradients(item) for item in value)
    is_wanted = hasattr(value, "stride") and (value.dtype.is_floating_point or value.dtype.is_complex)
    return value.detach().requires_grad_() if is_wanted else value


def weighted_sum(library: object, results: list) -> object:
    """A sum of all elements that depend on a leaf, each with a weight of its own; None if there are none."""
    total = None
    for number, result in enumerate(results):
        if not (hasattr(result, "stride") and result.requires_grad):
            continue
        parts = library.view_as_real(result.resolve_conj()) if result.dtype.is_complex else result
        weights = library.arange(parts.numel(), dtype=library.float64).add(number + 1).cos().reshape(parts.shape)
        summed = (parts.to(library.float64) * weights).sum()
        total = summed if total is None else total + summed
    return total


def gradients(library: object, op: object, args: list, kwargs: dict, is_written: bool) -> tuple[list, Exception | None]:
    """The first and second gradients of all tensors among the arguments, None for those without one; and the error. An operator
    that writes to its first argument (`is_written`) gets a copy of it."""
    args, kwargs = with_gradients(list(args)), {name: with_gradients(value) for name, value in kwargs.items()}
    leaves = [leaf for leaf in flat([*args, *kwargs.values()]) if hasattr(leaf, "stride") and leaf.requires_grad]
    library.manual_seed(0)
    found: list = []
    try:
        if is_written:
            args[0] = args[0].clone()
        total = weighted_sum(library, flat(op(*args, **kwargs)))
        for order in range(2):
            if total is None:
                break
            made = list(library.autograd.grad(total, leaves, create_graph=order == 0, allow_unused=True))
            found += made
            total = weighted_sum(library, made)
    except Exception as error:
        return found, error
    return found, None


def finding(op: OpOverload, trial: int) -> str | None:
    """The unintended difference from PyTorch's gradients in one trial."""
    found = difference(op, trial)
    known = found and any(part in op.name and found.startswith(kinds) for part, kinds in KNOWN.items())
    return None if known else found


def difference(op: OpOverload, trial: int) -> str | None:
    """Any difference from PyTorch's gradients in one trial; None where the results differ, which tests.fuzz_eager reports."""
    name = op._schema.name.rpartition("::")[2]
    is_written = op.writes_self and name.endswith("_") and "out" not in op._schema.overload
    if (op._schema.is_mutable and not is_written) or name.startswith("_"):
        return None
    if any(part in name for part in (*RANDOM, *UNSPECIFIED, "resize", "requires_grad", "detach_", "set_")):
        return None
    if unlike(op, trial) is not None:
        return None
    torch = pytorch()
    try:
        other = torch_operator(torch, op)
    except AttributeError:
        return None
    args, kwargs = Calls(op, trial).make(op)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        others = [to_other(torch, value) for value in args], {name: to_other(torch, value) for name, value in kwargs.items()}
        theirs, refused = gradients(torch, other, *others, is_written)
        if refused is not None and any(part in str(refused) for part in NOT_DIFFERENTIABLE):
            return None
        ours, failed = gradients(rushlight, op, args, kwargs, is_written)
    if refused is not None:
        return None  # PyTorch lacks the derivative for some mixtures of dtypes
    if failed is not None:
        is_empty = any(hasattr(leaf, "stride") and not leaf.numel() for leaf in flat(args))
        return None if is_empty else f"refused: {type(failed).__name__}: {str(failed).partition(chr(10))[0]}"
    kinds = {value.dtype.name for value in flat([*args, *kwargs.values()]) if isinstance(value, rushlight.Tensor)}
    kinds |= {value.name for value in (*args, *kwargs.values()) if isinstance(value, rushlight.dtype)}
    tolerance = max((TOLERANCES[kind] for kind in kinds if kind in TOLERANCES), default=0)
    for number, (mine, known) in enumerate(itertools.zip_longest(ours, theirs)):
        found = unlike_gradient(mine, known, tolerance)
        if found is not None:
            return f"{found} (tensor {number})"
    return None


def unlike_gradient(mine: object, known: object, tolerance: float) -> str | None:
    """How a gradient differs from PyTorch's. None stands for zeros."""
    if mine is None or known is None:
        other = known if mine is None else mine
        return None if other is None or not array_of(other).any() else f"gradient is {'missing' if mine is None else 'not None'}"
    if "complex32" in str(known.dtype) or "complex_half" in mine.dtype.name:
        return None  # NumPy has no such numbers
    if tuple(mine.shape) != tuple(known.shape) or mine.dtype.name != str(known.dtype).removeprefix("torch."):
        return f"{mine.dtype.name}{list(mine.shape)} for {known.dtype}{list(known.shape)}"
    if not mine.numel():
        return None
    return different_values(array_of(mine), array_of(known), tolerance)


if __name__ == "__main__":
    sys.exit(fuzz_arguments.main("tests.fuzz_eager_gradients", __doc__, finding, lambda op, trial: Calls(op, trial).make(op)))
