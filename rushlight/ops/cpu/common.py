"""What the NumPy kernels share: arrays out of tensors, tensors out of arrays, computing 16-bit floats in float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from rushlight.core.dtype import dtype
from rushlight.core.strides import broadcast_shapes, elementwise_strides
from rushlight.core.tensor import Tensor, wrap
from rushlight.core.tensor_impl import TensorImpl, empty_impl, impl_from_array


def empty(sizes: Sequence[int], element_type: dtype, strides: Sequence[int] | None = None) -> Tensor:
    """An uninitialised tensor from the caching allocator."""
    return wrap(empty_impl(tuple(sizes), element_type, None if strides is None else tuple(strides)))


def make(array: np.ndarray | np.generic, element_type: dtype) -> Tensor:
    """A tensor of `element_type` that holds `array`, converted when its dtype differs, sharing memory otherwise."""
    array = np.asarray(array)
    if array.dtype != element_type.numpy:
        array = convert(array, element_type.numpy)
    elif any(stride < 0 for stride in array.strides):
        array = array.copy()
    return wrap(impl_from_array(array, element_type))


def convert(array: np.ndarray, target: np.dtype) -> np.ndarray:
    """`array` in another dtype as C converts: NaN and out-of-range floats give unspecified integers, without warnings."""
    with np.errstate(all="ignore"):
        if array.dtype.kind == "c" and target.kind != "c" and target.kind != "b":
            array = array.real
        return array.astype(target)


def operand(value: Tensor | complex | float | int | bool, element_type: dtype) -> np.ndarray | np.generic:
    """A tensor's elements or a Python number in the dtype that `element_type` is computed in."""
    if isinstance(value, Tensor):
        array = value._impl.array
        return array if array.dtype == element_type.compute else convert(array, element_type.compute)
    if isinstance(value, np.generic | bool | int | float | complex):
        return number(value, element_type.compute)
    raise TypeError(f"expected a Tensor or a number, got {type(value).__name__}")


def number(value: complex | float | int | bool, target: np.dtype) -> np.generic:
    """A Python number as a NumPy scalar, wrapping around where it is out of an integer's range."""
    if target.kind in "iu" and isinstance(value, int) and not isinstance(value, bool):
        bits = 8 * target.itemsize
        value &= (1 << bits) - 1
        if target.kind == "i" and value >> (bits - 1):
            value -= 1 << bits
    with np.errstate(all="ignore"):
        return target.type(value)


def layout_of(operands: Sequence[object]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sizes and strides of an elementwise result over the tensors among `operands`."""
    impls: list[TensorImpl] = [value._impl for value in operands if isinstance(value, Tensor)]
    first = impls[0]
    if len(impls) == 1 or (len(impls) == 2 and first.sizes == impls[1].sizes and first.strides == impls[1].strides):
        sizes = first.sizes
    else:
        sizes = broadcast_shapes(*[impl.sizes for impl in impls])
    return sizes, elementwise_strides(sizes, [(impl.sizes, impl.strides) for impl in impls])


def apply(ufunc: Callable, compute: dtype, result: dtype, *operands: object) -> Tensor:
    """An elementwise NumPy ufunc over tensors and numbers, computed in `compute` and returned in `result`."""
    sizes, strides = layout_of(operands)
    out = empty(sizes, result, strides)
    arrays = [operand(value, compute) for value in operands]
    target = out._impl.array
    with np.errstate(all="ignore"):
        if target.dtype == compute.compute or target.dtype.kind == "b":
            ufunc(*arrays, out=target)
        else:
            target[...] = ufunc(*arrays)
    return out
