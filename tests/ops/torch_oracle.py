"""Converts tensors, dtypes and calls to PyTorch's, for tests that compare with it."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from rushlight.core.dtype import dtype
from rushlight.core.tensor import Tensor


def to_torch(torch, value: object) -> object:
    """`value` with tensors (same sizes, strides and offset, in new memory) and dtypes of PyTorch."""
    if isinstance(value, Tensor):
        impl = value._impl
        kind = getattr(torch, impl.dtype.name)
        stored = impl.storage.bytes()
        whole = stored[: stored.size - stored.size % impl.dtype.itemsize].copy()
        flat = torch.from_numpy(whole).view(kind) if whole.size else torch.empty(0, dtype=kind)
        return flat.as_strided(impl.sizes, impl.strides, impl.storage_offset)
    if isinstance(value, dtype):
        return getattr(torch, value.name)
    if isinstance(value, list | tuple):
        return type(value)(to_torch(torch, item) for item in value)
    return value


def torch_operator(torch, op) -> object:
    """PyTorch's operator of the same name and overload."""
    return getattr(getattr(torch.ops.aten, op._schema.name), op.overload)


def array_of(value: object) -> np.ndarray:
    """The elements of a tensor of either kind as a NumPy array; bfloat16 as float32."""
    if isinstance(value, Tensor):
        array = value.numpy(force=True)
        return array.astype(np.float32) if array.dtype == ml_dtypes.bfloat16 else array
    value = value.detach()
    return (value.float() if value.dtype.is_floating_point and value.element_size() == 2 else value).numpy(force=True)
