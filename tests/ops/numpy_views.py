"""The part of torch's interface that random chains of views use, as a thin layer over NumPy: a model where torch is not installed."""

from __future__ import annotations

import numpy as np

_DTYPES = {name: np.dtype(name) for name in ("float32", "float64", "int64", "int32", "uint8")}


class Array:
    """A NumPy array with the methods that chains call; views share memory as NumPy's do."""

    def __init__(self, array: np.ndarray):
        self.array = array

    # Copies

    def remainder(self, number):
        return Array(self.array % number)

    def sub(self, number):
        return Array(self.array - number)

    def to(self, kind):
        return Array(self.array.astype(kind))

    def clone(self):
        # As in torch: gaps are dropped, the order of dimensions stays.
        return Array(self.array.copy(order="K"))

    # Views

    def reshape(self, sizes):
        return Array(self.array.reshape(sizes))

    def view(self, sizes):
        made = self.array.reshape(sizes)
        if made.size and not np.shares_memory(made, self.array):
            raise RuntimeError("this view needs a copy")
        return Array(made)

    def ravel(self):
        return Array(self.array.reshape(-1) if self.array.flags.c_contiguous else self.array.copy().reshape(-1))

    def transpose(self, first, second):
        return Array(self.array.swapaxes(first, second))

    def movedim(self, source, destination):
        return Array(np.moveaxis(self.array, source, destination))

    def permute(self, dims):
        return Array(self.array.transpose(dims))

    def select(self, dim, index):
        return Array(np.moveaxis(self.array, dim, 0)[index, ...])

    def narrow(self, dim, start, length):
        start = start + self.array.shape[dim] if start < 0 else start
        return Array(np.moveaxis(np.moveaxis(self.array, dim, 0)[start : start + length], 0, dim))

    def unsqueeze(self, dim):
        return Array(np.expand_dims(self.array, dim))

    def squeeze(self):
        return Array(self.array.squeeze())

    def expand(self, sizes):
        have = (1,) * (len(sizes) - self.array.ndim) + self.array.shape
        array = self.array.reshape(have)
        shape = [old if size == -1 else size for size, old in zip(sizes, have, strict=True)]
        strides = [0 if old == 1 != size else stride for size, old, stride in zip(shape, have, array.strides, strict=True)]
        return Array(_strided(array, shape, strides))

    def diagonal(self, offset, first, second):
        if first % self.array.ndim == second % self.array.ndim:
            raise RuntimeError("two equal dimensions")
        last = np.moveaxis(self.array, (first, second), (-2, -1))[..., max(-offset, 0) :, max(offset, 0) :]
        strides = (*last.strides[:-2], last.strides[-2] + last.strides[-1])
        return Array(_strided(last, (*last.shape[:-2], min(last.shape[-2:])), strides))

    def unfold(self, dim, size, step):
        dim %= self.array.ndim
        windows = np.lib.stride_tricks.sliding_window_view(self.array, size, dim, writeable=True)
        return Array(np.moveaxis(np.moveaxis(windows, dim, 0)[::step], 0, dim))

    def detach(self):
        return Array(self.array[...])

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        return Array(self.array[index if any(part is ... for part in index) else (*index, ...)])

    # Writes

    def _write(self, value):
        self.array[...] = value.array if isinstance(value, Array) else value

    def fill_(self, number):
        self._write(number)

    def zero_(self):
        self._write(0)

    copy_ = fill_

    def add_(self, value):
        self._write(_wrapping(np.add, self, value))

    def sub_(self, value):
        self._write(_wrapping(np.subtract, self, value))

    def mul_(self, value):
        self._write(_wrapping(np.multiply, self, value))

    def masked_fill_(self, mask, number):
        self.array[mask] = number

    def __eq__(self, number):
        return self.array == number

    def __ne__(self, number):
        return self.array != number

    __hash__ = None

    def __setitem__(self, index, value):
        self.array[index] = value.array if isinstance(value, Array) else value


def _strided(array: np.ndarray, shape, strides) -> np.ndarray:
    # Unlike NumPy's own functions for broadcasting and diagonals, this gives arrays that can be written to.
    return np.lib.stride_tricks.as_strided(array, shape, strides)


def _wrapping(ufunc, self: Array, value: object) -> np.ndarray:
    with np.errstate(all="ignore"):
        other = value.array.astype(self.array.dtype) if isinstance(value, Array) else self.array.dtype.type(value)
        return ufunc(self.array, other)


class NumPyLibrary:
    """The object that programs call `torch`."""

    float32, float64, int64, int32, uint8 = _DTYPES.values()

    @staticmethod
    def arange(count):
        return Array(np.arange(count))
