"""`torch._C._dynamo.guards`: what generated programs check, and how they make their buffers."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.core.dtype import dtype as Dtype
from rushlight.core.tensor import Tensor
from rushlight.ops.registry import aten

_as_strided, _empty_strided = aten("as_strided"), aten("empty_strided")


def assert_size_stride(item: Tensor, size: Sequence[int], stride: Sequence[int], op_name: str | None = None) -> bool:
    """True for a tensor of this size that lies in memory so; AssertionError names the first dimension that differs. The stride
    of a dimension of at most one element does not count."""
    if not isinstance(item, Tensor):
        raise TypeError(f"assert_size_stride expects a tensor, got {type(item).__name__}")
    where = f" of {op_name}" if op_name else ""
    if item.dim() != len(size):
        raise AssertionError(f"wrong number of dimensions{where}: {item.dim()} instead of {len(size)}")
    for number, (found, step, wanted, wanted_step) in enumerate(zip(item.shape, item.stride(), size, stride, strict=True)):
        if found != wanted or (wanted > 1 and step != wanted_step):
            raise AssertionError(
                f"expected size {found}=={wanted}, stride {step}=={wanted_step} at dim={number}{where}"
            )
    return True


def _empty_strided_cpu(size: Sequence[int], stride: Sequence[int], dtype: Dtype) -> Tensor:
    """A tensor with memory of its own, not initialized."""
    return _empty_strided(size, stride, dtype=dtype, device="cpu")


def _reinterpret_tensor(base: Tensor, size: Sequence[int], stride: Sequence[int], offset_increment: int = 0) -> Tensor:
    """The memory of a tensor with another size and strides, beginning `offset_increment` elements further."""
    return _as_strided(base, size, stride, base.storage_offset() + offset_increment)
