"""`func`: transforms of functions: maps over batches, gradients, products with Jacobians, and modules as functions.

Transforms nest: `grad(grad(f))` is the second derivative, `vmap(grad(f))` gives a gradient per example. Those that
differentiate run on autograd, so functions must be differentiable by it.
"""

from __future__ import annotations

from rushlight.core.lazy_module import lazy_names
from rushlight.func.control_flow import cond, while_loop
from rushlight.func.ensembles import functional_call, replace_all_batch_norm_modules_, stack_module_state
from rushlight.func.linearize import linearize
from rushlight.func.transforms import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp
from rushlight.func.vmap import vmap

__all__ = [
    "cond", "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize",
    "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap", "while_loop",
]  # fmt: skip
# `functionalize` records its function by modules of higher layers, so it is imported lazily.
__getattr__, __dir__ = lazy_names(globals(), {"rushlight.aot.functional_programs": ("functionalize",)})
