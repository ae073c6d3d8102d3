"""Convolution and its adjoints on the native kernels, which take row-major volumes; 1-D and 2-D inputs get size-1 dimensions.

In: arrays as `convolution.py` has them, (images, channels, ...). Out: a new array, or None where there is no kernel.
"""

from __future__ import annotations

import numpy as np

from rushlight.ops.cpu import native
from rushlight.ops.meta.convolution import Geometry


def _volume(array: np.ndarray) -> np.ndarray:
    """Return the array, row-major and with three spatial dimensions."""
    array = native.contiguous(array)
    return array.reshape(*array.shape[:2], *(1,) * (5 - array.ndim), *array.shape[2:])


def _settings(geometry: Geometry) -> tuple[int, ...]:
    missing = 3 - len(geometry.stride)
    parts = ((1, geometry.stride), (0, geometry.padding), (1, geometry.dilation))
    return (*[value for fill, given in parts for value in (*(fill,) * missing, *given)], geometry.groups)


def _takes(array: np.ndarray) -> bool:
    return native.kernels is not None and array.dtype == np.float32 and array.ndim in (3, 4, 5)


def forward(
    x: np.ndarray, kernel: np.ndarray, bias: np.ndarray | None, sizes: tuple[int, ...], geometry: Geometry
) -> np.ndarray | None:
    """Return the convolution of `x` with `kernel`, of spatial `sizes`."""
    if not _takes(x):
        return None
    out = native.scratch((x.shape[0], kernel.shape[0], *sizes), x.dtype)
    shift = None if bias is None else native.contiguous(bias)
    done = native.kernels.convolution(_volume(out), _volume(x), _volume(kernel), shift, _settings(geometry))
    return out if done else None


def input_gradient(
    y: np.ndarray, kernel: np.ndarray, bias: np.ndarray | None, sizes: tuple[int, ...], geometry: Geometry
) -> np.ndarray | None:
    """Return the gradient of an input of spatial `sizes` for the result's gradient `y`; `bias` is added to its channels."""
    if not _takes(y):
        return None
    out = native.scratch((y.shape[0], kernel.shape[1] * geometry.groups, *sizes), y.dtype)
    shift = None if bias is None else native.contiguous(bias)
    done = native.kernels.convolution_input(_volume(out), _volume(y), _volume(kernel), shift, _settings(geometry))
    return out if done else None


def kernel_gradient(x: np.ndarray, y: np.ndarray, shape: tuple[int, ...], geometry: Geometry) -> np.ndarray | None:
    """Return the gradient of a kernel of `shape`, for the input `x` and the result's gradient `y`."""
    if not _takes(x):
        return None
    out = native.scratch(shape, x.dtype)
    done = native.kernels.convolution_weight(_volume(out), _volume(x), _volume(y), _settings(geometry))
    return out if done else None
