"""Searches return positions and distinct values, which have no gradients."""

from __future__ import annotations

from rushlight.autograd.derivative_table import non_differentiable

non_differentiable("searchsorted.Tensor", "_unique2", "unique_dim", "unique_consecutive")
