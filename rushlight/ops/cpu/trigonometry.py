"""CPU kernels of the circular and hyperbolic functions and their inverses, on NumPy ufuncs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rushlight.core.tensor import Tensor
from rushlight.ops.cpu.common import apply
from rushlight.ops.meta.checks import not_implemented
from rushlight.ops.promotion import float_type, result_type
from rushlight.ops.registry import elementwise

UNARY = {
    "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
}  # fmt: skip


def _register_unary(name: str, ufunc: Callable) -> None:
    @elementwise(name)
    def function(self, *, out=None):
        kind = float_type(self._impl.dtype)
        return apply(ufunc, kind, kind, self, out=out)


for _name, _ufunc in UNARY.items():
    _register_unary(_name, _ufunc)


@elementwise("atan2")
def atan2(self, other, *, out=None):
    return _of_real(np.arctan2, "atan2", self, other, out)


@elementwise("hypot")
def hypot(self, other, *, out=None):
    if result_type(self, other).is_integral:
        raise not_implemented("hypot_cpu", result_type(self, other))
    return _of_real(np.hypot, "hypot", self, other, out)


def _of_real(ufunc: Callable, name: str, self: Tensor, other: Tensor, out: Tensor | None) -> Tensor:
    kind = float_type(result_type(self, other))
    if kind.is_complex:
        raise not_implemented(f"{name}_cpu", kind)
    return apply(ufunc, kind, kind, self, other, out=out)
