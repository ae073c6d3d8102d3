"""Tensors as MPI's buffers: the address, the number of elements and an MPI datatype. Contiguous tensors are not copied.

A tensor with gaps, in another order or on a GPU goes through one contiguous copy, its staging tensor; `Buffer.deliver` writes
this back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rushlight.autograd.grad_mode import inference_mode, no_grad
from rushlight.core.device import CPU
from rushlight.core.dispatch_key import CPU_KEYS
from rushlight.core.dtype import dtype
from rushlight.core.lazy_module import LazyModule
from rushlight.core.storage import allocate
from rushlight.core.strides import contiguous_strides
from rushlight.core.tensor import Tensor, wrap
from rushlight.core.tensor_impl import TensorImpl, count_write
from rushlight.distributed.engine import mpi

runtime = LazyModule("rushlight.cuda.runtime")

# The MPI datatype of a dtype, and how many of it make an element. 16-bit floats travel as integers of 16 bits.
_DATATYPES = {
    "bool": ("UINT8_T", 1), "uint8": ("UINT8_T", 1), "int8": ("INT8_T", 1), "int16": ("INT16_T", 1), "int32": ("INT32_T", 1),
    "int64": ("INT64_T", 1), "uint16": ("UINT16_T", 1), "uint32": ("UINT32_T", 1), "uint64": ("UINT64_T", 1),
    "float16": ("UINT16_T", 1), "bfloat16": ("UINT16_T", 1), "float32": ("FLOAT", 1), "float64": ("DOUBLE", 1),
    "complex32": ("UINT16_T", 2), "complex64": ("FLOAT", 2), "complex128": ("DOUBLE", 2),
}  # fmt: skip


def empty(sizes: Sequence[int], kind: dtype) -> Tensor:
    """Return a new contiguous tensor without values."""
    sizes, nbytes = tuple(sizes), math.prod(sizes) * kind.itemsize
    return wrap(TensorImpl(allocate(nbytes), sizes, contiguous_strides(sizes), 0, kind, CPU, CPU_KEYS))


class Buffer:
    """A tensor's memory as MPI takes it.

    `tensor` is contiguous: the user's own or the staging copy of it. It is `count` times `datatype`, `units` for each
    element. `parts` is 2 for complex numbers.
    """

    __slots__ = ("tensor", "count", "units", "parts", "datatype", "memory", "nbytes", "_user")

    def __init__(self, tensor: Tensor, user: Tensor | None) -> None:
        impl = tensor._impl
        name, self.units = _DATATYPES.get(impl.dtype.name) or ("BYTE", impl.dtype.itemsize)
        MPI = mpi.load()
        self.tensor, self._user = tensor, user
        self.parts = 2 if impl.dtype.is_complex else 1
        self.count = impl.numel * self.units
        self.datatype = getattr(MPI, name)
        self.nbytes = impl.numel * impl.dtype.itemsize
        self.memory = MPI.buffer.fromaddress(impl.data_ptr if self.nbytes else 0, self.nbytes)

    @property
    def whole(self) -> list[Any]:
        """Return MPI's description of all elements."""
        return [self.memory, self.count, self.datatype]

    def shared(self, ranks: int) -> list[Any]:
        """Return MPI's description of a part for each rank, all equally long."""
        return [self.memory, self.count // ranks, self.datatype]

    def split(self, counts: Sequence[int]) -> list[Any]:
        """Return MPI's description of consecutive parts of `counts` elements each."""
        lengths = [count * self.units for count in counts]
        starts = [sum(lengths[:index]) for index in range(len(lengths))]
        return [self.memory, (lengths, starts), self.datatype]

    def deliver(self) -> None:
        """Write the staging copy back to the user's tensor, and count the write."""
        if self._user is None:
            return
        if self._user is self.tensor:
            count_write(self._user._impl)
        else:
            write(self._user, self.tensor)


def write(tensor: Tensor, values: Tensor) -> None:
    """Write results to a user's tensor, perhaps in another thread than the one that made it and works with it next."""
    with inference_mode():
        tensor.detach().copy_(values)
    if tensor._impl.device != CPU:
        runtime.wait_for_stream(tensor._impl.device.index)


def source(tensor: Tensor) -> Buffer:
    """Return a tensor as a buffer that MPI reads."""
    return Buffer(_contiguous(tensor), None)


def target(tensor: Tensor, load: bool = False) -> Buffer:
    """Return a tensor as a buffer that MPI writes; with `load` it reads it before."""
    if _is_plain(tensor):
        return Buffer(tensor, tensor)
    return Buffer(_contiguous(tensor) if load else empty(tensor.shape, tensor.dtype), tensor)


def staged(tensor: Tensor) -> Tensor:
    """Return a new contiguous tensor with the values of another."""
    with no_grad():
        copy = empty(tensor.shape, tensor.dtype)
        copy.copy_(tensor.detach())
    return copy


def _contiguous(tensor: Tensor) -> Tensor:
    return tensor if _is_plain(tensor) else staged(tensor)


def _is_plain(tensor: Tensor) -> bool:
    """Return whether a tensor is its elements in order in the CPU's memory: no gaps, no lazy conjugate or negative."""
    return tensor._impl.device == CPU and tensor._impl.is_contiguous() and not (tensor.is_conj() or tensor.is_neg())


def flat(tensor: Tensor) -> Tensor:
    """Return a contiguous tensor as one row over the same memory; complex numbers as pairs of their parts."""
    impl = tensor._impl
    real = impl.dtype.to_real()
    width = impl.dtype.itemsize // real.itemsize
    return wrap(TensorImpl(impl.storage, (impl.numel * width,), (1,), impl.storage_offset * width, real, CPU, CPU_KEYS))


def lie_together(tensors: Sequence[Tensor]) -> bool:
    """Return whether contiguous tensors of one storage follow each other without a gap, so that they can be one buffer."""
    first = tensors[0]._impl
    place = first.storage_offset
    for tensor in tensors:
        impl = tensor._impl
        if impl.storage is not first.storage or impl.storage_offset != place or impl.dtype is not first.dtype:
            return False
        if not _is_plain(tensor):
            return False
        place += impl.numel
    return True


def joined(tensors: Sequence[Tensor]) -> Tensor:
    """Return adjacent tensors (see `lie_together`) as one flat tensor over the same memory."""
    first = tensors[0]._impl
    count = sum(tensor._impl.numel for tensor in tensors)
    return wrap(first.alias((count,), (1,), first.storage_offset))
