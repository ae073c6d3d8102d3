"""Products with 8-bit integers have no gradient."""

from __future__ import annotations

from rushlight.autograd.derivative_table import non_differentiable

non_differentiable("_weight_int8pack_mm", "_int_mm")
