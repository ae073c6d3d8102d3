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
from rushlight.autograd.grad_mode import no_grad
from rushlight.core.layout import sparse_coo, strided
from rushlight.core.tensor import Tensor, tensor_from_array
from rushlight.core.wrapper_subclasses import sees_operators
from rushlight.ops import aten
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


def array_of(tensor: Tensor) -> np.ndarray:
    """Return the elements of a tensor, which may be sparse. Those of a wrapper subclass are read one by one, by operators."""
    dense = tensor.detach() if tensor.layout is strided else tensor.detach().to_dense()
    if not sees_operators(dense):
        return dense.numpy(force=True)
    elements = [element.item() for element in dense.reshape(-1).unbind()]
    return np.array(elements, dense.dtype.numpy).reshape(dense.shape)


class _Place:
    """The memory of a tensor, which can be moved along a direction and back. Sparse tensors move where they have values."""

    def __init__(self, tensor: Tensor):
        self.positions: np.ndarray | None = None
        place = tensor.detach()
        if tensor.layout is not strided:
            self.positions = _positions_of_values(place)
            place = _values_of(place)
        self.bits = lazy_bits(place)
        self.place = toggle_lazy_bits(place, self.bits)
        with no_grad():
            self.original = array_of(self.place).copy()

    def move(self, change: np.ndarray) -> None:
        """Set the tensor to its original value plus `change`, an array of its shape."""
        if self.positions is not None:
            given = self.positions >= 0
            sparse = np.zeros(self.original.size, change.dtype)
            sparse[self.positions[given]] = change[given]
            change = sparse.reshape(self.original.shape)
        change = -change if self.bits & NEGATIVE else change
        change = change.conjugate() if self.bits & CONJUGATE else change
        moved = np.asarray(self.original + change)
        if not sees_operators(self.place):
            self.place._impl.array[...] = moved  # unlike an operator, this leaves the version as it is
            return
        version = self.place._impl.version.value
        with no_grad():
            self.place.copy_(tensor_from_array(moved))
        self.place._impl.version.value = version


def mask_of(tensor: Tensor) -> np.ndarray:
    """Return where a sparse tensor has values."""
    return _positions_of_values(tensor.detach()) >= 0


def with_all_values(tensor: Tensor) -> Tensor:
    """Return a sparse tensor with a value at each position, as a new leaf. Dense tensors stay as they are."""
    if tensor.layout is strided:
        return tensor
    dense = tensor.detach().to_dense()
    whole = aten.ones_like(dense).to_sparse(layout=tensor.layout)
    values = _values_of(whole)
    order = _positions_of_values(whole).ravel()
    flat = np.zeros(order.size, dense.dtype.numpy)
    flat[order] = dense.numpy(force=True).ravel()
    values._impl.array[...] = flat.reshape(values.shape)
    return whole.requires_grad_()


def _values_of(tensor: Tensor) -> Tensor:
    return tensor._values() if tensor.layout is sparse_coo else tensor.values()


def _positions_of_values(tensor: Tensor) -> np.ndarray:
    """Return an array of a sparse tensor's shape: the index of each element among the values, -1 where it has none."""
    numbered = tensor.clone()
    values = _values_of(numbered)
    with no_grad():
        values.copy_(tensor_from_array(np.arange(1, values.numel() + 1)).reshape(values.shape))
    return numbered.to_dense().numpy(force=True).real.astype(np.int64) - 1


def difference_along(function: Function, tensor: Tensor, direction: np.ndarray, eps: float) -> list[np.ndarray]:
    """Return the central difference of each output along a direction of an input. The input is restored afterwards."""
    place = _Place(tensor)
    try:
        place.move(eps * direction)
        high = function()
        above = [coordinates(array_of(value)) for value in high]
        place.move(-eps * direction)
        low = function()
        below = [coordinates(array_of(value)) for value in low]
    finally:
        place.move(0 * direction)
    _check_same_form(high, low)
    return [(after - before) / (2 * eps) for after, before in zip(above, below, strict=True)]


def _check_same_form(high: list[Tensor], low: list[Tensor]) -> None:
    for one, other in zip(high, low, strict=True):
        for name in ("shape", "dtype"):
            if getattr(one, name) != getattr(other, name):
                raise AssertionError(
                    f"Expected `func` to return outputs with the same {name} when inputs are perturbed by eps, but got "
                    f"{getattr(one, name)} and {getattr(other, name)}"
                )


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
    return np.zeros(tensor.shape, tensor.dtype.numpy) if found is None else array_of(found)


def push(function: Callable[[list], list[Tensor]], inputs: Sequence, tangents: Sequence[Tensor | None]) -> list[tuple]:
    """Return each output of `function` and its tangent. Inputs with a tangent are passed as dual tensors."""
    with forward_ad.dual_level():
        pairs = zip(inputs, tangents, strict=True)
        given = [value if tangent is None else forward_ad.make_dual(value.detach(), tangent) for value, tangent in pairs]
        return [tuple(forward_ad.unpack_dual(value)) for value in function(given)]


def tangent_coordinates(pairs: list[tuple]) -> list[np.ndarray]:
    """Return the coordinates of tangents, zeros where there are none."""
    return [
        np.zeros_like(coordinates(array_of(value))) if tangent is None else coordinates(array_of(tangent))
        for value, tangent in pairs
    ]
