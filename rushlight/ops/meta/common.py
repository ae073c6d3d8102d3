"""Helpers shared by Meta kernels: they compute the sizes, strides and dtypes of results and allocate no data."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.core.device import META
from rushlight.core.dtype import dtype
from rushlight.core.strides import broadcast_shapes, elementwise_strides, wrap_dims
from rushlight.core.tensor import Tensor, wrap
from rushlight.core.tensor_impl import empty_meta_impl


def empty(sizes: Sequence[int], element_type: dtype, strides: Sequence[int] | None = None) -> Tensor:
    """Return a meta tensor; row-major unless `strides` are given."""
    return wrap(empty_meta_impl(tuple(sizes), element_type, META, None if strides is None else tuple(strides)))


def pointwise(element_type: dtype, *operands: object) -> Tensor:
    """Return the result of an elementwise operator over the tensors among `operands`, broadcast together."""
    impls = [operand._impl for operand in operands if isinstance(operand, Tensor)]
    sizes = broadcast_shapes(*[impl.sizes for impl in impls])
    # A number counts as a 0-dim tensor.
    operands = tuple(operand for operand in operands if operand is not None)
    layouts = [(value._impl.sizes, value._impl.strides) if isinstance(value, Tensor) else ((), ()) for value in operands]
    return empty(sizes, element_type, elementwise_strides(sizes, layouts))


def like(tensor: Tensor, element_type: dtype | None = None) -> Tensor:
    """Return a row-major result of the same shape."""
    return empty(tensor._impl.sizes, element_type or tensor._impl.dtype)


def reduced_sizes(sizes: tuple[int, ...], dims: Sequence[int] | int | None, keepdim: bool) -> tuple[int, ...]:
    """Return sizes after a reduction over `dims` (all when None or empty)."""
    dims = reduced_dims(len(sizes), dims)
    if keepdim:
        return tuple(1 if dim in dims else size for dim, size in enumerate(sizes))
    return tuple(size for dim, size in enumerate(sizes) if dim not in dims)


def reduced_dims(rank: int, dims: Sequence[int] | int | None) -> tuple[int, ...]:
    """Return the wrapped dimensions that a reduction runs over: all of them for None or ()."""
    if isinstance(dims, int):
        dims = (dims,)
    if dims is None or len(dims) == 0:
        return tuple(range(rank))
    wrapped = wrap_dims(dims, rank)
    return wrapped if rank else ()
