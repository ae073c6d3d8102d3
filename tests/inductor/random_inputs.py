"""Random tensors for random programs: all dtypes, sizes with ones and zeros, and every kind of layout.

Floating values are mostly small multiples of 1/8, so that additions and products of a few of them are exact in any order,
and comparing, rounding or sorting them gives the same answer however they were calculated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import rushlight as torch

FLOATS = ("float32", "float64", "bfloat16", "float16")
INTEGERS = ("int64", "int32", "int16", "int8", "uint8")
LAYOUTS = ("contiguous", "permuted", "gaps", "expanded", "offset")
# Bits of the significand, and the finest multiple of a power of two that `is_exact` accepts.
_PRECISION = {"float64": (50, 20), "float32": (22, 10), "float16": (11, 4), "bfloat16": (8, 3)}


@dataclass(frozen=True)
class InputSpec:
    """How to make one tensor. `layout` is one of LAYOUTS; `special` mixes in NaN and infinities."""

    seed: int
    shape: tuple[int, ...]
    dtype: str
    layout: str
    special: bool = False

    def make(self) -> torch.Tensor:
        """A new tensor, the same at each call."""
        return _lay_out(self)


def _values(spec: InputSpec, shape: tuple[int, ...]) -> torch.Tensor:
    random = np.random.default_rng(spec.seed)
    if spec.dtype == "bool":
        return torch.from_numpy(random.integers(0, 2, shape).astype(bool))
    if spec.dtype in INTEGERS:
        low = 0 if spec.dtype == "uint8" else -7
        return torch.from_numpy(np.asarray(random.integers(low, 9, shape)).astype(spec.dtype))
    values = np.asarray(random.integers(-24, 25, shape) / 8.0)
    if spec.special and values.size:
        chosen = random.choice([np.nan, np.inf, -np.inf, -0.0], shape)
        values = np.where(random.random(shape) < 0.1, chosen, values)
    return torch.from_numpy(np.asarray(values)).to(getattr(torch, spec.dtype))


def _lay_out(spec: InputSpec) -> torch.Tensor:
    shape, rank = spec.shape, len(spec.shape)
    if spec.layout == "permuted" and rank > 1:
        return _values(spec, shape[::-1]).permute(*range(rank)[::-1])
    if spec.layout == "gaps" and rank:
        return _values(spec, (*shape[:-1], 2 * shape[-1]))[..., ::2]
    if spec.layout == "expanded" and rank:
        return _values(spec, (1, *shape[1:])).expand(shape)
    if spec.layout == "offset" and rank:
        return _values(spec, (shape[0] + 1, *shape[1:]))[1:]
    return _values(spec, shape)


def is_exact(tensor: torch.Tensor) -> bool:
    """Whether all elements are integers, or multiples of a power of two small enough for sums of them to be exact."""
    if not tensor.dtype.is_floating_point:
        return True
    bits, places = _PRECISION[tensor.dtype.name]
    scaled = tensor.detach().to(torch.float64).numpy() * 2.0**places
    finite = np.isfinite(scaled)
    return bool(np.all(~finite | ((scaled == np.trunc(scaled)) & (np.abs(scaled) < 2.0**bits))))


def is_tame(tensor: torch.Tensor, special: bool) -> bool:
    """Whether the values are small enough to continue with; NaN and infinities only if `special` allows them."""
    if not tensor.dtype.is_floating_point:
        return True
    values = tensor.detach().to(torch.float64).numpy()
    finite = np.isfinite(values)
    return bool((special or finite.all()) and np.all(~finite | (np.abs(values) < 200)))
