"""Helpers shared by the linear-algebra kernels: loops over a batch, NumPy's errors turned into torch's, SciPy's LAPACK."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from rushlight.core.dtype import dtype
from rushlight.core.lazy_module import LazyModule
from rushlight.core.tensor import Tensor
from rushlight.ops.cpu.common import empty
from rushlight.ops.cpu.quiet import quietly
from rushlight.ops.linalg_errors import LinAlgError, failed
from rushlight.ops.meta.linalg_checks import column_major

_lapack = LazyModule("scipy.linalg.lapack", "a factorization of a symmetric indefinite matrix")
_PREFIX = {"f": "s", "d": "d", "F": "c", "D": "z"}


def lapack(name: str, kind: np.dtype) -> Callable:
    """Return SciPy's LAPACK routine for matrices of a dtype: "sytrf" gives ssytrf, dsytrf, csytrf or zsytrf."""
    return getattr(_lapack, _PREFIX[kind.char] + name)


def stacked(array: np.ndarray, rank: int = 2) -> np.ndarray:
    """Return a batch with its batch dimensions flattened; each item has `rank` dimensions."""
    split = array.ndim - rank
    return array.reshape((math.prod(array.shape[:split]), *array.shape[split:]))


def adjoint(array: np.ndarray) -> np.ndarray:
    """Return each matrix transposed and conjugated."""
    turned = np.swapaxes(array, -1, -2)
    return turned.conj() if array.dtype.kind == "c" else turned


def converging(name: str, function: Callable, *args: object) -> object:
    """Run a function of numpy.linalg without warnings; its failures become LinAlgErrors of operator `name`."""
    try:
        return quietly(function, *args)
    except np.linalg.LinAlgError:
        finite = all(np.isfinite(value).all() for value in args if isinstance(value, np.ndarray))
        raise diverged(name, finite) from None


def diverged(name: str, finite: bool = False) -> LinAlgError:
    """Return the error for an algorithm that did not converge; `finite` says whether the matrix has only finite values."""
    why = "" if finite else " because the input matrix contained non-finite values"
    return LinAlgError(f"{name}: The algorithm failed to converge{why}.")


def svd(matrices: np.ndarray, full_matrices: bool, vectors: bool = True) -> object:
    """Call numpy.linalg.svd. LinAlgError for matrices with NaN or infinities, for which LAPACK may not terminate."""
    if not np.isfinite(matrices).all():
        raise diverged("linalg.svd")
    return converging("linalg.svd", np.linalg.svd, matrices, full_matrices, vectors)


def raise_first(name: str, info: np.ndarray, reason: Callable[[int], str]) -> None:
    """Raise LinAlgError for the first matrix of a batch whose status in `info` is not 0."""
    wrong = np.flatnonzero(info)
    if wrong.size:
        raise failed(name, info.shape, int(wrong[0]), reason(int(info.flat[wrong[0]])))


def by_columns(array: np.ndarray, element_type: dtype) -> Tensor:
    """Return a tensor of `element_type` with column-major matrices, as torch returns LAPACK's results."""
    made = empty(array.shape, element_type, column_major(array.shape))
    made._impl.array[...] = array
    return made


def zeros_of(batch: Sequence[int]) -> np.ndarray:
    """Return a status of 0 for each matrix of a batch."""
    return np.zeros(tuple(batch), np.int32)
