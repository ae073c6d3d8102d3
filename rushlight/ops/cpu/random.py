"""CPU kernels that fill tensors with random numbers, drawn in the order and manner of torch's CPU kernels.

bernoulli_ follows torch's kernel without MKL, which it uses on CPUs that are not Intel's.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np

from rushlight.core.dtype import ALL, bool_, dtype, finfo, float32, float64, int64
from rushlight.core.generator import Generator, cpu_generator
from rushlight.core.tensor import Tensor
from rushlight.ops.cpu.common import convert, make
from rushlight.ops.meta.checks import check_writable, not_implemented
from rushlight.ops.meta.sampling import check_normal, check_uniform, two_bounds
from rushlight.ops.registry import cpu
from rushlight.ops.views_complex import view_as_real

_CHUNK = 1 << 20
_BLOCK = 16
_MANTISSA = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}


def fill_random(self: Tensor, draw: Callable[[int], np.ndarray]) -> Tensor:
    """Write `draw(count)` into the elements in memory order, a chunk at a time."""
    array = self._impl.array
    order = sorted(range(array.ndim), key=lambda dim: -self._impl.strides[dim])
    in_memory_order = array.transpose(order)
    dense = in_memory_order.flags.c_contiguous
    flat = in_memory_order.reshape(-1) if dense else np.empty(array.size, array.dtype)
    for start in range(0, flat.size, _CHUNK):
        part = flat[start : start + _CHUNK]
        part[...] = convert(draw(part.size), part.dtype)
    if not dense:
        in_memory_order[...] = flat.reshape(in_memory_order.shape)
    return self


@cpu("uniform_")
def uniform_(self, *bounds, generator=None, **named):
    # `from` is a Python keyword, so it cannot be a parameter name.
    low, high = two_bounds(bounds, named, ("from", "to"), (0.0, 1.0), "uniform_")
    if self.dtype.is_complex:
        uniform_(view_as_real(self), low, high, generator=generator)
        return self
    check_uniform(self, low, high)
    check_writable(self, "uniform_")
    source = cpu_generator(generator)
    with source.lock:
        if source.twister.uniform(self, low, high):
            return self
    draw = source.uniform64 if self.dtype is float64 else source.uniform32
    # torch uses a fused multiply-add: float64 holds the product of two float32 exactly.
    if self.dtype is not float64:
        low, high = float(np.float32(low)), float(np.float32(high))

    def between(count: int) -> np.ndarray:
        numbers = convert(draw(count) * np.float64(high - low) + low, self.dtype.numpy)
        # Rounding may produce the excluded upper bound.
        return np.where(numbers == high, self.dtype.numpy.type(low), numbers)

    with source.lock:
        return fill_random(self, between)


@cpu("normal_")
def normal_(self, mean=0.0, std=1.0, *, generator=None):
    check_normal(self, mean, std)
    if self.dtype.is_complex:
        # `std` is the deviation of the complex number: each part has half the variance.
        normal_(view_as_real(self), mean, std / math.sqrt(2), generator=generator)
        return self
    check_writable(self, "normal_")
    source, impl = cpu_generator(generator), self._impl
    with source.lock:
        if source.twister.normal(self, mean, std):
            return self
        if impl.numel < _BLOCK or not impl.is_contiguous():
            return fill_random(self, lambda count: source.normal(count) * std + mean)
        numbers = _normal_blocks(source, impl.numel, self.dtype, mean, std)
        impl.array.reshape(-1)[...] = convert(numbers, impl.dtype.numpy)
    return self


def _normal_blocks(source: Generator, count: int, kind: dtype, mean: float, std: float) -> np.ndarray:
    """Generate normal numbers by Box-Muller on blocks of 16; for a remainder, draw the last 16 numbers again."""
    uniform = source.uniform64 if kind is float64 else source.uniform32
    # 16-bit floats draw block by block; others draw all numbers first, and then replace the last block.
    drawn_first = count - count % _BLOCK if kind.itemsize == 2 else count
    numbers = np.empty(count, kind.compute)
    head = uniform(drawn_first)[: count - count % _BLOCK]
    numbers[: len(head)] = _box_muller(head, mean, std)
    if count % _BLOCK:
        numbers[-_BLOCK:] = _box_muller(uniform(_BLOCK), mean, std)
    return numbers


def _box_muller(uniform: np.ndarray, mean: float, std: float) -> np.ndarray:
    kind = uniform.dtype.type
    blocks = uniform.reshape(-1, 2, _BLOCK // 2)
    radius = np.sqrt(kind(-2) * np.log(kind(1) - blocks[:, 0]))
    angle = kind(2 * math.pi) * blocks[:, 1]
    pair = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return (pair * kind(std) + kind(mean)).reshape(-1)


def largest_random(kind: dtype) -> int:
    """Return the largest value of `random_` without an upper bound; for floats, the largest up to which all integers are
    exact."""
    if kind.is_floating_point:
        return 1 << _MANTISSA[kind.name]
    return 1 if kind is bool_ else int(np.iinfo(kind.numpy).max)


def _check_in_range(value: int, kind: dtype, name: str) -> None:
    if kind.is_floating_point:
        low, high, exact = -finfo(kind).max, finfo(kind).max, largest_random(kind)
    else:
        low, high, exact = 0 if kind is bool_ else int(np.iinfo(kind.numpy).min), largest_random(kind), None
    if exact is not None and abs(value) > exact and low <= value <= high:
        warnings.warn(
            f"{name} is out of bounds [-{exact}, {exact}], within which {kind.name} holds all integers: the values drawn are "
            "not distributed evenly", UserWarning, stacklevel=2,
        )  # fmt: skip
    if not low <= value <= high:
        raise RuntimeError(f"{name} is out of bounds for {kind.name}: random_ got {name}={value}")


@cpu("random_.from")
def random_from(self, *bounds, generator=None, **named):
    low, high = two_bounds(bounds, named, ("from", "to"), (0, None), "random_")
    kind = self.dtype
    if kind.is_complex:
        raise not_implemented("random_", kind)
    end = largest_random(kind) + 1 if high is None else high
    if low >= end:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={end}")
    _check_in_range(low, kind, "from")
    _check_in_range(end - 1, kind, "to - 1")
    check_writable(self, "random_")
    if kind.is_floating_point:
        low, end = _representable_bounds(low, end, kind)
    source = cpu_generator(generator)
    with source.lock:
        if source.twister.integers(self, low, end - low):
            return self
        return fill_random(self, lambda count: _integers(source, low, end - low, count))


def _representable_bounds(low: int, end: int, kind: dtype) -> tuple[int, int]:
    """Return `low` and `end` moved inwards so that floats of `kind` don't round integers out of the range."""

    def spacing(value: int) -> int:
        return 1 << max(abs(value).bit_length() - _MANTISSA[kind.name], 0)

    after_low, last = int(kind.numpy.type(low + 1)), int(kind.numpy.type(end - 1))
    if after_low < low:
        low = after_low + spacing(low + 1)
    if last >= end:
        end = last - spacing(end - 1)
    return low, end


