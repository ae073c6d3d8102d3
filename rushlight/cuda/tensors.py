"""Device tensors and their copies from and to the host.

In: tensors on any device. Out: tensors with the same values elsewhere. A copy to a device goes to its current stream. A copy to
the host waits for it, unless it is to page-locked memory and may be asynchronous.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Sequence

from rushlight.core.device import CPU, device
from rushlight.core.dispatch_key import CPU_KEYS, CUDA_KEYS
from rushlight.core.dtype import bool_, complex128, dtype, float64, int64, uint8
from rushlight.core.storage import StorageImpl
from rushlight.core.strides import is_non_overlapping_and_dense
from rushlight.core.tensor import Tensor, wrap
from rushlight.core.tensor_impl import TensorImpl, empty_impl, in_current_mode
from rushlight.cuda import pinned, runtime
from rushlight.ops.registry import aten

_WORD = 4  # bytes that a driver writes at once
_KEPT_NUMBERS = 1024  # Python numbers as device tensors; a training step uses some tens of them


def over(storage: StorageImpl, sizes: tuple, strides: tuple, offset: int, kind: dtype) -> Tensor:
    """Return a tensor over a device storage."""
    return wrap(in_current_mode(TensorImpl(storage, sizes, strides, offset, kind, storage.device, CUDA_KEYS)))


def empty(sizes: Sequence[int], kind: dtype, index: int, strides: Sequence[int] | None = None) -> Tensor:
    """Return an uninitialised tensor on a device; row-major unless `strides` are given."""
    found = runtime.device_at(index)
    stream = runtime.current_stream(index)
    return found.allocator.empty(tuple(sizes), None if strides is None else tuple(strides), kind, stream, found.place)


def _span(*impls: TensorImpl) -> int:
    """Return the bytes from the first to the last element of dense tensors of the same sizes; RuntimeError for storages that
    have fewer, because they were resized."""
    nbytes = impls[0].numel * impls[0].dtype.itemsize
    for impl in impls:
        if nbytes > impl.storage.nbytes - impl.storage_offset * impl.dtype.itemsize:
            raise RuntimeError(f"a tensor of {nbytes} bytes does not fit in its storage of {impl.storage.nbytes} bytes")
    return nbytes


def _dense(tensor: Tensor) -> Tensor:
    """Return a tensor with these values whose elements lie without gaps, in some order of the dimensions."""
    impl = tensor._impl
    return tensor if is_non_overlapping_and_dense(impl.sizes, impl.strides) else aten("clone")(tensor)


def to_host(tensor: Tensor, non_blocking: bool = False) -> Tensor:
    """Return a CPU tensor with the values of a device tensor; in page-locked memory if the copy may be asynchronous."""
    source = _dense(tensor)._impl
    if non_blocking:
        storage = pinned.allocate_pinned(_span(source))
        made = TensorImpl(storage, source.sizes, source.strides, 0, source.dtype, CPU, CPU_KEYS)
    else:
        made = empty_impl(source.sizes, source.dtype, source.strides)
    _copy_to_host(made, source, non_blocking)
    return wrap(in_current_mode(made))


def _copy_to_host(target: TensorImpl, source: TensorImpl, non_blocking: bool) -> None:
    index = source.device.index
    found, stream = runtime.device_at(index), runtime.current_stream(index)
    if source.numel:
        found.driver.copy_to_host(target.data_ptr, source.data_ptr, _span(source, target), stream)
    if pinned.is_pinned(target.storage):
        pinned.note_copy(target.storage, stream)
    if not non_blocking:
        runtime.wait_for_stream(index)


def from_host(tensor: Tensor, index: int, non_blocking: bool = False) -> Tensor:
    """Return a tensor on a device with the values of a CPU tensor."""
    source = _dense(tensor)
    made = empty(source._impl.sizes, source._impl.dtype, index, source._impl.strides)
    _copy_from_host(made._impl, source._impl, non_blocking)
    return made


def _copy_from_host(target: TensorImpl, source: TensorImpl, non_blocking: bool) -> None:
    index = target.device.index
    found, stream = runtime.device_at(index), runtime.current_stream(index)
    if not source.numel:
        return
    found.driver.copy_to_device(target.data_ptr, source.data_ptr, _span(source, target), stream)
    if pinned.is_pinned(source.storage):
        pinned.note_copy(source.storage, stream)
        if not non_blocking:
            found.driver.wait_for_stream(stream)


def _copy_bytes(target: TensorImpl, source: TensorImpl) -> None:
    """Copy a dense device tensor to one of the same strides. On another device its memory may be in use until the work that is
    there now is done."""
    index, other = target.device.index, source.device.index
    if index != other:
        runtime.let_wait(other, runtime.current_stream(index), index)
    found, stream = runtime.device_at(other), runtime.current_stream(other)
    if source.numel:
        found.driver.copy_on_device(target.data_ptr, source.data_ptr, _span(source, target), stream)
    if index != other:
        runtime.let_wait(index, runtime.current_stream(other), other)


def to_device(tensor: Tensor, where: device, non_blocking: bool = False) -> Tensor:
    """Return a tensor with the same values and dtype on a device, which may be the CPU or the tensor's own."""
    own = tensor._impl.device
    if own == where:
        return aten("clone")(tensor)
    if where.type == "cpu":
        return to_host(tensor, non_blocking)
    if own.type == "cpu":
        return from_host(tensor, where.index, non_blocking)
    source = _dense(tensor)._impl
    made = empty(source.sizes, source.dtype, where.index, source.strides)
    _copy_bytes(made._impl, source)
    return made


