"""Storage: a flat run of bytes on a device, shared by every tensor that views it.

`UntypedStorage` is the handle users see; `StorageImpl` owns the memory: a block of the caching allocator, memory borrowed
from NumPy, DLPack or a file, memory that child processes see, or nothing at all on the meta device. `TypedStorage`, the same
as elements of a dtype, is in `typed_storage.py`.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

import rushlight._C as _C
from rushlight._C import StorageImpl
from rushlight.core.device import CPU, META, as_device, device, gpus, present_device
from rushlight.core.errors import OutOfMemoryError

# StorageImpl(buffer, nbytes, where, data_ptr=None) is a C struct (`csrc/storage_impl.c`) that owns the memory. `buffer` is a
# writable object with the buffer protocol, or None where there is no data. It has the fields `nbytes`, `device` and `data_ptr`,
# and `bytes()` gives a uint8 array that shares the memory.

# allocate(nbytes) makes a CPU storage from the caching allocator: 64-byte aligned, uninitialized.
allocate = _C.allocate_storage

ALIGNMENT = 64


def aligned(nbytes: int) -> int:
    """Return `nbytes` rounded up to the alignment of a buffer inside a shared storage."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def check_on_host(where: device) -> None:
    """Raise TypeError for a device whose memory the host cannot read."""
    if where.type == "cuda":
        raise TypeError(
            f"can't convert {where} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
        )


def _bytes_of(storage: StorageImpl) -> np.ndarray:
    """Return the storage as a uint8 array that shares its memory."""
    check_on_host(storage.device)
    if storage.buffer is None:
        raise RuntimeError(f"a storage on device '{storage.device}' holds no data")
    return np.ndarray((storage.nbytes,), np.uint8, storage.buffer)


_C.configure(cpu=CPU, storage_bytes=_bytes_of, out_of_memory=OutOfMemoryError)


def without_data(nbytes: int) -> StorageImpl:
    """Return a storage of the meta device: a size and no memory."""
    return StorageImpl(None, nbytes, META, 0)


def allocate_on(where: device, nbytes: int) -> StorageImpl:
    """Return an uninitialised storage on a device."""
    if where.type == "cuda":
        return gpus.allocate(where.index, nbytes)
    return without_data(nbytes) if where.type == "meta" else allocate(nbytes)


def _copy_bytes(target: StorageImpl, source: StorageImpl) -> None:
    """Copy the first bytes of a storage to another one, as far as both reach."""
    nbytes = min(target.nbytes, source.nbytes)
    if target.device.type == "cuda" or source.device.type == "cuda":
        gpus.copy_bytes(target, source, nbytes)
    elif nbytes:
        target.bytes()[:nbytes] = source.bytes()[:nbytes]


def borrow(array: np.ndarray) -> StorageImpl:
    """Return a storage over the memory that `array` spans from its first element on; ValueError for negative strides."""
    if any(stride < 0 for stride in array.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
            "currently supported. (You can probably work around this by making a copy of your array  with array.copy().)"
        )
    if array.flags.c_contiguous:
        flat = array if array.dtype.isbuiltin == 1 else array.reshape(-1).view(np.uint8)
        return StorageImpl(flat, array.nbytes, CPU)
    reach = sum((size - 1) * stride for size, stride in zip(array.shape, array.strides, strict=True))
    first = np.lib.stride_tricks.as_strided(array, (1,), (array.itemsize,), writeable=array.flags.writeable)
    nbytes = reach + array.itemsize
    flat = np.lib.stride_tricks.as_strided(first.view(np.uint8), (nbytes,), (1,), writeable=array.flags.writeable)
    return StorageImpl(flat, flat.nbytes, CPU)


