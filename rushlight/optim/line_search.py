"""A line search that satisfies the strong Wolfe conditions, with cubic interpolation.

Nocedal and Wright, "Numerical Optimization" (2006), algorithms 3.5 and 3.6; the safeguards are those of M. Schmidt's minFunc
(2005), as in torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from rushlight.core.tensor import Tensor

_SUFFICIENT_DECREASE = 1e-4
_CURVATURE = 0.9
_MIN_BRACKET = 1e-9
_MAX_ITERATIONS = 25


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """A point on the line: its distance, the function's value and gradient there, and the slope along the line."""

    length: float
    value: float
    gradient: Tensor
    slope: float


def strong_wolfe(evaluate: Callable[[float], Point], start: Point, length: float, scale: float) -> tuple[Point, int]:
    """Return a point that satisfies the strong Wolfe conditions, or the best one found, and the number of evaluations.

    `start` is the line's first point, `length` the first distance to try, `scale` the largest element of the direction.
    """
    bracket, iterations, done = _bracket(evaluate, start, length)
    evaluations = iterations + 1
    if len(bracket) == 1:
        return bracket[0], evaluations
    low, high = sorted(bracket, key=lambda point: point.value)  # stable: of two equal points, the first is the low one
    stuck = False
    while not done and iterations < _MAX_ITERATIONS and abs(high.length - low.length) * scale >= _MIN_BRACKET:
        length, stuck = _next_length(bracket, stuck)
        point = evaluate(length)
        evaluations += 1
        iterations += 1
        low_index = bracket.index(low)
        if not _decreases(start, point) or point.value >= low.value:
            bracket[1 - low_index] = point
            low, high = sorted(bracket, key=lambda point: point.value)
            continue
        done = abs(point.slope) <= -_CURVATURE * start.slope
        if not done and point.slope * (high.length - low.length) >= 0:
            high = bracket[1 - low_index] = low
        low = bracket[low_index] = point
    return low, evaluations


def _bracket(evaluate: Callable, start: Point, length: float) -> tuple[list[Point], int, bool]:
    """Return two points that bracket one that satisfies the conditions, or that one; the number of growing steps; whether the
    search is done."""
    previous, point = start, evaluate(length)
    for iteration in range(_MAX_ITERATIONS):
        if not _decreases(start, point) or (iteration > 1 and point.value >= previous.value):
            return [previous, point], iteration, False
        if abs(point.slope) <= -_CURVATURE * start.slope:
            return [point], iteration, True
        if point.slope >= 0:
            return [previous, point], iteration, False
        bounds = (point.length + 0.01 * (point.length - previous.length), point.length * 10)
        previous, point = point, evaluate(interpolate(previous, point, bounds))
    return [start, point], _MAX_ITERATIONS, False


def _decreases(start: Point, point: Point) -> bool:
    # Written so that a NaN value does not count as insufficient decrease, as in torch.
    return not point.value > start.value + _SUFFICIENT_DECREASE * point.length * start.slope


def _next_length(bracket: list[Point], stuck: bool) -> tuple[float, bool]:
    """Return the next distance to try, kept away from the bracket's ends if the last try was close to one already."""
    lengths = [point.length for point in bracket]
    least, most = min(lengths), max(lengths)
    length, margin = interpolate(*bracket), 0.1 * (most - least)
    if min(most - length, length - least) >= margin:
        return length, False
    if stuck or length >= most or length <= least:
        return (most - margin if abs(length - most) < abs(length - least) else least + margin), False
    return length, True


def interpolate(first: Point, second: Point, bounds: tuple[float, float] | None = None) -> float:
    """Return the minimum, within bounds, of the cubic through two points with their slopes; the midpoint if there is none."""
    if first.length > second.length:
        first, second = second, first
    low, high = bounds or (first.length, second.length)
    mixed = first.slope + second.slope - 3 * (first.value - second.value) / (first.length - second.length)
    square = mixed * mixed - first.slope * second.slope
    if not square >= 0:
        return (low + high) / 2
    root = math.sqrt(square)
    share = (second.slope + root - mixed) / (second.slope - first.slope + 2 * root)
    return min(max(second.length - (second.length - first.length) * share, low), high)
