"""CPU kernels on complex numbers. Each takes `out`, so that it serves the in-place variant too."""

from __future__ import annotations

import numpy as np

from rushlight.core.dtype import bool_
from rushlight.ops.cpu.common import apply
from rushlight.ops.cpu.pointwise import signum
from rushlight.ops.promotion import float_type
from rushlight.ops.registry import cpu, elementwise


@elementwise("conj_physical")
def conj_physical(self, *, out=None):
    kind = self._impl.dtype
    return apply(np.conjugate if kind is not bool_ else np.positive, kind, kind, self, out=out)


def _direction(z: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    length = np.abs(z)
    return np.divide(z, np.where(length == 0, 1, length), out=out)


@elementwise("sgn")
def sgn(self, *, out=None):
    kind = self._impl.dtype
    ufunc = _direction if kind.is_complex else np.positive if kind is bool_ else signum
    return apply(ufunc, kind, kind, self, out=out)


def _angle(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    if x.dtype.kind == "c":
        return np.arctan2(x.imag, x.real, out=out)
    result = np.where(np.isnan(x), x, np.where(x < 0, x.dtype.type(np.pi), x.dtype.type(0)))
    if out is None:
        return result
    out[...] = result
    return out


@cpu("angle")
def angle(self):
    kind = float_type(self._impl.dtype)
    return apply(_angle, kind, kind.to_real(), self)
