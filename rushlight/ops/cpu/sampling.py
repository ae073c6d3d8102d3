"""CPU kernels that draw from further distributions, number by number in the order of torch's CPU kernels.

exponential_ follows torch's kernel without MKL, which it uses on CPUs that are not Intel's.
"""

from __future__ import annotations

import math

import numpy as np

from rushlight.core.dtype import bool_, float64, int64
from rushlight.core.generator import Generator, cpu_generator
from rushlight.core.tensor import Tensor
from rushlight.ops.cpu.common import convert, operand
from rushlight.ops.cpu.quiet import quietly
from rushlight.ops.cpu.random import fill_random, largest_random
from rushlight.ops.cpu.rejection import draw_binomial, draw_poisson
from rushlight.ops.cpu.results import contiguous
from rushlight.ops.meta.checks import check_writable, not_implemented
from rushlight.ops.meta.sampling import (
    check_bernoulli,
    check_cauchy,
    check_exponential,
    check_geometric,
    check_log_normal,
    check_multinomial,
)
from rushlight.ops.registry import cpu


@cpu("cauchy_")
def cauchy_(self, median=0.0, sigma=1.0, *, generator=None):
    check_cauchy(self, median, sigma)
    check_writable(self, "cauchy_")
    source = cpu_generator(generator)
    with source.lock:
        return fill_random(self, lambda count: median + sigma * np.tan(math.pi * (source.uniform64(count) - 0.5)))


def _exponential(source: Generator, count: int, lambd: float) -> np.ndarray:
    return -1.0 / lambd * np.log1p(-source.uniform64(count))


@cpu("exponential_")
def exponential_(self, lambd=1.0, *, generator=None):
    check_exponential(self, lambd)
    check_writable(self, "exponential_")
    source = cpu_generator(generator)
    with source.lock:
        return fill_random(self, lambda count: _exponential(source, count, lambd))


@cpu("geometric_")
def geometric_(self, p, *, generator=None):
    check_geometric(self, p)
    check_writable(self, "geometric_")
    source = cpu_generator(generator)

    def trials(count: int) -> np.ndarray:
        return np.ceil(quietly(np.log, source.uniform64(count)) / math.log1p(-p))

    with source.lock:
        return fill_random(self, trials)


@cpu("log_normal_")
def log_normal_(self, mean=1.0, std=2.0, *, generator=None):
    check_log_normal(self, std)
    check_writable(self, "log_normal_")
    source = cpu_generator(generator)
    with source.lock:
        return fill_random(self, lambda count: quietly(np.exp, source.normal(count) * std + mean))


@cpu("random_")
def random_(self, *, generator=None):
    kind = self.dtype
    if kind.is_complex:
        raise not_implemented("random_", kind)
    check_writable(self, "random_")
    source, wide = cpu_generator(generator), kind in (float64, int64)
    span = np.uint64(largest_random(kind) + 1)

    def integers(count: int) -> np.ndarray:
        raw = source.draw64(count) if wide else source.draw32(count)
        return (raw & np.uint64(1)) if kind is bool_ else raw % span

    with source.lock:
        return fill_random(self, integers)


@cpu("bernoulli_.Tensor")
def bernoulli_(self, p, *, generator=None):
    check_bernoulli(self, p)
    chances = np.broadcast_to(operand(p, p.dtype), self._impl.sizes)
    if chances.size and not (chances.min() >= 0 and chances.max() <= 1):
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true: bernoulli_ got probabilities outside [0, 1]")
    source = cpu_generator(generator)
    draw = source.uniform64 if p.dtype is float64 else source.uniform32
    with source.lock:
        # Numbers are drawn in the memory order of `self`, each for the probability at its position.
        numbers = np.empty(self._impl.sizes, np.float64)
        order = sorted(range(numbers.ndim), key=lambda dim: -self._impl.strides[dim])
        in_order = numbers.transpose(order)
        in_order[...] = draw(numbers.size).reshape(in_order.shape)
    self._impl.array[...] = convert(numbers < chances, self.dtype.numpy)
    return self


@cpu("multinomial")
def multinomial(self, num_samples, replacement=False, *, generator=None):
    sizes = check_multinomial(self, num_samples, replacement)
    source, weights = cpu_generator(generator), operand(self, self.dtype)
    repeated = replacement and num_samples > 1
    if weights.size and not (np.isfinite(weights).all() and (weights >= 0).all()):
        wrong = "probability tensor contains either `inf`, `nan` or element < 0"
        raise RuntimeError(f"invalid multinomial distribution ({wrong})" if repeated else wrong)
    if (quietly(np.sum, weights, -1) <= 0).any():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    with source.lock:
        if repeated:
            chosen = _with_replacement(weights, num_samples, source)
        else:
            chosen = _without_replacement(self, weights, num_samples, source)
    return contiguous(chosen.reshape(sizes), int64)


def _with_replacement(weights: np.ndarray, count: int, source: Generator) -> np.ndarray:
    rows = weights.reshape(-1, weights.shape[-1])
    chosen = np.empty((len(rows), count), np.int64)
    for index, row in enumerate(rows):
        levels = np.cumsum(row, dtype=row.dtype)
        levels = (levels / levels[-1]).astype(np.float64)
        chosen[index] = np.minimum(np.searchsorted(levels, source.uniform64(count)), len(row) - 1)
    return chosen


def _without_replacement(self: Tensor, weights: np.ndarray, count: int, source: Generator) -> np.ndarray:
    """Return the indices of the largest quotients of weights and exponential numbers, which is a draw without replacement."""
    times = convert(_exponential(source, weights.size, 1.0), self.dtype.numpy).reshape(weights.shape)
    scores = quietly(np.divide, weights, times.astype(weights.dtype)).astype(self.dtype.numpy).astype(weights.dtype)
    if count == 1:
        return np.argmax(scores, axis=-1)[..., None]
    return np.argsort(-scores, axis=-1, kind="stable")[..., :count]


@cpu("poisson")
def poisson(self, generator=None):
    if not self.dtype.is_floating_point:
        raise not_implemented("poisson_cpu", self.dtype)
    rates = operand(self, self.dtype)
    if rates.size and not ((rates >= 0) & np.isfinite(rates)).all():
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative and finite")
    return contiguous(draw_poisson(cpu_generator(generator), rates), self.dtype)


@cpu("binomial")
def binomial(count, prob, generator=None):
    if count.dtype is not prob.dtype or not count.dtype.is_floating_point:
        raise RuntimeError(
            f"binomial: expected count and prob to have one floating point dtype, but got {count.dtype} and {prob.dtype}"
        )
    counts, chances = np.broadcast_arrays(operand(count, count.dtype), operand(prob, prob.dtype))
    return contiguous(draw_binomial(cpu_generator(generator), counts, chances), count.dtype)
