"""Meta rules of Fourier transforms, and the dtype check that the CPU kernels share."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.core.dtype import complex64, complex128, dtype, float32, float64
from rushlight.core.strides import strides_in_order, wrap_dim
from rushlight.core.tensor import Tensor
from rushlight.ops.meta.common import empty
from rushlight.ops.registry import meta


def check_transform(
    self: Tensor, kinds: tuple[dtype, dtype], name: str, dim: Sequence[int], normalization: int, least: int = 1
) -> None:
    """Raise unless a transform supports the tensor's dtype, and `dim` has at least `least` dimensions."""
    if len(dim) < least:
        raise RuntimeError(f"{name}: expected at least one dimension to transform, but got none")
    if normalization not in (0, 1, 2):
        raise RuntimeError(f"{name}: expected a normalization of 0, 1 or 2, but got {normalization}")
    for each in dim:
        self.size(each)
    if self.dtype not in kinds:
        raise RuntimeError(f"{name}: expected a tensor of {kinds[0]} or {kinds[1]}, but got one of {self.dtype}")


REAL, COMPLEX = (float32, float64), (complex64, complex128)


def _with_last(self: Tensor, dim: Sequence[int], size: int) -> tuple[int, ...]:
    sizes = list(self._impl.sizes)
    sizes[wrap_dim(dim[-1], len(sizes))] = size
    return tuple(sizes)


def transformed_strides(self: Tensor, dim: Sequence[int], sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a transform of those sizes: transformed dimensions innermost, otherwise in the input's order."""
    return _transformed(self._impl.strides, dim, sizes)


def real_strides(self: Tensor, dim: Sequence[int], sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a transform to real numbers: one over the other dimensions, then one over the last."""
    strides = self._impl.strides
    if len(dim) > 1:
        strides = _transformed(strides, dim[:-1], self._impl.sizes)
    return _transformed(strides, dim[-1:], sizes)


def _transformed(strides: tuple[int, ...], dim: Sequence[int], sizes: tuple[int, ...]) -> tuple[int, ...]:
    chosen = [wrap_dim(axis, len(sizes)) for axis in dim]
    others = [axis for axis in range(len(sizes)) if axis not in chosen]
    order = [*sorted(others, key=lambda axis: -strides[axis]), *sorted(chosen, key=lambda axis: -strides[axis])]
    return strides_in_order(sizes, order)


@meta("_fft_c2c")
def c2c(self, dim, normalization, forward):
    check_transform(self, COMPLEX, "_fft_c2c", dim, normalization, 0)
    sizes = self._impl.sizes
    return empty(sizes, self.dtype, transformed_strides(self, dim, sizes))


@meta("_fft_r2c")
def r2c(self, dim, normalization, onesided):
    check_transform(self, REAL, "_fft_r2c", dim, normalization)
    sizes = _with_last(self, dim, self.size(dim[-1]) // 2 + 1) if onesided else self._impl.sizes
    return empty(sizes, self.dtype.to_complex(), transformed_strides(self, dim, tuple(sizes)))


@meta("_fft_c2r")
def c2r(self, dim, normalization, last_dim_size):
    check_transform(self, COMPLEX, "_fft_c2r", dim, normalization)
    sizes = _with_last(self, dim, last_dim_size)
    return empty(sizes, self.dtype.to_real(), real_strides(self, dim, tuple(sizes)))
