"""Random draws have no gradient; a tensor that they overwrite gets gradient 0."""

from __future__ import annotations

from rushlight.autograd.derivative_table import derivative, non_differentiable
from rushlight.autograd.derivatives.pointwise import zeros

for _name in ("cauchy_", "exponential_", "geometric_", "log_normal_", "random_"):
    derivative(_name, self=zeros)
derivative("bernoulli_.Tensor", self=zeros, p=lambda grad, p_sizes: grad.new_zeros(p_sizes))
non_differentiable("multinomial", "poisson", "binomial")
