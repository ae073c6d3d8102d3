"""Checks and Meta rules of softmax and log_softmax."""

from __future__ import annotations

from rushlight.core.strides import wrap_dim
from rushlight.core.tensor import Tensor
from rushlight.ops.meta.checks import require_floating
from rushlight.ops.meta.common import empty
from rushlight.ops.registry import meta


def check_softmax(self: Tensor, dim: int, half_to_float: bool, name: str = "softmax") -> int:
    """Return the wrapped dimension; IndexError outside the rank, NotImplementedError for integers."""
    if half_to_float:
        raise RuntimeError(f"{name} with half to float conversion is not supported on CPU")
    axis = wrap_dim(dim, self.dim())
    require_floating(name, self)
    return axis


def check_softmax_backward(grad_output: Tensor, output: Tensor, dim: int, name: str) -> int:
    """Return the wrapped dimension; RuntimeError unless gradient and output have one shape."""
    if grad_output._impl.sizes != output._impl.sizes:
        raise RuntimeError(
            f"{name}: expected grad_output and output of the same shape, got {list(grad_output.shape)} and "
            f"{list(output.shape)}"
        )
    require_floating(name, grad_output)
    require_floating(name, output)
    return wrap_dim(dim, output.dim())


@meta("_softmax", "_log_softmax")
def softmax(self, dim, half_to_float):
    check_softmax(self, dim, half_to_float)
    return empty(self._impl.sizes, self.dtype)


@meta("_softmax_backward_data", "_log_softmax_backward_data")
def softmax_backward(grad_output, output, dim, input_dtype):
    check_softmax_backward(grad_output, output, dim, "softmax_backward")
    return empty(output._impl.sizes, input_dtype)
