"""Symbolic sizes: integers that a capture leaves open, and what it has to assume about them.

In: sizes of example inputs. Out: `SymInt`s that Python code computes with like ints, and a `ShapeEnv` that lists the guards.
Stage: capture; fake tensors hold SymInts in their sizes and strides.
"""

from __future__ import annotations

from rushlight.core.symbolic.environment import (
    Binding,
    ConstraintViolationError,
    ShapeEnv,
    ShapeGuard,
    UnguardedSizeError,
)  # fmt: skip
from rushlight.core.symbolic.floats import SymFloat, sym_float, sym_sqrt, unknown_float
from rushlight.core.symbolic.integers import SymBool, SymInt, UnknownSizeError
from rushlight.core.symbolic.relations import Relation

__all__ = [
    "Binding", "ConstraintViolationError", "Relation", "ShapeEnv", "ShapeGuard", "SymBool", "SymFloat", "SymInt",
    "UnguardedSizeError", "UnknownSizeError", "sym_float", "sym_sqrt", "unknown_float",
]  # fmt: skip
