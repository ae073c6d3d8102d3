"""Derivatives of gamma and Dirichlet draws by the parameters, at fixed random numbers (implicit reparameterization)."""

from __future__ import annotations

from rushlight.autograd.derivative_table import derivative
from rushlight.autograd.derivatives.refused import refuse_derivative
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


def _differentiate_dirichlet(grad, self, result):
    slope = aten._dirichlet_grad(result, self, self.sum(-1, True).expand_as(self))
    return slope * (grad - (result * grad).sum(-1, True))


derivative("_standard_gamma", self=lambda grad, self, result: grad * aten._standard_gamma_grad(self, result))
derivative("_sample_dirichlet", self=_differentiate_dirichlet)
derivative(
    "_standard_gamma_grad",
    self=refuse_derivative("_standard_gamma_grad", "self"),
    output=refuse_derivative("_standard_gamma_grad", "output"),
)
derivative(
    "_dirichlet_grad",
    **{name: refuse_derivative("_dirichlet_grad", name) for name in ("x", "alpha", "total")},
)
