"""Checks and Meta rules of gamma and Dirichlet draws and of their derivatives by the parameters."""

from __future__ import annotations

from rushlight.core.strides import broadcast_shapes
from rushlight.core.tensor import Tensor
from rushlight.ops.meta.checks import not_implemented
from rushlight.ops.meta.common import empty
from rushlight.ops.registry import meta


def check_floating(name: str, *tensors: Tensor) -> None:
    """Raise NotImplementedError unless the tensors are real floating point."""
    for tensor in tensors:
        if not tensor.dtype.is_floating_point:
            raise not_implemented(name, tensor.dtype)


@meta("_standard_gamma", "_sample_dirichlet")
def draw(self, generator=None):
    check_floating("gamma", self)
    return empty(self._impl.sizes, self.dtype)


@meta("_standard_gamma_grad")
def gamma_slope(self, output):
    check_floating("_standard_gamma_grad", self, output)
    return empty(broadcast_shapes(self._impl.sizes, output._impl.sizes), self.dtype)


@meta("_dirichlet_grad")
def dirichlet_slope(x, alpha, total):
    check_floating("_dirichlet_grad", x, alpha, total)
    return empty(broadcast_shapes(x._impl.sizes, alpha._impl.sizes, total._impl.sizes), x.dtype)
