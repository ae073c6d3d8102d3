"""Counter-based random numbers have no derivatives: they depend on a seed alone."""

from __future__ import annotations

from rushlight.autograd.derivative_table import non_differentiable

non_differentiable("_philox_seed", "_philox_uniform", "_philox_bits")
