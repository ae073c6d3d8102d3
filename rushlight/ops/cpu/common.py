"""Helpers shared by the NumPy kernels: convert between arrays and tensors, compute 16-bit floats in float32."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from rushlight.core.determinism import DETERMINISM
from rushlight.core.dtype import COMPLEX, FLOATING, QUANTIZED, bool_, dtype
from rushlight.core.strides import broadcast_shapes, contiguous_strides, elementwise_strides
from rushlight.core.tensor import Tensor, wrap
from rushlight.core.tensor_impl import TensorImpl, empty_impl, impl_from_array
from rushlight.ops.cpu import native
from rushlight.ops.cpu.narrow import FROM_NARROW, TO_NARROW
from rushlight.ops.cpu.quiet import quietly
from rushlight.ops.meta.checks import not_implemented
from rushlight.ops.promotion import check_int, rounded


def empty(sizes: Sequence[int], element_type: dtype, strides: Sequence[int] | None = None) -> Tensor:
    """Return an uninitialised tensor from the caching allocator. RuntimeError for a quantized dtype, which needs more
    parameters."""
    if element_type.category == QUANTIZED:
        raise RuntimeError(
            f"a tensor of dtype {element_type} needs a scale and a zero point: make it with quantize_per_tensor, "
            "quantize_per_channel or _empty_affine_quantized"
        )
    return wrap(empty_impl(tuple(sizes), element_type, None if strides is None else tuple(strides)))


def fill_if_deterministic(tensor: Tensor) -> Tensor:
    """Fill new memory if deterministic algorithms are requested: with NaN, the largest integer, or True."""
    kind = tensor._impl.dtype
    if DETERMINISM.fills and kind.numpy.kind in "biufcV":
        array = tensor._impl.array
        if kind.numpy.kind in "iu":
            array[...] = np.iinfo(kind.numpy).max
        elif array.dtype.names:
            for name in array.dtype.names:
                array[name] = np.nan
        else:
            array[...] = True if kind.numpy.kind == "b" else np.nan
    return tensor


def make(array: np.ndarray | np.generic, element_type: dtype) -> Tensor:
    """Return a tensor of `element_type` that holds `array`, converted when its dtype differs, sharing memory otherwise."""
    array = np.asarray(array)
    if array.dtype != element_type.numpy:
        array = convert(array, element_type.numpy)
    elif any(stride < 0 for stride in array.strides):
        array = array.copy()
    return wrap(impl_from_array(array, element_type))


def convert(array: np.ndarray, target: np.dtype) -> np.ndarray:
    """Return `array` in another dtype as C converts: NaN and out-of-range floats give unspecified integers, without
    warnings."""
    if (array.dtype.kind == "V" or array.dtype.itemsize == 1) and array.dtype in FROM_NARROW:
        return convert(FROM_NARROW[array.dtype](array), target)
    if (target.kind == "V" or target.itemsize == 1) and target in TO_NARROW:
        return TO_NARROW[target](array)
    if array.dtype.kind == "c" and target.kind != "c" and target.kind != "b":
        array = array.real
    made = native.converted(array, target)
    return quietly(array.astype, target) if made is None else made


def operand(value: Tensor | complex | float | int | bool, element_type: dtype) -> np.ndarray | np.generic:
    """Return a tensor's elements or a Python number, in the dtype that kernels for `element_type` compute in."""
    if isinstance(value, Tensor):
        impl = value._impl
        return impl.array if impl.dtype.numpy is element_type.compute else convert(impl.array, element_type.compute)
    if isinstance(value, np.generic | bool | int | float | complex):
        return number(value, element_type.compute)
    raise TypeError(f"expected a Tensor or a number, got {type(value).__name__}")


def number(value: complex | float | int | bool, target: np.dtype) -> np.generic:
    """Return a Python number as a NumPy scalar; out-of-range integers wrap around.

    RuntimeError for an infinity or a NaN in an integer dtype.
    """
    if target.kind in "iu" and isinstance(value, float) and not math.isfinite(value):
        raise RuntimeError(f"value cannot be converted to type {target} without overflow: {value}")
    if target.kind in "iu" and isinstance(value, int) and not isinstance(value, bool):
        bits = 8 * target.itemsize
        value = check_int(value) & ((1 << bits) - 1)
        if target.kind == "i" and value >> (bits - 1):
            value -= 1 << bits
    if (target.kind == "V" or target.itemsize == 1) and target in TO_NARROW:
        return convert(np.asarray(value), target)[()]
    return quietly(target.type, value)


