"""CPU kernels of softmax and log_softmax, with their gradients. 16-bit floats are computed in float32."""

from __future__ import annotations

import numpy as np

from rushlight.core.tensor import Tensor
from rushlight.ops.cpu.common import empty, operand
from rushlight.ops.cpu.results import contiguous
from rushlight.ops.meta.softmax import check_softmax, check_softmax_backward
from rushlight.ops.registry import cpu


def shifted(array: np.ndarray, axis: int, out: np.ndarray | None = None) -> np.ndarray:
    """`array` minus its maximum along `axis`, so that exponentials cannot overflow."""
    return np.subtract(array, array.max(axis=axis, keepdims=True), out=out)


def _result(self: Tensor) -> tuple[Tensor, np.ndarray]:
    """The output and an array to compute it in: its own memory unless it holds 16-bit floats."""
    out = empty(self._impl.sizes, self.dtype)
    array = out._impl.array
    return out, array if array.dtype == self.dtype.compute else np.empty(array.shape, self.dtype.compute)


def _finish(out: Tensor, array: np.ndarray) -> Tensor:
    if out._impl.array is not array:
        out._impl.array[...] = array
    return out


@cpu("_softmax")
def softmax(self, dim, half_to_float):
    axis = check_softmax(self, dim, half_to_float, "softmax")
    out, array = _result(self)
    if array.size and array.ndim:
        with np.errstate(all="ignore"):
            np.exp(shifted(operand(self, self.dtype), axis, out=array), out=array)
            array /= array.sum(axis=axis, keepdims=True)
    elif array.size:
        with np.errstate(all="ignore"):
            array[...] = np.exp(operand(self, self.dtype) - operand(self, self.dtype))  # 1, or NaN for what is not finite
    return _finish(out, array)


@cpu("_log_softmax")
def log_softmax(self, dim, half_to_float):
    axis = check_softmax(self, dim, half_to_float, "log_softmax")
    out, array = _result(self)
    if array.size and array.ndim:
        with np.errstate(all="ignore"):
            shifted(operand(self, self.dtype), axis, out=array)
            array -= np.log(np.exp(array).sum(axis=axis, keepdims=True))
    elif array.size:
        with np.errstate(all="ignore"):
            array[...] = operand(self, self.dtype) - operand(self, self.dtype)
    return _finish(out, array)


@cpu("_softmax_backward_data")
def softmax_backward(grad_output, output, dim, input_dtype):
    axis = check_softmax_backward(grad_output, output, dim, "softmax_backward")
    grad, result = operand(grad_output, output.dtype), operand(output, output.dtype)
    if not result.ndim:
        return contiguous(grad * result - result * (grad * result), input_dtype)
    with np.errstate(all="ignore"):
        weighted = grad * result
        weighted -= result * weighted.sum(axis=axis, keepdims=True)
    return contiguous(weighted, input_dtype)


@cpu("_log_softmax_backward_data")
def log_softmax_backward(grad_output, output, dim, input_dtype):
    axis = check_softmax_backward(grad_output, output, dim, "log_softmax_backward")
    grad, result = operand(grad_output, output.dtype), operand(output, output.dtype)
    if not result.ndim:
        return contiguous(grad - np.exp(result) * grad, input_dtype)
    with np.errstate(all="ignore"):
        total = grad.sum(axis=axis, keepdims=True)
        return contiguous(grad - np.exp(result) * total, input_dtype)
