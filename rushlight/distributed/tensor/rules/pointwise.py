"""Rules of operators on elements: inputs are cut where the output is, except along dimensions that are broadcast."""

from __future__ import annotations

import math

from rushlight.distributed.tensor.layout import Spec
from rushlight.distributed.tensor.placement_types import Partial, Placement, Shard
from rushlight.distributed.tensor.rules.strategies import Call, P, R, Strategy, everywhere, rule, same

_LINEAR = "neg clone detach alias _to_copy lift_fresh contiguous real conj _conj"
_UNARY = (
    "abs acos acosh angle asin asinh atan atanh bitwise_not ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 "
    "floor frac isinf isnan isfinite lgamma log log10 log1p log2 logical_not logit nan_to_num positive rad2deg reciprocal relu "
    "round rsqrt sgn sigmoid sign signbit silu sin sinh sqrt square tan tanh trunc hardswish hardsigmoid hardtanh "
    "leaky_relu elu celu selu mish softplus gelu clamp clamp_min clamp_max threshold pow"
)
_BACKWARD = (
    "gelu_backward silu_backward tanh_backward sigmoid_backward threshold_backward hardswish_backward hardsigmoid_backward "
    "hardtanh_backward leaky_relu_backward elu_backward softplus_backward mish_backward logit_backward"
)
_BINARY = (
    "atan2 bitwise_and bitwise_or bitwise_xor eq ne lt le gt ge floor_divide fmod remainder fmax fmin maximum minimum hypot "
    "logical_and logical_or logical_xor logaddexp where masked_fill addcmul addcdiv lerp copysign rsub xlogy"
)
RANDOM = (
    "native_dropout bernoulli bernoulli_ uniform_ normal_ random_ exponential_ geometric_ log_normal_ cauchy_ "
    "rand_like randn_like randint_like"
).split()
_FACTORIES = "zeros_like ones_like empty_like full_like"


def _cut_like(spec: Spec, dim: int, output: tuple[int, ...]) -> Placement:
    """Return how an input must lie for its result to be cut along `dim`."""
    own = dim - (len(output) - len(spec.shape))
    return R if own < 0 or spec.shape[own] != output[dim] else Shard(own)


def _cuts(call: Call) -> list[Strategy]:
    output = call.outputs[0]
    return [
        Strategy(tuple(_cut_like(spec, dim, output) for spec in call.specs), (Shard(dim),) * len(call.outputs))
        for dim in range(len(output))
    ]


def _with_inplace(names: str) -> list[str]:
    return [name + end for name in names.split() for end in ("", "_")]


@rule(*_with_inplace(_UNARY), *_with_inplace(_BINARY), *_BACKWARD.split(), *RANDOM, "native_dropout_backward")
def pointwise(call: Call) -> list[Strategy]:
    """Any function of elements: what is still to be summed must be summed before."""
    return [everywhere(call), *_cuts(call)]


@rule(*_LINEAR.split(), "copy_", "copy", "neg_")
def linear(call: Call) -> list[Strategy]:
    """A linear function of all inputs: it can be applied before the ranks' values are summed."""
    kinds = {placement for spec in call.specs for placement in spec.placements if isinstance(placement, Partial)}
    return [everywhere(call), *_cuts(call), *(same(call, kind) for kind in kinds | {P})]


@rule("add", "add_", "sub", "sub_")
def sums(call: Call) -> list[Strategy]:
    """Sums of tensors are linear, sums with a number are not."""
    return linear(call) if len(call.specs) == 2 else pointwise(call)


@rule("mul", "mul_", "div", "div_")
def products(call: Call) -> list[Strategy]:
    """Linear in one factor, if the others are numbers or the same on all ranks."""
    found = pointwise(call)
    if call.kwargs.get("rounding_mode") is None:
        found.append(Strategy((P, *(R for _ in call.specs[1:])), (P,)))
    if call.op._opname.startswith("mul") and len(call.specs) == 2:
        found.append(Strategy((R, P), (P,)))
    return found


@rule(*_FACTORIES.split(), "fill", "fill_", "zero_", "zero")
def factories(call: Call) -> list[Strategy]:
    """New values of the same form, which lie as the tensor does; its own values do not matter."""
    found = pointwise(call)
    if call.op._opname in ("zero_", "zero"):
        return linear(call)
    return found if call.op.writes_self or len(call.specs) > 1 else [*found, Strategy((P,), (R,))]


@rule("new_zeros", "new_ones", "new_empty", "new_full", "new_empty_strided")
def new(call: Call) -> list[Strategy]:
    """New values of any form: cut as the tensor is where that has the same form, else whole.

    With strides, of which uneven parts would need some of their own, all parts must be alike.
    """
    even = [size % math.prod(call.specs[0].mesh.shape) == 0 for size in call.outputs[0]]
    if call.outputs[0] == call.specs[0].shape and (call.op._opname != "new_empty_strided" or all(even)):
        return factories(call)
    return [Strategy((placement,), (R,)) for placement in (R, P, *map(Shard, range(len(call.specs[0].shape))))]
