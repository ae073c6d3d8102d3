"""The native kernels behind the CPU operators: which NumPy function each one stands for, and calling it.

`rushlight._kernels` takes NumPy arrays, checks them, and says whether it did the work. What it does not take (complex
numbers, functions of float64 that NumPy has in vectors, odd layouts), and everything where the module was not built or
`RUSHLIGHT_KERNELS=numpy` is set, is computed with NumPy.
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

# A small result is not worth memory of the caching allocator.
_LARGE_BYTES = 1 << 16

if kernels is not None:
    _C.use_kernels(kernels.table, kernels.codes)
    kernels.set_bfloat16(bfloat16.numpy.num)
    parallel.follow(kernels.set_threads)

# The operator that computes what a NumPy function does.
STANDS_FOR: dict[Callable, int] = {}


def stands_for(name: str) -> Callable:
    """Say that the native operator `name` computes what the decorated function does."""

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
    """Write the operator `code` of tensors, arrays and numbers, computed in `kind`, to `target`; False if nothing was done."""
    number = DTYPES.get(kind)
    if number is None:
        return False
    values = [value._impl.array if isinstance(value, Tensor) else value for value in operands]
    return kernels.pointwise(code, number, target, *values, *parameters)


def kernel(name: str, *parameters: float) -> tuple[int, tuple[float, ...]] | None:
    """The operator `name` with its parameters, for `apply`; None where there is none."""
    code = _CODES.get(name)
    return None if code is None else (code, parameters)


def assign(target: np.ndarray, source: np.ndarray) -> None:
    """`target[...] = source`, converted as C converts where the dtypes differ and broadcast."""
    if kernels is None or not kernels.copy(target, source):
        target[...] = source


def scratch(sizes: tuple[int, ...], kind: np.dtype) -> np.ndarray:
    """An uninitialised row-major array; a large one in memory of the caching allocator."""
    nbytes = kind.itemsize * math.prod(sizes)
    return np.empty(sizes, kind) if nbytes < _LARGE_BYTES else np.ndarray(sizes, kind, _C.allocate(nbytes))


def contiguous(array: np.ndarray) -> np.ndarray:
    """`array`, or a row-major copy of it."""
    if array.flags.c_contiguous:
        return array
    copy = scratch(array.shape, array.dtype)
    assign(copy, array)
    return copy


def converted(array: np.ndarray, kind: np.dtype) -> np.ndarray | None:
    """A row-major copy of `array` in another dtype, or None where no kernel makes one."""
    if kernels is None or not array.flags.c_contiguous:
        return None
    made = scratch(array.shape, kind)
    return made if kernels.copy(made, array) else None
