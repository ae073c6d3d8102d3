"""Call the native kernels of CPU operators, and the table of NumPy functions that they replace.

`rushlight._kernels` takes NumPy arrays, checks them, and returns whether it did the work. NumPy computes what it does not
support: complex numbers, functions of float64 that NumPy vectorises, odd layouts. NumPy computes everything where the module
was not built or `RUSHLIGHT_KERNELS=numpy` is set.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from types import ModuleType

import numpy as np

import rushlight._C as _C
from rushlight.core import parallel
from rushlight.core.dtype import ALL, bfloat16, dtype
from rushlight.core.tensor import Tensor

_wanted = os.environ.get("RUSHLIGHT_KERNELS")
try:
    import rushlight._kernels as _built
except ImportError:
    if _wanted not in (None, "", "numpy"):
        raise
    _built = None
kernels: ModuleType | None = None if _wanted == "numpy" else _built

DTYPES: dict[dtype, int] = {} if kernels is None else {kind: code for code, kind in enumerate(ALL[:10])}
_CODES: dict[str, int] = {} if kernels is None else kernels.codes

# Smaller results don't use the caching allocator.
_LARGE_BYTES = 1 << 16

if kernels is not None:
    _C.use_kernels(kernels.table, kernels.codes)
    kernels.set_bfloat16(bfloat16.numpy.num)
    parallel.follow(kernels.set_threads)

# The native operator that replaces a NumPy function.
STANDS_FOR: dict[Callable, int] = {}


def stands_for(name: str) -> Callable:
    """Declare that native operator `name` replaces the decorated function."""

    def decorate(function: Callable) -> Callable:
        if name in _CODES:
            STANDS_FOR[function] = _CODES[name]
        return function

    return decorate


for _name in (
    "positive square floor ceil trunc sqrt reciprocal exp exp2 expm1 log log1p log2 log10 sin cos tan tanh isnan isinf "
    "logical_not add maximum minimum floor_divide remainder fmod bitwise_and bitwise_or bitwise_xor logical_and logical_or "
    "logical_xor"
).split():
    stands_for(_name)(getattr(np, _name))
for _name, _function in {
    "neg": np.negative, "abs": np.abs, "bitwise_not": np.invert, "round": np.rint, "sub": np.subtract, "mul": np.multiply,
    "div": np.divide, "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "pow": np.power,
}.items():  # fmt: skip
    stands_for(_name)(_function)


def compute(code: int, kind: dtype, target: np.ndarray, operands: tuple, *parameters: float) -> bool:
    """Run the operator `code` on tensors, arrays and numbers, computed in `kind`, into `target`; False if it is not
    supported."""
    number = DTYPES.get(kind)
    if number is None:
        return False
    values = [value._impl.array if isinstance(value, Tensor) else value for value in operands]
    return kernels.pointwise(code, number, target, *values, *parameters)


def kernel(name: str, *parameters: float) -> tuple[int, tuple[float, ...]] | None:
    """Return the operator `name` with its parameters, for `apply`; None if there is no such kernel."""
    code = _CODES.get(name)
    return None if code is None else (code, parameters)


def assign(target: np.ndarray, source: np.ndarray) -> None:
    """Compute `target[...] = source`, with C conversion of dtypes and broadcasting."""
    if kernels is None or not kernels.copy(target, source):
        target[...] = source


def scratch(sizes: tuple[int, ...], kind: np.dtype) -> np.ndarray:
    """Return an uninitialised row-major array; large ones come from the caching allocator."""
    nbytes = kind.itemsize * math.prod(sizes)
    return np.empty(sizes, kind) if nbytes < _LARGE_BYTES else np.ndarray(sizes, kind, _C.allocate(nbytes))


def contiguous(array: np.ndarray) -> np.ndarray:
    """Return `array`, or a row-major copy of it."""
    if array.flags.c_contiguous:
        return array
    copy = scratch(array.shape, array.dtype)
    assign(copy, array)
    return copy


def converted(array: np.ndarray, kind: np.dtype) -> np.ndarray | None:
    """Return a row-major copy of `array` in another dtype, or None if no kernel converts it."""
    if kernels is None or not array.flags.c_contiguous:
        return None
    made = scratch(array.shape, kind)
    return made if kernels.copy(made, array) else None