def from_file(filename: str | os.PathLike, shared: bool, nbytes: int) -> StorageImpl:
    """Return a storage over the first bytes of a file, mapped copy-on-write.

    With `shared`, writes reach the file, which is created or extended to `nbytes`. RuntimeError for a file that is too short.
    """
    with open(filename, "r+b" if shared and os.path.exists(filename) else "w+b" if shared else "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size < nbytes:
            if not shared:
                raise RuntimeError(f"file '{os.fspath(filename)}' has size {size}, but {nbytes} bytes are to be mapped")
            os.ftruncate(file.fileno(), nbytes)
        if not nbytes:
            return allocate(0)
        pages = mmap.mmap(file.fileno(), nbytes, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY)
    return StorageImpl(pages, nbytes, CPU)


def _device_of_storage(value: device | str | int | None) -> device:
    where = as_device(value)
    if where.type in ("mps", "vulkan"):
        raise RuntimeError(f"torch.UntypedStorage(): Storage device not recognized: {where.type}")
    return present_device(where)


class UntypedStorage:
    """A handle to a StorageImpl, as `Tensor.untyped_storage()` returns it. Sizes are in bytes.

    Made of a size, uninitialised, or of a sequence of numbers, one a byte.
    """

    __slots__ = ("_impl", "__weakref__")
    is_hpu = is_sparse = is_sparse_csr = False

    def __init__(self, size: int | Sequence[int] | StorageImpl = 0, *, device: device | str | None = None):
        if isinstance(size, StorageImpl):
            self._impl = size
        elif isinstance(size, int):
            if size < 0:
                raise RuntimeError(f"UntypedStorage(): expected a number of bytes >= 0, got {size}")
            self._impl = allocate_on(_device_of_storage(device), size)
        elif _device_of_storage(device).type == "meta":
            self._impl = without_data(len(size))
        else:
            given = UntypedStorage.from_buffer(np.array(size, np.uint8))
            self._impl = given.to(_device_of_storage(device))._impl

    @staticmethod
    def from_buffer(data: object, *args: Any, copy: bool = True, **kwargs: Any) -> UntypedStorage:
        """Return a storage of the bytes of `data` (anything with the buffer protocol): copied, or borrowed when `copy` is
        False.

        As in torch it takes `count` and `offset`, in bytes.
        """
        source = np.frombuffer(data, np.uint8) if not isinstance(data, np.ndarray) else data.reshape(-1).view(np.uint8)
        offset, count = kwargs.get("offset", 0), kwargs.get("count", -1)
        source = source[offset : None if count < 0 else offset + count]
        if not copy:
            return UntypedStorage(borrow(source))
        impl = allocate(source.nbytes)
        if source.nbytes:
            impl.bytes()[:] = source
        return UntypedStorage(impl)

    @staticmethod
    def from_file(filename: str | os.PathLike, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """Return a storage over the first bytes of a file; with `shared`, writes reach the file, else they stay in memory."""
        return UntypedStorage(from_file(filename, shared, nbytes))

    @property
    def device(self) -> device:
        """Return where the bytes lie."""
        return self._impl.device

    @property
    def filename(self) -> None:
        """Return the file behind memory that processes share by name: always None here."""
        return None

    @property
    def _cdata(self) -> int:
        return id(self._impl)

    def nbytes(self) -> int:
        """Return the size in bytes."""
        return self._impl.nbytes

    size = nbytes

    def data_ptr(self) -> int:
        """Return the address of the first byte; 0 when there is no data."""
        return self._impl.data_ptr

    def element_size(self) -> int:
        """Return 1: an untyped storage counts in bytes."""
        return 1

    @property
    def is_cuda(self) -> bool:
        """Return whether the bytes lie on a GPU."""
        return self._impl.device.type == "cuda"

    def get_device(self) -> int:
        """Return the index of the device: -1 on the CPU, which has none."""
        return -1 if self._impl.device.index is None else self._impl.device.index

    def type(self) -> str:
        """Return the name of the class."""
        return "torch.storage.UntypedStorage"

    def untyped(self) -> UntypedStorage:
        """Return this storage."""
        return self

    def numpy(self) -> np.ndarray:
        """Return the bytes as a uint8 array that shares memory; NotImplementedError for a storage without data."""
        self._check_data(_COPY)
        return self._impl.bytes()

    def _check_data(self, message: str = "Not available for 'meta' device type") -> None:
        if self._impl.device.type == "meta":
            raise NotImplementedError(message)

    def resizable(self) -> bool:
        """Return whether `resize_` may change the size. It may not where another object, such as an array, owns the memory."""
        return not isinstance(self._impl.buffer, np.ndarray)

    def tolist(self) -> list[int]:
        """Return the bytes as ints; NotImplementedError for a storage without data."""
        self._check_data()
        return self.cpu()._impl.bytes().tolist()

    def clone(self) -> UntypedStorage:
        """Return a copy of the bytes in new memory."""
        made = allocate_on(self._impl.device, self._impl.nbytes)
        if self._impl.device.type != "meta":
            _copy_bytes(made, self._impl)
        return UntypedStorage(made)

    def to(self, device: device, non_blocking: bool = False) -> UntypedStorage:
        """Return this storage, or a copy on another device."""
        where = present_device(device)
        if where == self._impl.device:
            return self
        made = UntypedStorage(self._impl.nbytes, device=where)
        return made if where.type == "meta" else made.copy_(self, non_blocking)

    def copy_(self, source: UntypedStorage, non_blocking: bool = False) -> UntypedStorage:
        """Take over the bytes of a storage of the same size; RuntimeError for another size."""
        if source.nbytes() != self.nbytes():
            raise RuntimeError(f"size does not match, self was {self.nbytes()} bytes but src was {source.nbytes()} bytes")
        if self.nbytes():
            source.untyped()._check_data(_COPY)
            _copy_bytes(self._impl, source.untyped()._impl)
        return self

    def fill_(self, value: int) -> UntypedStorage:
        """Set every byte."""
        if self.is_cuda:
            return self.copy_(UntypedStorage(self.nbytes()).fill_(value))
        self._impl.bytes()[...] = _byte(value)
        return self

    def resize_(self, size: int) -> UntypedStorage:
        """Change the size for every tensor that shares the storage, and keep the first bytes.

        A storage of size 0 gives its memory back; on the CPU its addresses read as zeros then. One that shrinks otherwise keeps
        it: tensors may still say that they have elements there.
        """
        if size < 0:
            raise RuntimeError(f"resize_: expected a number of bytes >= 0, got {size}")
        impl = self._impl
        if size == 0 and self.is_cuda:
            impl.buffer = allocate_on(impl.device, 0).buffer
        elif size == 0 and isinstance(impl.buffer, _C.Block):
            impl.buffer.vacate()
        elif impl.device.type != "meta" and size > (impl.buffer.nbytes if self.is_cuda else memoryview(impl.buffer).nbytes):
            grow(impl, size)
        impl.nbytes = size
        return self

    def share_memory_(self) -> UntypedStorage:
        """Move the bytes to memory that forked child processes see. Writes are seen on both sides."""
        if self._impl.device.type == "meta":
            raise RuntimeError("_share_fd_cpu_: only available on CPU")
        if not self.is_shared():  # memory of a GPU counts as shared, as in torch
            pages = mmap.mmap(-1, max(self.nbytes(), 1))
            pages[: self.nbytes()] = self._impl.bytes().tobytes()
            self._impl.buffer = pages
        return self

    def is_shared(self) -> bool:
        """Return whether child processes see writes to this memory."""
        return self.is_cuda or isinstance(self._impl.buffer, mmap.mmap)

    def is_pinned(self, device: device | str | None = None) -> bool:
        """Return whether the memory is page-locked for a GPU."""
        return gpus.is_pinned is not None and gpus.is_pinned(self._impl)

    def pin_memory(self, device: device | str | None = None) -> UntypedStorage:
        """Return this storage, or a copy, in memory that is page-locked for a GPU; RuntimeError if there is none."""
        if not gpus.count():
            raise RuntimeError("Cannot access accelerator device when none is available.")
        return self if self.is_pinned() else UntypedStorage(gpus.allocate_pinned(self.nbytes())).copy_(self)

    def byteswap(self, dtype: Any) -> None:
        """Reverse the bytes of each element of a dtype, in place."""
        width = dtype.itemsize // (2 if dtype.is_complex else 1)
        if width > 1:
            self._impl.bytes().view(np.dtype(f"u{width}")).byteswap(inplace=True)

    def cpu(self) -> UntypedStorage:
        """Return this storage, or a copy on the CPU; NotImplementedError for one without data."""
        self._check_data(_COPY)
        return self.to(CPU)

    def cuda(self, device: Any = None, non_blocking: bool = False) -> UntypedStorage:
        """Return this storage on a GPU, by default the current one; AssertionError if there is none."""
        return self.to(as_device("cuda" if device is None else device), non_blocking)

    def __len__(self) -> int:
        return self._impl.nbytes

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self._impl.nbytes

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def __getitem__(self, index: int | slice) -> int | UntypedStorage:
        self._check_data()
        if self.is_cuda:
            found = self.cpu()[index]
            return found if isinstance(found, int) else found.to(self.device)
        if isinstance(index, slice):
            found = self._impl.bytes()[index]
            return UntypedStorage.from_buffer(found, copy=False) if found.flags.c_contiguous else UntypedStorage(found.tolist())
        if not -self.nbytes() <= index < self.nbytes():
            raise IndexError(f"index {index} out of range for storage of size {self.nbytes()}")
        return int(self._impl.bytes()[index])

    def __setitem__(self, index: int | slice, value: int | Iterable[int]) -> None:
        self._check_data()
        if not isinstance(index, slice) and not -self.nbytes() <= index < self.nbytes():
            raise RuntimeError("out of bounds")
        self._impl.bytes()[index] = _byte(value) if isinstance(value, int) else value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and self._impl is other._impl

    def __hash__(self) -> int:
        return id(self._impl)

    def __copy__(self) -> UntypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict) -> UntypedStorage:
        # Tensors copied with the same memo find this storage's copy under the same key.
        if id(self._impl) not in memo:
            memo[id(self._impl)] = self.clone()._impl
        return UntypedStorage(memo[id(self._impl)])

    def __reduce__(self) -> tuple:
        if self.is_cuda:
            return (UntypedStorage.to, (self.cpu(), self.device))
        return (UntypedStorage.from_buffer, (self._impl.bytes().tobytes(),))

    def __repr__(self) -> str:
        where = self.device
        body = "..." if where.type == "meta" else "\n".join(f" {value}" for value in self.tolist())
        return f"{body}\n[torch.storage.UntypedStorage(device={where}) of size {self.nbytes()}]"


_COPY = "Cannot copy out of meta tensor; no data!"


def grow(impl: StorageImpl, nbytes: int) -> None:
    """Move a storage to a larger block of memory, for every tensor that shares it."""
    grown = allocate_on(impl.device, nbytes)
    _copy_bytes(grown, impl)
    impl.buffer = grown.buffer
    impl.nbytes = nbytes


def _byte(value: int) -> int:
    return int(value) & 0xFF
