"""Searches return positions, which have no gradients, and distinct values, whose derivative is not implemented."""

from __future__ import annotations

from rushlight.autograd.derivative_table import derivative, non_differentiable
from rushlight.autograd.derivatives.refused import refuse_derivative

non_differentiable("searchsorted.Tensor")
for name in ("_unique2", "unique_dim", "unique_consecutive"):
    derivative(name, self=refuse_derivative(name, "self"), non_differentiable_outputs=(1, 2))
