"""CPU kernels of Fourier transforms, on SciPy where it is installed, which batches rows; else on NumPy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rushlight.core.dtype import dtype
from rushlight.core.lazy_module import optional
from rushlight.core.parallel import get_num_threads
from rushlight.core.tensor import Tensor
from rushlight.ops.cpu.results import by_strides, contiguous
from rushlight.ops.meta.fft import COMPLEX, REAL, check_transform, real_strides, transformed_strides
from rushlight.ops.registry import cpu

# NumPy's and SciPy's names for normalising by 1, by the root of the number of points, and by that number.
_FORWARD = ("backward", "ortho", "forward")
_INVERSE = ("forward", "ortho", "backward")


def _transform(name: str, array: np.ndarray, **options: object) -> np.ndarray:
    """Return the transform called `name`: "fftn", "ifftn", "rfftn", "irfft"."""
    scipy = optional("scipy.fft")
    if scipy is None:
        return getattr(np.fft, name)(array, **options)
    return getattr(scipy, name)(array, workers=get_num_threads(), **options)


@cpu("_fft_c2c")
def c2c(self, dim, normalization, forward):
    check_transform(self, COMPLEX, "_fft_c2c", dim, normalization, 0)
    array = self._impl.array
    if not array.size or not len(dim):
        return contiguous(array.copy(), self.dtype)
    name, norm = ("fftn", _FORWARD) if forward else ("ifftn", _INVERSE)
    return _laid_out(self, dim, _transform(name, array, axes=dim, norm=norm[normalization]), self.dtype)


@cpu("_fft_r2c")
def r2c(self, dim, normalization, onesided):
    check_transform(self, REAL, "_fft_r2c", dim, normalization)
    kind = self.dtype.to_complex()
    if not self.numel():
        sizes = list(self.shape)
        sizes[dim[-1]] = sizes[dim[-1]] // 2 + 1 if onesided else sizes[dim[-1]]
        return contiguous(np.zeros(sizes, kind.numpy), kind)
    made = _transform("rfftn" if onesided else "fftn", self._impl.array, axes=dim, norm=_FORWARD[normalization])
    return _laid_out(self, dim, made, kind)


@cpu("_fft_c2r")
def c2r(self, dim, normalization, last_dim_size):
    check_transform(self, COMPLEX, "_fft_c2r", dim, normalization)
    kind, array = self.dtype.to_real(), self._impl.array
    norm = _INVERSE[normalization]
    if not self.numel():
        sizes = list(self.shape)
        sizes[dim[-1]] = last_dim_size
        return contiguous(np.zeros(sizes, kind.numpy), kind)
    if len(dim) > 1:
        array = _transform("ifftn", array, axes=dim[:-1], norm=norm)
    made = _transform("irfft", array, n=last_dim_size, axis=dim[-1], norm=norm)
    return by_strides(made, kind, real_strides(self, dim, made.shape))


def _laid_out(self: Tensor, dim: Sequence[int], made: np.ndarray, kind: dtype) -> Tensor:
    return by_strides(made, kind, transformed_strides(self, dim, made.shape))
