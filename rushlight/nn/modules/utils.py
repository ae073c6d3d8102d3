"""Sizes as tuples, under the private names that code for torch imports."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple]:
    """Return a function that repeats a number `n` times, and converts iterables to tuples."""

    def parse(value: Any) -> tuple:
        return tuple(value) if isinstance(value, Iterable) else (value,) * n

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(values: tuple, n: int) -> tuple:
    """Return each value `n` times, last one first: the order of F.pad."""
    return tuple(value for value in reversed(values) for _ in range(n))
