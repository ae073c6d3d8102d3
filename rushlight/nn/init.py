"""`torch.nn.init`: initialise tensors in place, without recording gradients.

Numbers are drawn in torch's order, so that the same seed gives the same weights.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.generator import Generator
from rushlight.core.overrides import overridable
from rushlight.core.tensor import Tensor, from_numpy, tensor_from_array
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")

_UNIT_GAIN = ("linear", "sigmoid", *(f"conv{kind}{dims}d" for kind in ("", "_transpose") for dims in (1, 2, 3)))


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor that keeps the variance through a nonlinearity; `param` is leaky_relu's slope."""
    if nonlinearity in _UNIT_GAIN:
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "selu":
        return 3.0 / 4
    if nonlinearity != "leaky_relu":
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    slope = 0.01 if param is None else param
    if isinstance(slope, bool) or not isinstance(slope, int | float):
        raise ValueError(f"negative_slope {param} not a valid number")
    return math.sqrt(2.0 / (1 + slope**2))


@overridable
@no_grad()
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Numbers from the uniform distribution on [a, b)."""
    return tensor.uniform_(a, b, generator=generator)


@overridable
@no_grad()
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Numbers from the normal distribution."""
    return tensor.normal_(mean, std, generator=generator)


@overridable
@no_grad()
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Return one number everywhere."""
    return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """1 everywhere."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """0 everywhere."""
    return constant_(tensor, 0.0)


@no_grad()
def eye_(tensor: Tensor) -> Tensor:
    """Return the identity matrix."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    return tensor.copy_(from_numpy(np.eye(*tensor.shape)))


@no_grad()
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Return the identity as a convolution weight of 3, 4 or 5 dimensions, for each of `groups` groups."""
    if tensor.dim() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    out, channels, *kernel = tensor.shape
    if out % groups:
        raise ValueError("dim 0 must be divisible by groups")
    values = np.zeros(tensor.shape)
    centre = tuple(size // 2 for size in kernel)
    for group in range(groups):
        for channel in range(min(out // groups, channels)):
            values[(group * (out // groups) + channel, channel, *centre)] = 1
    return tensor.copy_(from_numpy(values))


def _fans(tensor: Tensor) -> tuple[int, int]:
    """Return the number of inputs per output (fan in), and of outputs per input (fan out)."""
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


_calculate_fan_in_and_fan_out = _fans


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    """Return the fan that a mode names, "fan_in" or "fan_out"; ValueError for others."""
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _fans(tensor)[mode == "fan_out"]


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform with variance 2 gain^2 / (fan in + fan out) (Glorot and Bengio 2010)."""
    std = gain * math.sqrt(2.0 / float(sum(_fans(tensor))))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal with variance 2 gain^2 / (fan in + fan out) (Glorot and Bengio 2010)."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(sum(_fans(tensor)))), generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


@overridable
def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Uniform with variance gain^2 / fan (He et al. 2015); `a` is the slope of a leaky_relu that follows."""
    if 0 in tensor.shape:
        return _nothing_to_fill(tensor)
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Normal with variance gain^2 / fan (He et al. 2015); `a` is the slope of a leaky_relu that follows."""
    if 0 in tensor.shape:
        return _nothing_to_fill(tensor)
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def _nothing_to_fill(tensor: Tensor) -> Tensor:
    warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
    return tensor


@no_grad()
def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Numbers from the normal distribution truncated to [a, b]."""
    if tensor.is_meta:
        return tensor
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. "
            "The distribution of values may be incorrect.",
            stacklevel=2,
        )
    propose = _normal_proposals if _normal_share(mean, std, a, b) > 0.3 else _uniform_proposals
    values, accepted = propose(tensor, mean, std, a, b, generator)
    while not accepted.all():
        # Draw whole tensors to fill the rejected places, as torch does.
        more, accepted_now = propose(tensor, mean, std, a, b, generator)
        values = np.where(accepted, values, more)
        accepted = accepted | accepted_now
    return tensor.copy_(tensor_from_array(values))


def _normal_share(mean: float, std: float, a: float, b: float) -> float:
    """Return the probability mass of the normal distribution in [a, b]."""
    low, high = ((1.0 + math.erf((bound - mean) / std / math.sqrt(2.0))) / 2.0 for bound in (a, b))
    return high - low


def _normal_proposals(tensor: Tensor, mean, std, a, b, generator) -> tuple[np.ndarray, np.ndarray]:
    values = tensor.new_empty(tensor.shape).normal_(mean, std, generator=generator).cpu().numpy()
    return values, (values >= values.dtype.type(a)) & (values <= values.dtype.type(b))


def _uniform_proposals(tensor: Tensor, mean, std, a, b, generator) -> tuple[np.ndarray, np.ndarray]:
    """Rejection sampling from uniform numbers: accept with the density there relative to its maximum in [a, b]."""
    values = tensor.new_empty(tensor.shape).uniform_(a, b, generator=generator).cpu().numpy()
    heights = tensor.new_empty(tensor.shape).uniform_(generator=generator).cpu().numpy()
    peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
    with np.errstate(divide="ignore"):
        return values, np.log(heights) <= -0.5 * ((values - mean) / std) ** 2 - peak


@no_grad()
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Rows or columns, whichever are fewer, orthonormal times `gain` (Saxe et al. 2013); trailing dimensions as one."""
    if tensor.dim() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0 or tensor.is_meta:
        return tensor
    rows = tensor.shape[0]
    drawn = tensor.new_empty([rows, tensor.numel() // rows]).normal_(0, 1, generator=generator).cpu().double().numpy()
    q, r = np.linalg.qr(drawn if drawn.shape[0] >= drawn.shape[1] else drawn.T)
    q = q * np.sign(np.diag(r))  # makes the decomposition unique, and the result uniformly distributed
    if drawn.shape[0] < drawn.shape[1]:
        q = q.T
    return tensor.copy_(from_numpy(np.ascontiguousarray(q * gain).reshape(tensor.shape)))


@no_grad()
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Normal numbers, with a share of `sparsity` in each column set to 0 (Martens 2010)."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    tensor.normal_(0, std, generator=generator)
    kept = np.ones((rows, columns))
    for column in range(columns):
        kept[aten.randperm.default(rows).cpu().numpy()[:zeros], column] = 0
    return tensor.mul_(from_numpy(kept).to(tensor))


def _make_deprecated_alias(current: Callable) -> Callable:
    name = current.__name__

    @functools.wraps(current)
    def former(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(
            f"`nn.init.{name[:-1]}` is now deprecated in favor of `nn.init.{name}`.", FutureWarning, stacklevel=2
        )
        return current(*args, **kwargs)

    former.__name__ = former.__qualname__ = name[:-1]
    former.__doc__ = f"The deprecated name of {name}."
    return former


uniform = _make_deprecated_alias(uniform_)
normal = _make_deprecated_alias(normal_)
constant = _make_deprecated_alias(constant_)
eye = _make_deprecated_alias(eye_)
dirac = _make_deprecated_alias(dirac_)
xavier_uniform = _make_deprecated_alias(xavier_uniform_)
xavier_normal = _make_deprecated_alias(xavier_normal_)
kaiming_uniform = _make_deprecated_alias(kaiming_uniform_)
kaiming_normal = _make_deprecated_alias(kaiming_normal_)
orthogonal = _make_deprecated_alias(orthogonal_)
sparse = _make_deprecated_alias(sparse_)


_no_grad_uniform_, _no_grad_normal_, _no_grad_trunc_normal_ = uniform_, normal_, trunc_normal_
_no_grad_fill_, _no_grad_zero_ = constant_, zeros_
