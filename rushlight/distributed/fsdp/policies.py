"""Settings of fully_shard: dtypes of parameters and gradients, and where shards are kept."""

from __future__ import annotations

from dataclasses import dataclass

from rushlight.core.dtype import dtype

__all__ = ["CPUOffloadPolicy", "MixedPrecisionPolicy", "OffloadPolicy"]


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """Dtypes of fully_shard, None for that of the parameters.

    `param_dtype` is that of gathered parameters, in which the module calculates, `reduce_dtype` that in which gradients are
    averaged, `output_dtype` that of the module's floating outputs. `cast_forward_inputs` makes its floating inputs
    `param_dtype`. Shards, and so the optimizer's state, keep their dtype.
    """

    param_dtype: dtype | None = None
    reduce_dtype: dtype | None = None
    output_dtype: dtype | None = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Shards are kept where the parameters are."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Shards are kept in the CPU's memory, which they are anyway. `pin_memory` matters to GPUs only."""

    pin_memory: bool = True
