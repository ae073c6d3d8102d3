"""Primitives that draw random numbers from further distributions."""

from __future__ import annotations

from rushlight.ops.registry import aten, define_primitives

_SCHEMAS = """
cauchy_(Tensor(a!) self, float median=0, float sigma=1, *, Generator? generator=None) -> Tensor(a!)
exponential_(Tensor(a!) self, float lambd=1, *, Generator? generator=None) -> Tensor(a!)
geometric_(Tensor(a!) self, float p, *, Generator? generator=None) -> Tensor(a!)
log_normal_(Tensor(a!) self, float mean=1, float std=2, *, Generator? generator=None) -> Tensor(a!)
random_(Tensor(a!) self, *, Generator? generator=None) -> Tensor(a!)
bernoulli_.Tensor(Tensor(a!) self, Tensor p, *, Generator? generator=None) -> Tensor(a!)
multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor
poisson(Tensor self, Generator? generator=None) -> Tensor
binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor
"""
define_primitives(_SCHEMAS)
for _line in _SCHEMAS.strip().splitlines():
    aten(_line.partition("(")[0]).tags = frozenset({"nondeterministic_seeded"})
