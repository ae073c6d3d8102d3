"""`torch.sparse.FloatTensor` and its kin: deprecated constructors of sparse COO tensors."""

from __future__ import annotations

from typing import Any

from rushlight.core import dtype as dtypes
from rushlight.core.dtype import dtype
from rushlight.core.layout import sparse_coo
from rushlight.core.tensor import Tensor
from rushlight.sparse.functions import sparse_coo_tensor


class SparseTensorType(type):
    """The metaclass of `sparse.FloatTensor` and its kin: all COO tensors of that dtype are instances."""

    dtype: dtype

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, Tensor) and value.layout is sparse_coo and value.dtype is cls.dtype

    def __call__(cls, *args: Any) -> Tensor:
        """Return a sparse tensor from indices, values and optionally a size, or a zero tensor of the given sizes."""
        if args and isinstance(args[0], Tensor):
            return sparse_coo_tensor(*args, dtype=cls.dtype)
        sizes = args[0] if len(args) == 1 and not isinstance(args[0], int) else args or (0,)
        return sparse_coo_tensor(size=tuple(sizes), dtype=cls.dtype)


def _define(kind: dtype) -> SparseTensorType:
    text = f"The type of sparse COO tensors of {kind}. Called, it makes one of indices and values, or of sizes."
    return SparseTensorType(f"{kind.scalar_name}Tensor", (), {"dtype": kind, "__doc__": text, "__module__": "rushlight.sparse"})


FloatTensor, DoubleTensor = _define(dtypes.float32), _define(dtypes.float64)
HalfTensor, BFloat16Tensor = _define(dtypes.float16), _define(dtypes.bfloat16)
LongTensor, IntTensor, ShortTensor = _define(dtypes.int64), _define(dtypes.int32), _define(dtypes.int16)
CharTensor, ByteTensor = _define(dtypes.int8), _define(dtypes.uint8)
