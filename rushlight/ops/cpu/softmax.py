"""CPU kernels of softmax and log_softmax, with their gradients. 16-bit floats are computed in float32."""

from __future__ import annotations

import numpy as np

from rushlight.core.dtype import dtype
from rushlight.core.tensor import Tensor
from rushlight.ops.cpu import native
from rushlight.ops.cpu.common import empty, operand
from rushlight.ops.cpu.results import contiguous
from rushlight.ops.meta.softmax import check_softmax, check_softmax_backward
from rushlight.ops.registry import cpu

# Kinds of the native kernel.
SOFTMAX, LOG_SOFTMAX, SOFTMAX_BACKWARD, LOG_SOFTMAX_BACKWARD = range(4)


def shifted(array: np.ndarray, axis: int, out: np.ndarray | None = None) -> np.ndarray:
    """Return `array` minus its maximum along `axis`, to keep exponentials from overflowing."""
    return np.subtract(array, array.max(axis=axis, keepdims=True), out=out)


def _result(self: Tensor) -> tuple[Tensor, np.ndarray]:
    """Return the output, and the array to compute in: the output's memory, or float32 for 16-bit floats."""
    out = empty(self._impl.sizes, self.dtype)
    array = out._impl.array
    return out, array if array.dtype == self.dtype.compute else np.empty(array.shape, self.dtype.compute)


def _finish(out: Tensor, array: np.ndarray) -> Tensor:
    if out._impl.array is not array:
        native.assign(out._impl.array, array)
    return out


def _on_kernel(kind: int, axis: int, out: np.ndarray, *inputs: Tensor) -> bool:
    """Run the native kernel into `out`, which has the dtype of computation; False if it is not supported."""
    if native.kernels is None or not out.ndim:
        return False
    arrays = [native.contiguous(operand(tensor, inputs[-1].dtype)) for tensor in inputs]
    return native.kernels.softmax(kind, axis, out, *arrays)


@cpu("_softmax")
def softmax(self, dim, half_to_float):
    axis = check_softmax(self, dim, half_to_float, "softmax")
    out, array = _result(self)
    if _on_kernel(SOFTMAX, axis, array, self):
        return _finish(out, array)
    if array.size and array.ndim:
        with np.errstate(all="ignore"):
            np.exp(shifted(operand(self, self.dtype), axis, out=array), out=array)
            array /= array.sum(axis=axis, keepdims=True)
    elif array.size:
        with np.errstate(all="ignore"):
            # Softmax of a 0-dim tensor: 1, or NaN for non-finite values.
            array[...] = np.exp(operand(self, self.dtype) - operand(self, self.dtype))
    return _finish(out, array)


@cpu("_log_softmax")
def log_softmax(self, dim, half_to_float):
    axis = check_softmax(self, dim, half_to_float, "log_softmax")
    out, array = _result(self)
    if _on_kernel(LOG_SOFTMAX, axis, array, self):
        return _finish(out, array)
    if array.size and array.ndim:
        with np.errstate(all="ignore"):
            shifted(operand(self, self.dtype), axis, out=array)
            array -= np.log(np.exp(array).sum(axis=axis, keepdims=True))
    elif array.size:
        with np.errstate(all="ignore"):
            array[...] = operand(self, self.dtype) - operand(self, self.dtype)
    return _finish(out, array)


def _backward_on_kernel(kind: int, axis: int, grad: Tensor, output: Tensor, input_dtype: dtype) -> Tensor | None:
    out = empty(output._impl.sizes, input_dtype)
    array = out._impl.array if input_dtype.numpy == output.dtype.compute else np.empty(out._impl.sizes, output.dtype.compute)
    return _finish(out, array) if _on_kernel(kind, axis, array, grad, output) else None


@cpu("_softmax_backward_data")
def softmax_backward(grad_output, output, dim, input_dtype):
    axis = check_softmax_backward(grad_output, output, dim, "softmax_backward")
    found = _backward_on_kernel(SOFTMAX_BACKWARD, axis, grad_output, output, input_dtype)
    if found is not None:
        return found
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
    found = _backward_on_kernel(LOG_SOFTMAX_BACKWARD, axis, grad_output, output, input_dtype)
    if found is not None:
        return found
    grad, result = operand(grad_output, output.dtype), operand(output, output.dtype)
    if not result.ndim:
        return contiguous(grad - np.exp(result) * grad, input_dtype)
    with np.errstate(all="ignore"):
        total = grad.sum(axis=axis, keepdims=True)
        return contiguous(grad - np.exp(result) * total, input_dtype)
