"""Results of NumPy calculations as row-major tensors."""

from __future__ import annotations

import numpy as np

from rushlight.core.dtype import dtype
from rushlight.core.strides import contiguous_strides
from rushlight.core.tensor import Tensor
from rushlight.ops.cpu.common import make


def contiguous(array: np.ndarray | np.generic, element_type: dtype) -> Tensor:
    """A row-major tensor of `element_type` with the values of a fresh array, whose memory it keeps where it can."""
    made = make(np.asarray(array, order="C"), element_type)
    # NumPy leaves the strides of empty arrays and of dimensions of size 1 open; torch does not.
    impl = made._impl
    impl.strides = contiguous_strides(impl.sizes)
    return made
