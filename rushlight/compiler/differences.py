"""Compares results up to the rounding that reordered floating-point operations cause, and describes differences."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rushlight.core.dispatch_key import AUTOGRAD_BITS
from rushlight.core.dtype import complex128, float64
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import ExcludeKeys

# Tolerances by dtype: relative to the element, and relative to the largest element.
TOLERANCES = {
    "float64": (1e-7, 1e-9), "complex128": (1e-7, 1e-9), "float32": (1e-3, 1e-4), "complex64": (1e-3, 1e-4),
    "float16": (2e-2, 1e-2), "bfloat16": (1e-1, 3e-2),
}  # fmt: skip
# Where values cancel, native code may be this many times farther from exact results than the interpreter.
MAX_ERROR_RATIO = 10.0
# Fraction of integers or booleans that may differ, because they may come from comparisons of rounded numbers.
MAX_FLIPPED = 1e-3


@dataclass(frozen=True)
class Difference:
    """A description: the number of differing elements, and the one that differs most."""

    text: str

    def __str__(self) -> str:
        return self.text


def compare(got: object, expected: object) -> Difference | None:
    """Return the difference between a result and the expected one; None if they agree."""
    if not isinstance(expected, Tensor):
        return None if got == expected else Difference(f"the result is {got!r} instead of {expected!r}")
    if not isinstance(got, Tensor) or got.dtype is not expected.dtype or got.shape != expected.shape:
        return Difference(f"the result is {_describe_kind(got)} instead of {_describe_kind(expected)}")
    with ExcludeKeys(AUTOGRAD_BITS):
        return _compare_elements(got.detach(), expected.detach())


def is_rounding(got: object, expected: object, exact: object) -> bool:
    """Return whether a result is about as far from the exact one as the expected result is: then both differ by rounding
    only.
    """
    if not all(isinstance(value, Tensor) and value.dtype.is_floating_point for value in (got, expected, exact)):
        return False
    if not got.shape == expected.shape == exact.shape or not got.numel():
        return False
    with ExcludeKeys(AUTOGRAD_BITS):
        errors = [float((value.detach().to(float64) - exact).abs().max()) for value in (got, expected)]
    return errors[0] <= MAX_ERROR_RATIO * errors[1] < math.inf


def _describe_kind(value: object) -> str:
    return f"{value.dtype} of size {list(value.shape)}" if isinstance(value, Tensor) else type(value).__name__


def _compare_elements(got: Tensor, expected: Tensor) -> Difference | None:
    """Compare two tensors of the same kind element by element."""
    if not expected.numel():
        return None
    if expected.dtype.name not in TOLERANCES:
        wrong = got != expected
        number = int(wrong.sum())
        permitted = MAX_FLIPPED * expected.numel()
        return None if number <= permitted else _describe_difference(got, expected, wrong, wrong)
    wide = complex128 if expected.dtype.is_complex else float64
    left, right = got.to(wide), expected.to(wide)
    own, largest = TOLERANCES[expected.dtype.name]
    size = right.abs()
    finite = size[size < math.inf]
    limit = own * size + largest * (float(finite.max()) if finite.numel() else 0.0)
    same = (left == right) | (left != left) & (right != right)
    distance = (left - right).abs()
    wrong = ~(same | (distance <= limit))
    if not bool(wrong.any()):
        return None
    return _describe_difference(got, expected, wrong, distance.nan_to_num(math.inf, math.inf) * wrong.to(float64))


def _describe_difference(got: Tensor, expected: Tensor, wrong: Tensor, distance: Tensor) -> Difference:
    """Describe a difference; `distance` is largest where the results differ most."""
    place = _index_of_position(int(distance.to(float64).nan_to_num(math.inf).argmax()), expected.shape)
    return Difference(
        f"{int(wrong.sum())} of {expected.numel()} elements are wrong, most of all [{', '.join(map(str, place))}], which is "
        f"{got[place].item()!r} instead of {expected[place].item()!r}"
    )


def _index_of_position(position: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Convert a row-major position to one index per dimension."""
    found = []
    for size in reversed(sizes):
        position, rest = divmod(position, size)
        found.append(rest)
    return tuple(reversed(found))
