"""`func`: transforms of functions: gradients, vector-Jacobian products and Jacobians as functions, and modules as functions.

Transforms nest: `grad(grad(f))` is the second derivative. They run on autograd, so functions must be differentiable by it.
"""

from __future__ import annotations

from rushlight.func.transforms import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp
from rushlight.nn.utils.stateless import functional_call

__all__ = ["functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "vjp"]
