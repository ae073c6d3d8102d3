"""Turn results of NumPy calculations into row-major tensors."""

from __future__ import annotations

import numpy as np

from rushlight.core.dtype import dtype
from rushlight.core.strides import contiguous_strides
from rushlight.core.tensor import Tensor
from rushlight.ops.cpu import native
from rushlight.ops.cpu.common import empty, make


def contiguous(array: np.ndarray | np.generic, element_type: dtype) -> Tensor:
    """Return a row-major tensor of `element_type` over a fresh array; shares its memory where possible."""
    made = make(np.asarray(array, order="C"), element_type)
    # NumPy's strides of empty arrays and size-1 dimensions are arbitrary; torch's are not.
    impl = made._impl
    impl.strides = contiguous_strides(impl.sizes)
    return made


def by_strides(values: np.ndarray, element_type: dtype, strides: tuple[int, ...] | None) -> Tensor:
    """Return a tensor with these values and strides, row-major without strides; shares memory where it already has them."""
    if values.dtype == element_type.numpy and (strides is None or strides == contiguous_strides(values.shape)):
        return contiguous(values, element_type)
    out = empty(values.shape, element_type, strides)
    native.assign(out._impl.array, values)
    return out
