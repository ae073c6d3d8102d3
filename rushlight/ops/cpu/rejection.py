"""Poisson and binomial numbers by rejection, drawn one after the other as torch's CPU kernels draw them.

Definitions: W. Hormann, "The transformed rejection method for generating Poisson random variables" (1993, algorithm PTRS),
and "The generation of binomial random variates" (1993, algorithm BTRS).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from rushlight.core.generator import Generator

_AHEAD = 512


class _Uniform:
    """Uniform float64 numbers one by one. They are drawn in blocks, and unused ones are returned to the generator."""

    def __init__(self, source: Generator):
        self._source = source

    def __enter__(self) -> Iterator[float]:
        self._source.lock.acquire()
        self._before, self._used = self._source.get_state(), 0
        return self

    def __iter__(self) -> Iterator[float]:
        return self

    def __next__(self) -> float:
        position = self._used % _AHEAD
        if not position:
            self._block = self._source.uniform64(_AHEAD).tolist()
        self._used += 1
        return self._block[position]

    def __exit__(self, *exception: object) -> None:
        self._source.set_state(self._before)
        self._source.draw64(self._used)
        self._source.lock.release()


def draw_poisson(source: Generator, rates: np.ndarray) -> np.ndarray:
    """Return one Poisson number per rate."""
    with _Uniform(source) as uniform:
        drawn = [_poisson(rate, uniform) for rate in rates.reshape(-1).tolist()]
    return np.array(drawn, np.float64).reshape(rates.shape)


def draw_binomial(source: Generator, counts: np.ndarray, chances: np.ndarray) -> np.ndarray:
    """Draw one number of successes per count and probability."""
    pairs = zip(counts.reshape(-1).tolist(), chances.reshape(-1).tolist(), strict=True)
    with _Uniform(source) as uniform:
        drawn = [_binomial(count, chance, uniform) for count, chance in pairs]
    return np.array(drawn, np.float64).reshape(counts.shape)


def _poisson(rate: float, uniform: Iterator[float]) -> int:
    if rate == 0:
        return 0
    if rate >= 10:
        return _poisson_by_rejection(rate, uniform)
    limit, product, events = math.exp(-rate), 1.0, 0
    while True:
        product *= next(uniform)
        if product <= limit:
            return events
        events += 1


def _poisson_by_rejection(rate: float, uniform: Iterator[float]) -> int:
    root, log_rate = math.sqrt(rate), math.log(rate)
    b = 0.931 + 2.53 * root
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    accepted_below = 0.9277 - 3.6224 / (b - 2)
    while True:
        u, v = next(uniform) - 0.5, next(uniform)
        us = 0.5 - abs(u)
        if not us:
            continue
        k = math.floor((2 * a / us + b) * u + rate + 0.43)
        if us >= 0.07 and v <= accepted_below:
            return k
        if k < 0 or (us < 0.013 and v > us):
            continue
        left = (math.log(v) if v else -math.inf) + math.log(inverse_alpha) - math.log(a / (us * us) + b)
        if left <= -rate + k * log_rate - math.lgamma(k + 1):
            return k


def _binomial(count: float, chance: float, uniform: Iterator[float]) -> float:
    if count <= 0 or chance <= 0:
        return 0
    if chance >= 1:
        return count
    if chance > 0.5:
        return count - _binomial(count, 1 - chance, uniform)
    if not chance <= 0.5:
        return math.nan
    draw: Callable = _binomial_by_rejection if count * chance >= 10 else _binomial_by_gaps
    return draw(count, chance, uniform)


def _binomial_by_gaps(count: float, chance: float, uniform: Iterator[float]) -> int:
    """Sum the geometric gaps between successes."""
    position, successes, log_failure = 0.0, 0, math.log1p(-chance)
    while True:
        u = next(uniform)
        position += math.ceil((math.log(u) if u else -math.inf) / log_failure) if u else math.inf
        if position > count:
            return successes
        successes += 1


def _stirling_tail(k: float) -> float:
    """Return log(k!) minus Stirling's approximation."""
    exact = (
        0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
        0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287,
    )  # fmt: skip
    if k <= 9:
        return exact[int(k)]
    square = (k + 1) * (k + 1)
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1)


def _binomial_by_rejection(count: float, chance: float, uniform: Iterator[float]) -> int:
    deviation = math.sqrt(count * chance * (1 - chance))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * chance
    c = count * chance + 0.5
    accepted_below = 0.92 - 4.2 / b
    odds = chance / (1 - chance)
    alpha = (2.83 + 5.1 / b) * deviation
    m = math.floor((count + 1) * chance)
    while True:
        u, v = next(uniform) - 0.5, next(uniform)
        us = 0.5 - abs(u)
        if not us:
            continue
        k = math.floor((2 * a / us + b) * u + c)
        if us >= 0.07 and v <= accepted_below:
            return k
        if k < 0 or k > count:
            continue
        left = math.log(v * alpha / (a / (us * us) + b)) if v else -math.inf
        right = (
            (m + 0.5) * math.log((m + 1) / (odds * (count - m + 1)))
            + (count + 1) * math.log((count - m + 1) / (count - k + 1))
            + (k + 0.5) * math.log(odds * (count - k + 1) / (k + 1))
            + _stirling_tail(m)
            + _stirling_tail(count - m)
            - _stirling_tail(k)
            - _stirling_tail(count - k)
        )
        if left <= right:
            return k
