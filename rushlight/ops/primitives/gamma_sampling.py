"""Primitives that draw from the gamma and Dirichlet distributions, and the derivatives of such draws by the parameters."""

from __future__ import annotations

from rushlight.ops.registry import aten, define_primitives

define_primitives("""
_standard_gamma(Tensor self, Generator? generator=None) -> Tensor
_standard_gamma_grad(Tensor self, Tensor output) -> Tensor
_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor
_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor
""")
for _name in ("_standard_gamma", "_sample_dirichlet"):
    aten(_name).tags = frozenset({"nondeterministic_seeded"})
