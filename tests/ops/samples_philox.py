"""Sample calls of the random primitives of compiled graphs."""

from __future__ import annotations

import rushlight as rl
from tests.ops.samples import group


@group
def _philox():
    seed = rl.tensor(1234567, dtype=rl.int64)
    yield "_philox_seed",
    yield "_philox_uniform", seed, 2, [3, 5]
    yield "_philox_uniform", seed, 0, [7], {"dtype": rl.float64}
    yield "_philox_bits", seed, 1, [2, 2]