def layout_of(operands: Sequence[object]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return sizes and strides of an elementwise result over the tensors among `operands`."""
    impls: list[TensorImpl] = [value._impl for value in operands if isinstance(value, Tensor)]
    first = impls[0]
    sizes, strides = first.sizes, first.strides
    if strides == contiguous_strides(sizes):
        for impl in impls:
            if impl.sizes != sizes or impl.strides != strides:
                break
        else:
            return sizes, strides
    sizes = broadcast_shapes(*[impl.sizes for impl in impls])
    return sizes, elementwise_strides(sizes, [geometry(value) for value in operands if value is not None])


def geometry(operand: object) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return sizes and strides of an operand; a number counts as a 0-dim tensor."""
    return (operand._impl.sizes, operand._impl.strides) if isinstance(operand, Tensor) else ((), ())


def apply(
    ufunc: Callable,
    compute: dtype,
    result: dtype,
    *operands: object,
    out: Tensor | None = None,
    kernel: tuple[int, tuple[float, ...]] | None = None,
) -> Tensor:
    """Apply a NumPy ufunc elementwise to tensors and numbers, computed in `compute` and returned in `result`.

    A native kernel replaces the ufunc if there is one: `kernel`, or the ufunc's entry in `native.STANDS_FOR`. The result is
    written to `out` if that has the right shape and dtype, to a new tensor otherwise. NotImplementedError where NumPy lacks the
    operation for the dtype.
    """
    if compute.numpy is not compute.compute:
        exact = ufunc in UNROUNDED_NUMBER_OPERATIONS
        operands = tuple([_round_operand(value, compute, exact) for value in operands])
    sizes, strides = layout_of(operands)
    if out is None or out._impl.sizes != sizes or out._impl.dtype is not result:
        out = wrap(empty_impl(sizes, result, strides))
    target = out._impl.array
    code, parameters = kernel or (native.STANDS_FOR.get(ufunc), ())
    if code is not None and native.compute(code, compute, target, operands, *parameters):
        return out
    arrays = [_argument(value, compute) for value in operands]
    try:
        if result.numpy is compute.compute or result is bool_:
            quietly(ufunc, *arrays, target)
        else:
            quietly(_write, ufunc, arrays, target)
    except TypeError:
        if not isinstance(ufunc, np.ufunc):
            raise
        raise not_implemented(f"{ufunc.__name__}_cpu", compute) from None
    return out


# Operations on halves that take a Python number unrounded. All other operations round it to a half first.
UNROUNDED_NUMBER_OPERATIONS: set[Callable] = {np.multiply, np.divide, np.floor_divide}


def _round_operand(value: object, half: dtype, exact: bool) -> object:
    """Return an operand of an operation on halves. Integers are rounded to halves before float32 computes with them, and so
    are, unless `exact`, numbers and 0-dim tensors of other dtypes."""
    if isinstance(value, Tensor):
        kind, sizes = value._impl.dtype, value._impl.sizes
        rounds = kind is not half and kind.category != COMPLEX and (not exact or kind.is_integral and sizes)
        return make(value._impl.array, half) if rounds else value
    return value if exact or not isinstance(value, int | float) else rounded(value, half)


def _argument(value: object, compute: dtype) -> np.ndarray | np.generic | float:
    if isinstance(value, Tensor):
        impl = value._impl
        return impl.array if impl.dtype.numpy is compute.compute else convert(impl.array, compute.compute)
    if compute.category == FLOATING and type(value) in (float, int):
        # NumPy rounds a Python number to the dtype of the array operand.
        return float(value if type(value) is float else check_int(value))
    return operand(value, compute)


def _write(ufunc: Callable, arrays: list[np.ndarray], target: np.ndarray) -> None:
    target[...] = ufunc(*arrays)
