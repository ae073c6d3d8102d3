"""Native byte kernels for the operators of quantized tensors.

In: arrays of bytes with their scales and zero points. Out: an array, or None if no kernel supports the arguments (other dtypes,
weights whose zero points need more than a byte, empty arrays, a build without kernels). The caller then computes the same
integers with NumPy. Images lie channels-last in the kernels; an array in another order is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

import rushlight._C as _C
from rushlight.ops.cpu import native

BYTES = (np.dtype(np.uint8), np.dtype(np.int8))
ADD, MULTIPLY = 2, 3  # codes of combine_bytes
FLOAT = np.dtype(np.float32)


def aligned(nbytes: int) -> np.ndarray:
    """Return uninitialised bytes, aligned to 64."""
    return np.ndarray((nbytes,), np.uint8, _C.allocate(nbytes))


# Memory order of images


def channels_last(x: np.ndarray) -> np.ndarray:
    """Return images (batch, channels, height, width) as a row-major array (batch, height, width, channels)."""
    return native.contiguous(x.transpose(0, 2, 3, 1))


def channels_first(x: np.ndarray) -> np.ndarray:
    """Return the view (batch, channels, height, width) of channels-last images."""
    return x.transpose(0, 3, 1, 2)


def is_channels_last(x: np.ndarray) -> bool:
    """Return whether images are channels-last and not row-major."""
    return x.ndim == 4 and not x.flags.c_contiguous and x.transpose(0, 2, 3, 1).flags.c_contiguous


def elementwise(run: Callable[..., bool], kind: np.dtype, *inputs: np.ndarray) -> np.ndarray | None:
    """Return the array filled by run(out, *inputs), with the layout of the first input; None if it did nothing."""
    if native.kernels is None:
        return None
    last = is_channels_last(inputs[0])
    rows = [channels_last(each) if last else native.contiguous(each) for each in inputs]
    out = native.scratch(rows[0].shape, kind)
    if not run(out, *rows):
        return None
    return channels_first(out) if last else out


# Layers


@dataclass(frozen=True, eq=False)
class LayerWeight:
    """A weight in the kernels' form: packed bytes, or int16 (taps, channels) for a depthwise convolution; and its settings:
    kernel sizes, strides, paddings and dilations, two each, and groups."""

    data: np.ndarray
    outputs: int
    settings: tuple[int, ...]


def pack(weight: np.ndarray, settings: Sequence[int]) -> LayerWeight | None:
    """Pack a weight (outputs, channels / groups, height, width) of float32 integers, minus their zero points, for the
    kernels."""
    if native.kernels is None or not weight.size or weight.min() < -128 or weight.max() > 127:
        return None
    outputs, channels, groups = weight.shape[0], weight.shape[1], settings[8]
    if channels == 1 and groups == outputs > 1:
        taps = np.ascontiguousarray(weight.reshape(outputs, -1).T, dtype=np.int16)
        return LayerWeight(taps, outputs, tuple(settings))
    rows = np.ascontiguousarray(weight.transpose(0, 2, 3, 1), dtype=np.int8).reshape(groups, outputs // groups, -1)
    size = native.kernels.packed_bytes(*rows.shape)
    if not size or not native.kernels.pack_bytes(packed := aligned(size), rows):
        return None
    return LayerWeight(packed, outputs, tuple(settings))


def layer(
    x: np.ndarray, weight: LayerWeight, sizes: Sequence[int], kind: np.dtype, bias: np.ndarray, multiplier: np.ndarray,
    zero_point: int, out_zero: int, relu: bool,
) -> np.ndarray | None:  # fmt: skip
    """Apply a layer to x (batch, height, width, channels): (batch, *sizes, outputs) of `kind`, bytes or float32."""
    out = native.scratch((x.shape[0], *sizes, weight.outputs), kind)
    numbers = (*weight.settings, zero_point, out_zero, int(relu))
    done = native.kernels.byte_layer(out, native.contiguous(x), weight.data, bias, multiplier, numbers)
    return out if done else None


def sizes_after(sizes: Sequence[int], settings: Sequence[int]) -> list[int]:
    """Return height and width after a convolution."""
    pairs = (settings[start : start + 2] for start in range(0, 8, 2))
    return [
        (size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
        for size, kernel, stride, pad, dilation in zip(sizes, *pairs, strict=True)
    ]


# Elementwise


def quantize(values: np.ndarray, inverse: float, zero_point: int, kind: np.dtype) -> np.ndarray | None:
    """Quantize to bytes: float32 numbers times the inverse of a scale, plus the zero point."""
    if kind not in BYTES:
        return None
    return elementwise(lambda out, x: native.kernels.quantize_bytes(out, x, inverse, zero_point), kind, values)


def dequantize(integers: np.ndarray, scale: float, zero_point: int) -> np.ndarray | None:
    """Dequantize bytes to float32."""
    if integers.dtype not in BYTES:
        return None
    return elementwise(lambda out, x: native.kernels.dequantize_bytes(out, x, scale, zero_point), FLOAT, integers)


def combine(
    code: int, pair: Sequence[np.ndarray], scales: Sequence[float], zeros: Sequence[int], inverse: float, zero_point: int,
    relu: bool,
) -> np.ndarray | None:  # fmt: skip
    """Dequantize two arrays of bytes and add them, or multiply their integers; multiply the result by `inverse`, round it, and
    add the zero point."""
    first, second = pair
    if first.dtype not in BYTES or second.dtype != first.dtype or first.shape != second.shape:
        return None
    numbers = (*scales, *zeros, inverse, zero_point, int(relu))
    return elementwise(lambda out, a, b: native.kernels.combine_bytes(code, out, a, b, *numbers), first.dtype, first, second)


def rescale(
    integers: np.ndarray, scale: float, zero: int, inverse: float, zero_point: int, relu: bool
) -> np.ndarray | None:  # fmt: skip
    """Dequantize bytes, clamp them at 0 if `relu`, and quantize them again."""
    if integers.dtype not in BYTES:
        return None
    numbers = (scale, zero, inverse, zero_point, int(relu))
    return elementwise(lambda out, x: native.kernels.rescale_bytes(out, x, *numbers), integers.dtype, integers)


def look_up(integers: np.ndarray, table: np.ndarray) -> np.ndarray | None:
    """Look up elements in a table of 256 bytes, which starts with the entry of the smallest integer."""
    if integers.dtype not in BYTES:
        return None
    # The kernel reads a signed byte as unsigned.
    by_bits = np.roll(table, 128) if integers.dtype.kind == "i" else table
    plain = by_bits.view(np.uint8)
    made = elementwise(lambda out, x: native.kernels.look_up_bytes(out, x, plain), BYTES[0], integers.view(np.uint8))
    return None if made is None else made.view(table.dtype)


def limits(values: np.ndarray) -> tuple[float, float]:
    """Return the minimum and maximum; zeros for an empty array."""
    if not values.size:
        return 0.0, 0.0
    found = None if native.kernels is None else native.kernels.float_limits(values)
    return found or (float(values.min()), float(values.max()))


# Pooling


def pool(x: np.ndarray, sizes: Sequence[int], numbers: Sequence[int]) -> np.ndarray | None:
    """Return images (batch, channels, height, width) of bytes, pooled to `sizes`; the memory order is kept. `numbers` are those
    of `pool_bytes`."""
    if native.kernels is None or x.ndim != 4 or x.dtype not in BYTES:
        return None
    rows = channels_last(x)
    out = native.scratch((x.shape[0], *sizes, x.shape[1]), x.dtype)
    if not native.kernels.pool_bytes(out, rows, tuple(numbers)):
        return None
    made = channels_first(out)
    return made if is_channels_last(x) else native.contiguous(made)
