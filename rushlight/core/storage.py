"""Storage: a flat run of bytes on a device, shared by every tensor that views it.

`UntypedStorage` is the handle users see; `StorageImpl` owns the memory: a block of the caching allocator, memory borrowed
from NumPy or DLPack, or nothing at all on the meta device.
"""

from __future__ import annotations

import numpy as np

import rushlight._C as _C
from rushlight._C import StorageImpl
from rushlight.core.device import CPU, META, as_device, device, present_device
from rushlight.core.dtype import dtype

# StorageImpl(buffer, nbytes, where, data_ptr=None) is the memory itself, a C struct (`csrc/storage_impl.c`). `buffer` is a
# writable object with the buffer protocol, or None where there is no data; `nbytes`, `device`, `data_ptr` say what they mean,
# and `bytes()` gives a uint8 array that shares the memory.

# A fresh CPU storage of so many bytes from the caching allocator, 64-byte aligned, uninitialised.
allocate = _C.allocate_storage

ALIGNMENT = 64


def aligned(nbytes: int) -> int:
    """`nbytes` rounded up to where other memory may begin in the same storage."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def _bytes_of(storage: StorageImpl) -> np.ndarray:
    """The storage as a uint8 array that shares its memory."""
    if storage.buffer is None:
        raise RuntimeError(f"a storage on device '{storage.device}' holds no data")
    return np.ndarray((storage.nbytes,), np.uint8, storage.buffer)


_C.configure(cpu=CPU, storage_bytes=_bytes_of)


def without_data(nbytes: int) -> StorageImpl:
    """A storage of the meta device: a size and no memory."""
    return StorageImpl(None, nbytes, META, 0)


def borrow(array: np.ndarray) -> StorageImpl:
    """A storage over the memory that `array` spans from its first element on; ValueError for negative strides."""
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


def _device_of_storage(value: device | str | int | None) -> device:
    where = as_device(value)
    if where.type in ("mps", "vulkan"):
        raise RuntimeError(f"torch.UntypedStorage(): Storage device not recognized: {where.type}")
    return present_device(where)


class UntypedStorage:
    """A handle to a StorageImpl, as `Tensor.untyped_storage()` returns it. Sizes are in bytes."""

    __slots__ = ("_impl",)

    def __init__(self, size: int | StorageImpl = 0, *, device: device | str | None = None):
        if isinstance(size, StorageImpl):
            self._impl = size
        else:
            self._impl = without_data(size) if _device_of_storage(device).type == "meta" else allocate(size)

    @staticmethod
    def from_buffer(data: object, copy: bool = True) -> UntypedStorage:
        """A storage of the bytes of `data` (anything with the buffer protocol): copied, or borrowed when `copy` is False."""
        source = np.frombuffer(data, np.uint8) if not isinstance(data, np.ndarray) else data.reshape(-1).view(np.uint8)
        if not copy:
            return UntypedStorage(borrow(source))
        impl = allocate(source.nbytes)
        if source.nbytes:
            impl.bytes()[:] = source
        return UntypedStorage(impl)

    @property
    def device(self) -> device:
        """Where the bytes lie."""
        return self._impl.device

    def nbytes(self) -> int:
        """The size in bytes."""
        return self._impl.nbytes

    size = nbytes

    def data_ptr(self) -> int:
        """The address of the first byte; 0 when there is no data."""
        return self._impl.data_ptr

    def element_size(self) -> int:
        """1: an untyped storage counts in bytes."""
        return 1

    def numpy(self) -> np.ndarray:
        """The bytes as a uint8 array that shares memory."""
        return self._impl.bytes()

    def tolist(self) -> list[int]:
        """The bytes as ints."""
        return self._impl.bytes().tolist()

    def clone(self) -> UntypedStorage:
        """A copy of the bytes in new memory."""
        return UntypedStorage.from_buffer(self._impl.bytes())

    def __len__(self) -> int:
        return self._impl.nbytes

    def __getitem__(self, index):
        found = self._impl.bytes()[index]
        return int(found) if np.isscalar(found) else UntypedStorage.from_buffer(np.ascontiguousarray(found))

    def __setitem__(self, index, value) -> None:
        self._impl.bytes()[index] = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and self._impl is other._impl

    def __hash__(self) -> int:
        return id(self._impl)

    def __repr__(self) -> str:
        return f"UntypedStorage(device={self.device}, nbytes={self.nbytes()})"


class TypedStorage:
    """A storage seen as elements of one dtype, as `Tensor.storage()` returns it."""

    __slots__ = ("_untyped", "dtype")

    def __init__(self, untyped: UntypedStorage, element_type: dtype):
        self._untyped = untyped
        self.dtype = element_type

    def untyped(self) -> UntypedStorage:
        """The same bytes without a dtype."""
        return self._untyped

    @property
    def device(self) -> device:
        """Where the bytes lie."""
        return self._untyped.device

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._untyped.data_ptr()

    def nbytes(self) -> int:
        """The size in bytes."""
        return self._untyped.nbytes()

    def element_size(self) -> int:
        """The bytes of an element."""
        return self.dtype.itemsize

    def size(self) -> int:
        """The number of whole elements."""
        return self._untyped.nbytes() // self.dtype.itemsize

    __len__ = size

    def _array(self) -> np.ndarray:
        usable = self.size() * self.dtype.itemsize
        return self._untyped.numpy()[:usable].view(self.dtype.numpy)

    def tolist(self) -> list:
        """The elements as Python numbers."""
        return self._array().tolist()

    def __getitem__(self, index):
        found = self._array()[index]
        return found.item() if np.isscalar(found) else found.tolist()

    def __setitem__(self, index, value) -> None:
        self._array()[index] = value

    def __repr__(self) -> str:
        rows = "".join(f" {value}\n" for value in self.tolist())
        return f"{rows}[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {self.size()}]"
