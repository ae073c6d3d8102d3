"""CPU kernels of Fourier transforms, on SciPy's, which keep single precision, take several rows at a time and use threads."""

from __future__ import annotations

import numpy as np

from rushlight.core.lazy_module import LazyModule
from rushlight.core.parallel import get_num_threads
from rushlight.ops.cpu.results import contiguous
from rushlight.ops.meta.fft import COMPLEX, REAL, check_transform
from rushlight.ops.registry import cpu

transforms = LazyModule("scipy.fft")

# What SciPy calls a division by nothing, by the root of the number of points, and by that number.
_FORWARD = ("backward", "ortho", "forward")
_INVERSE = ("forward", "ortho", "backward")


@cpu("_fft_c2c")
def c2c(self, dim, normalization, forward):
    check_transform(self, COMPLEX, "_fft_c2c", dim, normalization, 0)
    array = self._impl.array
    if not array.size or not len(dim):
        return contiguous(array.copy(), self.dtype)
    transform, norm = (transforms.fftn, _FORWARD) if forward else (transforms.ifftn, _INVERSE)
    return contiguous(transform(array, axes=dim, norm=norm[normalization], workers=get_num_threads()), self.dtype)


@cpu("_fft_r2c")
def r2c(self, dim, normalization, onesided):
    check_transform(self, REAL, "_fft_r2c", dim, normalization)
    kind = self.dtype.to_complex()
    transform = transforms.rfftn if onesided else transforms.fftn
    if not self.numel():
        sizes = list(self.shape)
        sizes[dim[-1]] = sizes[dim[-1]] // 2 + 1 if onesided else sizes[dim[-1]]
        return contiguous(np.zeros(sizes, kind.numpy), kind)
    made = transform(self._impl.array, axes=dim, norm=_FORWARD[normalization], workers=get_num_threads())
    return contiguous(made, kind)


@cpu("_fft_c2r")
def c2r(self, dim, normalization, last_dim_size):
    check_transform(self, COMPLEX, "_fft_c2r", dim, normalization)
    kind, array = self.dtype.to_real(), self._impl.array
    how = {"norm": _INVERSE[normalization], "workers": get_num_threads()}
    if not self.numel():
        sizes = list(self.shape)
        sizes[dim[-1]] = last_dim_size
        return contiguous(np.zeros(sizes, kind.numpy), kind)
    if len(dim) > 1:
        array = transforms.ifftn(array, axes=dim[:-1], **how)
    return contiguous(transforms.irfft(array, n=last_dim_size, axis=dim[-1], **how), kind)
