"""Triton's spellings of dtypes and numbers, and the error for what has no Triton form."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rushlight.core.algebra import Expr, to_triton
from rushlight.core.dtype import dtype
from rushlight.inductor.sizes import Size

POINTERS = {
    "bool": "*i1", "uint8": "*u8", "int8": "*i8", "int16": "*i16", "int32": "*i32", "int64": "*i64",
    "float16": "*fp16", "bfloat16": "*bf16", "float32": "*fp32", "float64": "*fp64",
    "complex64": "*fp32", "complex128": "*fp64",  # a complex number is a pair of floats
}  # fmt: skip
HALVES = ("float16", "bfloat16")
LARGEST_FLOAT = 3.4028235677973366e38  # larger numbers round to infinity as float32
LIMIT = 1 << 31  # indices below this are computed as 32-bit integers


class NoTritonForm(NotImplementedError):
    """A loop or template that has no Triton form, because of `reason`. `origins` are the graph's nodes that it comes from;
    `function` names the scalar function that is missing, if one is."""

    def __init__(self, origins: Sequence[str], reason: str, function: str = ""):
        super().__init__(f"{', '.join(origins)}: {reason}")
        self.origins = origins
        self.reason = reason
        self.function = function

    @property
    def origin(self) -> str:
        """The node that must run as an eager kernel: the one named like the function, else the last."""
        named = [origin for origin in self.origins if self.function and origin.strip("_").startswith(self.function)]
        return named[-1] if named else self.origins[-1]


def pointer_type(kind: dtype) -> str:
    """Return the type of a pointer to elements in memory. Complex numbers are pairs of reals."""
    return POINTERS[kind.name]


def compute_type(kind: dtype) -> str:
    """Return the type in which values of `kind` are computed."""
    if kind.name == "bool":
        return "tl.int1"
    return "tl.float32" if kind.name in HALVES else f"tl.{kind.name}"


def memory_type(kind: dtype) -> str:
    """Return the type of a value of `kind` in memory."""
    return "tl.int1" if kind.name == "bool" else f"tl.{kind.name}"


def literal(number: bool | int | float, kind: dtype) -> str:
    """Return a number as Python text that stands for a value of type `kind`; integers out of its range wrap around."""
    if kind.name == "bool":
        return str(bool(number))
    if kind.is_integral:
        least = int(least_value(kind))
        return str((int(number) - least) % (1 << 8 * kind.itemsize) + least)
    number = float(number)
    if math.isnan(number):
        return 'float("nan")'
    if math.isinf(number) or (kind.name != "float64" and abs(number) > LARGEST_FLOAT):
        return f'float("{"-" if number < 0 else ""}inf")'
    return repr(number)


def size_text(size: Size) -> str:
    """Return a size as Triton text; its symbols are parameters."""
    return to_triton(size) if isinstance(size, Expr) else str(size)


def least_value(kind: dtype) -> bool | int | float:
    """Return the number below all others of a type."""
    if kind.name == "bool":
        return False
    if not kind.is_integral:
        return -math.inf
    return 0 if kind.name.startswith("u") else -(1 << (8 * kind.itemsize - 1))


def greatest_value(kind: dtype) -> bool | int | float:
    """Return the number above all others of a type."""
    if kind.name == "bool":
        return True
    if not kind.is_integral:
        return math.inf
    return (1 << (8 * kind.itemsize - (0 if kind.name.startswith("u") else 1))) - 1