def copy_into(target: Tensor, source: Tensor, non_blocking: bool) -> None:
    """Write the values of a tensor on another device to `target`, of the same sizes: directly if both lie alike in memory."""
    ours, theirs = target._impl, source._impl
    alike = ours.dtype is theirs.dtype and ours.strides == theirs.strides
    if not alike or not is_non_overlapping_and_dense(ours.sizes, ours.strides):
        aten("copy_")(target, to_device(source, ours.device, non_blocking))
    elif ours.device.type == "cpu":
        _copy_to_host(ours, theirs, non_blocking and pinned.is_pinned(ours.storage))
    elif theirs.device.type == "cpu":
        _copy_from_host(ours, theirs, non_blocking)
    else:
        _copy_bytes(ours, theirs)


def copy_storage(target: StorageImpl, source: StorageImpl, nbytes: int) -> None:
    """Copy the first bytes of a storage to another one; either is on a device."""
    def bytes_of(storage: StorageImpl) -> TensorImpl:
        keys = CPU_KEYS if storage.device == CPU else CUDA_KEYS
        return TensorImpl(storage, (nbytes,), (1,), 0, uint8, storage.device, keys)

    copy_into(wrap(bytes_of(target)), wrap(bytes_of(source)), False)


def move_storage(storage: StorageImpl) -> None:
    """Copy a device storage's bytes to new memory, and let all its tensors have them there."""
    made = runtime.allocate(storage.device.index, storage.nbytes)
    copy_storage(made, storage, storage.nbytes)
    storage.buffer = made.buffer


def number(value: bool | int | float | complex, index: int) -> Tensor:
    """Return a 0-dim tensor of a Python number on a device. It may be shared, so nothing may write to it."""
    stream = runtime.current_stream(index)
    bits = _packed(value)
    if runtime.device_at(index).driver.is_capturing(stream):
        return written(bits, _KINDS[type(value)], index)  # a graph's numbers live in its own memory
    return _kept_number(bits, _KINDS[type(value)], index, stream)


_KINDS = {bool: bool_, int: int64, float: float64, complex: complex128}


def _packed(value: bool | int | float | complex) -> bytes:
    if type(value) is complex:
        return struct.pack("<dd", value.real, value.imag)
    return struct.pack({bool: "<?", int: "<q", float: "<d"}[type(value)], value)


@functools.lru_cache(maxsize=_KEPT_NUMBERS)
def _kept_number(bits: bytes, kind: dtype, index: int, stream: int) -> Tensor:
    """Make a tensor that later work on a stream reads."""
    return written(bits, kind, index)


def written(bits: bytes, kind: dtype, index: int) -> Tensor:
    """Return a 0-dim tensor of these bytes."""
    made = empty((), kind, index)
    write(made, bits)
    return made


def write(target: Tensor, bits: bytes) -> None:
    """Write the bytes of a 0-dim tensor. They are part of the device's work, so no host memory has to stay."""
    index, address = target._impl.device.index, target._impl.data_ptr
    found, stream = runtime.device_at(index).driver, runtime.current_stream(index)
    if len(bits) < _WORD:
        found.fill(address, bits[0], len(bits), stream)
    for place in range(0, len(bits) - _WORD + 1, _WORD):
        found.fill_word(address + place, int.from_bytes(bits[place : place + _WORD], "little"), stream)


runtime.on_forget(_kept_number.cache_clear)