def _integers(source: Generator, low: int, span: int, count: int) -> np.ndarray:
    """Return `count` integers starting at `low`, by modulo; uses 64-bit draws for 2**28 or more possible values."""
    raw = source.draw64(count) if span >= 1 << 28 else source.draw32(count)
    if span < 1 << 64:
        raw = raw % np.uint64(span)
    return raw.view(np.int64) + np.int64(low)


@cpu("bernoulli_.float")
def bernoulli_(self, p=0.5, *, generator=None):
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    check_writable(self, "bernoulli_")
    return fill_bernoulli(self, p, cpu_generator(generator))


def fill_bernoulli(self: Tensor, p: float, source: Generator) -> Tensor:
    """Write 1 with probability `p` and 0 otherwise."""
    with source.lock:
        if source.twister.bernoulli(self, p):
            return self
        return fill_random(self, lambda count: source.uniform64(count) < p)


@cpu("randperm")
def randperm(n, *, dtype=None, layout=None, device=None, pin_memory=None, generator=None):
    if n < 0:
        raise RuntimeError(f"n must be non-negative, but got {n}")
    kind = dtype or int64
    if kind not in ALL or kind.is_complex or kind is bool_:
        raise not_implemented("randperm", kind)
    limit = largest_random(kind) if kind not in (float32, float64) else 1 << _MANTISSA[kind.name]
    if n > limit + 1:
        raise RuntimeError(f"n is too large for result tensor type: got {n} for {kind}")
    order = list(range(n))
    draws = cpu_generator(generator).draw32(max(n - 1, 0))
    offsets = (draws % np.arange(n, 1, -1, dtype=np.uint64)).tolist()
    for first, offset in enumerate(offsets):
        second = first + offset
        order[first], order[second] = order[second], order[first]
    return make(np.array(order, np.int64), kind)
