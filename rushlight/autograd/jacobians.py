"""Jacobians for gradcheck, in real coordinates: a complex number counts as its two parts.

The gradient of a real function L of z = x + iy is dL/dx + i dL/dy. So an output has rows for its real part, computed with
gradient 1, and for its imaginary part, computed with gradient i. Each Jacobian is (coordinates of an input) x (coordinates of
an output), in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from rushlight.autograd import forward_ad
from rushlight.autograd.backward import grad
from rushlight.core.tensor import Tensor, tensor_from_array
from rushlight.ops.lazy_views import CONJUGATE, NEGATIVE, lazy_bits, toggle_lazy_bits

Function = Callable[[], list[Tensor]]


def coordinates(values: np.ndarray) -> np.ndarray:
    """Return the elements of an array as real numbers: complex ones as all real parts, then all imaginary parts."""
    flat = np.asarray(values).ravel()
    if flat.dtype.kind == "c":
        return np.concatenate([flat.real, flat.imag]).astype(np.float64)
    return flat.astype(np.float64)


def directions(tensor: Tensor) -> Iterator[np.ndarray]:
    """Yield one array like the tensor for each of its coordinates: 1 or i there, and 0 elsewhere."""
    for unit in (1, 1j) if tensor.is_complex() else (1,):
        for position in range(tensor.numel()):
            direction = np.zeros(tensor.shape, tensor.dtype.numpy)
            direction.ravel()[position] = unit
            yield direction


def _memory_of(tensor: Tensor, change: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the memory of a tensor, and the change of that memory that changes the tensor's value by `change`."""
    bits = lazy_bits(tensor)
    signed = -change if bits & NEGATIVE else change
    return toggle_lazy_bits(tensor.detach(), bits)._impl.array, signed.conjugate() if bits & CONJUGATE else signed


def difference_along(function: Function, tensor: Tensor, direction: np.ndarray, eps: float) -> list[np.ndarray]:
    """Return the central difference of each output along a direction of an input. The input is restored afterwards."""
    array, change = _memory_of(tensor, eps * direction)
    original = array.copy()
    try:
        array[...] = original + change
        high = [coordinates(value.numpy(force=True)) for value in function()]
        array[...] = original - change
        low = [coordinates(value.numpy(force=True)) for value in function()]
    finally:
        array[...] = original
    return [(after - before) / (2 * eps) for after, before in zip(high, low, strict=True)]


def numerical(function: Function, tensor: Tensor, eps: float) -> list[np.ndarray]:
    """Return the Jacobian of each output by central differences."""
    columns = [difference_along(function, tensor, direction, eps) for direction in directions(tensor)]
    return [np.array(rows) for rows in zip(*columns, strict=True)]


def of_gradients(output: Tensor, tensor: Tensor, starts: Sequence[np.ndarray] | None = None) -> np.ndarray:
    """Return the Jacobian of an output by the backward; with `starts`, only the products with these gradients of the output."""
    starts = list(directions(output)) if starts is None else starts
    count = tensor.numel() * (2 if tensor.is_complex() else 1)
    if not output.requires_grad:
        return np.zeros((count, len(starts)))
    rows = [coordinates(found) for found in (gradient(output, tensor, start) for start in starts)]
    return np.array(rows).reshape(len(starts), count).T


def gradient(output: Tensor, tensor: Tensor, start: np.ndarray) -> np.ndarray:
    """Return the gradient of an input for a gradient of an output; zeros where the backward returns none."""
    (found,) = grad(output, tensor, tensor_from_array(start), retain_graph=True, allow_unused=True)
    return np.zeros(tensor.shape, tensor.dtype.numpy) if found is None else found.numpy(force=True)


def forward(function: Callable[[Tensor], list[Tensor]], tensor: Tensor) -> list[np.ndarray]:
    """Return the Jacobian of each output by forward mode; `function` is called with a dual tensor in place of the tensor."""
    columns = []
    for direction in directions(tensor):
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(tensor.detach(), tensor_from_array(direction))
            parts = [forward_ad.unpack_dual(value) for value in function(dual)]
        columns.append([
            np.zeros_like(coordinates(primal.numpy(force=True))) if tangent is None else coordinates(tangent.numpy(force=True))
            for primal, tangent in parts
        ])  # fmt: skip
    return [np.array(rows) for rows in zip(*columns, strict=True)]
