"""Counter-based random primitives for compiled graphs: a seed per call, and pure functions of it.

`_philox_seed` draws 64 bits from the default generator. The others give the same numbers for the same seed and offset, wherever
and however often they are calculated; `offset` names a stream of 32-bit words, and an operator that needs several words per
element takes the streams that follow, too. Definition: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel Random Numbers: As Easy
as 1, 2, 3" (SC 2011), Philox4x32 with 10 rounds.
"""

from __future__ import annotations

from rushlight.ops.registry import aten, define_primitives

define_primitives("""
_philox_seed(*, Device? device=None) -> Tensor
_philox_uniform(Tensor seed, int offset, SymInt[] size, *, ScalarType? dtype=None) -> Tensor
_philox_bits(Tensor seed, int offset, SymInt[] size) -> Tensor
""")
aten("_philox_seed").tags = frozenset({"nondeterministic_seeded"})
