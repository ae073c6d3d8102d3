"""Convolution and its adjoints on the native kernels, which are two-dimensional and row-major; one dimension gets a second.

In: arrays as `convolution.py` has them, (images, channels, ...). Out: a new array, or None where there is no kernel.
"""

from __future__ import annotations

import numpy as np

from rushlight.ops.cpu import native
from rushlight.ops.meta.convolution import Geometry


def _plane(array: np.ndarray) -> np.ndarray:
    """A row-major array with two spatial dimensions."""
    array = native.contiguous(array)
    return array if array.ndim == 4 else array.reshape(*array.shape[:2], 1, array.shape[2])


def _settings(geometry: Geometry) -> tuple[int, ...]:
    missing = 2 - len(geometry.stride)
    parts = ((1, geometry.stride), (0, geometry.padding), (1, geometry.dilation))
    return (*[value for fill, given in parts for value in (*(fill,) * missing, *given)], geometry.groups)


def _takes(array: np.ndarray) -> bool:
    return native.kernels is not None and array.dtype == np.float32 and array.ndim in (3, 4)


def forward(x: np.ndarray, kernel: np.ndarray, sizes: tuple[int, ...], geometry: Geometry) -> np.ndarray | None:
    """The convolution of `x` with `kernel`, of spatial `sizes`."""
    if not _takes(x):
        return None
    out = native.scratch((x.shape[0], kernel.shape[0], *sizes), x.dtype)
    done = native.kernels.convolution(_plane(out), _plane(x), _plane(kernel), None, _settings(geometry))
    return out if done else None


def input_gradient(y: np.ndarray, kernel: np.ndarray, sizes: tuple[int, ...], geometry: Geometry) -> np.ndarray | None:
    """The gradient of an input of spatial `sizes`, for the result's, `y`."""
    if not _takes(y):
        return None
    out = native.scratch((y.shape[0], kernel.shape[1] * geometry.groups, *sizes), y.dtype)
    done = native.kernels.convolution_input(_plane(out), _plane(y), _plane(kernel), _settings(geometry))
    return out if done else None


def kernel_gradient(x: np.ndarray, y: np.ndarray, shape: tuple[int, ...], geometry: Geometry) -> np.ndarray | None:
    """The gradient of a kernel of `shape`, for the input `x` and the result's gradient `y`."""
    if not _takes(x):
        return None
    out = native.scratch(shape, x.dtype)
    done = native.kernels.convolution_weight(_plane(out), _plane(x), _plane(y), _settings(geometry))
    return out if done else None
