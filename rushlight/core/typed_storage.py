"""TypedStorage: a storage seen as elements of one dtype, and its names from torch's first years, as `FloatStorage`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from rushlight.core.device import as_device, device, raise_absent
from rushlight.core.dtype import (
    ALL,
    QUANTIZED_TYPES,
    bfloat16,
    bool_,
    complex64,
    complex128,
    dtype,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float16,
    float32,
    float64,
    get_default_dtype,
    int8,
    int16,
    int32,
    int64,
    uint8,
)
from rushlight.core.storage import UntypedStorage


class TypedStorage:
    """A storage seen as elements of one dtype, as `Tensor.storage()` returns it.

    Made of a number of elements, of a sequence of them, or over an untyped storage, `wrap_storage`.
    """

    __slots__ = ("_untyped_storage", "dtype", "__weakref__")
    is_cuda = is_hpu = is_sparse = False

    def __init__(
        self, *args: Any, wrap_storage: UntypedStorage | None = None, dtype: dtype | None = None,
        device: device | str | None = None, _internal: bool = False,
    ):  # fmt: skip
        if len(args) == 2 and isinstance(args[0], UntypedStorage):
            wrap_storage, dtype, args = args[0], args[1], ()
        if len(args) > 1 or (args and wrap_storage is not None):
            raise RuntimeError(f"TypedStorage() takes one size or one sequence, or wrap_storage, got {len(args)} arguments")
        self.dtype = dtype or get_default_dtype()
        if wrap_storage is not None:
            if not isinstance(wrap_storage, UntypedStorage):
                raise TypeError(f"Argument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}")
            self._untyped_storage = wrap_storage
        elif not args or isinstance(args[0], int):
            self._untyped_storage = UntypedStorage((args[0] if args else 0) * self.dtype.itemsize, device=device)
        else:
            values = _convert(np.asarray(args[0]), self.dtype)
            on_meta = device is not None and as_device(device).type == "meta"
            self._untyped_storage = (
                UntypedStorage(values.nbytes, device="meta") if on_meta else UntypedStorage.from_buffer(values)
            )

    @staticmethod
    def _of(untyped: UntypedStorage, element_type: dtype) -> TypedStorage:
        return TypedStorage(wrap_storage=untyped, dtype=element_type)

    def untyped(self) -> UntypedStorage:
        """Return the same bytes without a dtype."""
        return self._untyped_storage

    @property
    def device(self) -> device:
        """Return where the bytes lie."""
        return self._untyped_storage.device

    @property
    def filename(self) -> None:
        """Return the file behind memory that processes share by name: always None here."""
        return None

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        return self._untyped_storage.data_ptr()

    def nbytes(self) -> int:
        """Return the size in bytes."""
        return self._untyped_storage.nbytes()

    def element_size(self) -> int:
        """Return the bytes of an element."""
        return self.dtype.itemsize

    def size(self) -> int:
        """Return the number of whole elements."""
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    __len__ = size
    _size = size

    def get_device(self) -> int:
        """Return the index of the device: -1, as the CPU has none."""
        return -1

    def pickle_storage_type(self) -> str:
        """Return the name of the class of this dtype, as files have it: "FloatStorage"."""
        return f"{self.dtype.scalar_name}Storage"

    def type(self, dtype: Any = None, non_blocking: bool = False) -> str | TypedStorage:
        """Return the name of the class of this dtype: "torch.FloatStorage"."""
        return f"torch.{self.pickle_storage_type()}" if dtype is None else self._to(getattr(dtype, "dtype", dtype))

    def _array(self) -> np.ndarray:
        """Return the elements: over the same memory on the CPU, a copy for a GPU."""
        usable = self.size() * self.dtype.itemsize
        return self._untyped_storage.cpu().numpy()[:usable].view(self.dtype.numpy)

    def _write(self, index: Any, value: Any) -> None:
        """Set elements; on a GPU by way of a copy."""
        array = self._array()
        array[index] = value
        if self._untyped_storage.is_cuda:
            whole = self._untyped_storage.cpu()
            whole.numpy()[: array.nbytes] = array.view(np.uint8)
            self._untyped_storage.copy_(whole)

    def resizable(self) -> bool:
        """Return whether `resize_` may change the size."""
        return self._untyped_storage.resizable()

    def tolist(self) -> list:
        """Return the elements as Python numbers."""
        self._untyped_storage._check_data()
        made = self._array()
        return made.astype(np.float32).tolist() if self.dtype.is_floating_point and self.dtype.itemsize < 4 else made.tolist()

    def clone(self) -> TypedStorage:
        """Return a copy in new memory."""
        return self._of(self._untyped_storage.clone(), self.dtype)

    def copy_(self, source: TypedStorage, non_blocking: bool = False) -> TypedStorage:
        """Copy and convert the elements of a storage of the same length."""
        self._write(..., _convert(source._array(), self.dtype))
        return self

    def fill_(self, value: Any) -> TypedStorage:
        """Set every element."""
        self._write(..., value)
        return self

    def resize_(self, size: int) -> None:
        """Change the number of elements for every tensor that shares the storage."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)

    def share_memory_(self) -> TypedStorage:
        """Move the elements to memory that forked child processes see."""
        self._untyped_storage.share_memory_()
        return self

    def is_shared(self) -> bool:
        """Return whether child processes see writes to this memory."""
        return self._untyped_storage.is_shared()

    def is_pinned(self, device: device | str | None = None) -> bool:
        """Return whether the memory is page-locked for a GPU: never."""
        return False

    def cpu(self) -> TypedStorage:
        """Return this storage."""
        self._untyped_storage.cpu()
        return self

    def cuda(self, device: Any = None, non_blocking: bool = False) -> NoReturn:
        """Raise AssertionError: there is no GPU."""
        raise_absent("cuda")

    @classmethod
    def from_buffer(cls, buffer: object, byte_order: str = "native", *, dtype: dtype | None = None) -> TypedStorage:
        """Return a storage of the bytes of a buffer, copied, in this machine's byte order."""
        made = TypedStorage(wrap_storage=UntypedStorage.from_buffer(buffer), dtype=dtype or getattr(cls, "_kind", None))
        if byte_order == "big":
            made._untyped_storage.byteswap(made.dtype)
        return made

    @classmethod
    def from_file(cls, filename: str | os.PathLike, shared: bool = False, size: int = 0) -> TypedStorage:
        """Return a storage over the first elements of a file; with `shared`, writes reach the file."""
        kind = getattr(cls, "_kind", None)
        if kind is None:
            raise RuntimeError("from_file can only be called on derived classes")
        return TypedStorage(wrap_storage=UntypedStorage.from_file(filename, shared, size * kind.itemsize), dtype=kind)

    def _to(self, kind: dtype) -> TypedStorage:
        return self if kind is self.dtype else TypedStorage(_convert(self._array(), kind), dtype=kind)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __getitem__(self, index: int) -> Any:
        self._untyped_storage._check_data()
        found = self._array()[index]
        return found.tolist() if isinstance(index, slice) else found.item()

    def __setitem__(self, index: int | slice, value: Any) -> None:
        self._untyped_storage._check_data()
        self._write(index, value)

    def __copy__(self) -> TypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict) -> TypedStorage:
        return self._of(self._untyped_storage.__deepcopy__(memo), self.dtype)

    def __reduce__(self) -> tuple:
        return (TypedStorage._of, (self._untyped_storage, self.dtype))

    def __repr__(self) -> str:
        rows = "..." if self.device.type == "meta" else "\n".join(f" {value}" for value in self.tolist())
        return f"{rows}\n[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {self.size()}]"


def _convert(array: np.ndarray | Sequence, kind: dtype) -> np.ndarray:
    array = np.asarray(array)
    return (array.real if array.dtype.kind == "c" and not kind.is_complex else array).astype(kind.numpy)


_CONVERSIONS = {
    "float": float32, "double": float64, "half": float16, "bfloat16": bfloat16, "long": int64, "int": int32, "short": int16,
    "char": int8, "byte": uint8, "bool": bool_, "complex_double": complex128, "complex_float": complex64,
    "float8_e4m3fn": float8_e4m3fn, "float8_e5m2": float8_e5m2, "float8_e4m3fnuz": float8_e4m3fnuz,
    "float8_e5m2fnuz": float8_e5m2fnuz,
}  # fmt: skip


def _define_conversion(name: str, kind: dtype) -> None:
    def of_typed(self: TypedStorage) -> TypedStorage:
        return self._to(kind)

    def of_bytes(self: UntypedStorage) -> TypedStorage:
        return TypedStorage(wrap_storage=self, dtype=uint8)._to(kind)

    for owner, method in ((TypedStorage, of_typed), (UntypedStorage, of_bytes)):
        method.__name__ = method.__qualname__ = name
        method.__doc__ = f"The elements as {kind}."
        setattr(owner, name, method)


for _name, _kind in _CONVERSIONS.items():
    _define_conversion(_name, _kind)


class _LegacyStorageType(type):
    """The metaclass of `FloatStorage` and its kin: every TypedStorage of that dtype counts as an instance."""

    _kind: dtype

    @property
    def dtype(cls) -> dtype:
        """Return the dtype of the elements."""
        return cls._kind

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, TypedStorage) and value.dtype is cls._kind

    def __call__(
        cls, *args: Any, wrap_storage: UntypedStorage | None = None, dtype: Any = None, device: Any = None
    ) -> TypedStorage:
        """Return a storage of this many elements, of a sequence of them, or over an untyped storage. Otherwise RuntimeError."""
        name = cls.__name__
        for given, option in ((dtype, "dtype"), (device, "device")):
            if given is not None:
                raise RuntimeError(f"{name}() received an invalid combination of arguments: '{option}' cannot be specified")
        if len(args) > 1:
            raise RuntimeError(f"{name}() received an invalid combination of arguments: Too many positional arguments")
        if args and wrap_storage is not None:
            raise RuntimeError(f"{name}() received an invalid combination of arguments: No positional arguments should be "
                               "given when using 'wrap_storage'")  # fmt: skip
        if args and not isinstance(args[0], int | Sequence | np.ndarray):
            raise TypeError(f"{name}() received an invalid combination of arguments: Argument type not recognized: "
                            f"{type(args[0])}")  # fmt: skip
        return TypedStorage(*args, wrap_storage=wrap_storage, dtype=cls._kind)

    def from_buffer(cls, buffer: object, byte_order: str = "native", **kwargs: Any) -> TypedStorage:
        """Return a storage of the bytes of a buffer, copied."""
        return TypedStorage.from_buffer(buffer, byte_order, dtype=cls._kind)

    def from_file(cls, filename: str | os.PathLike, shared: bool = False, size: int = 0) -> TypedStorage:
        """Return a storage over the first elements of a file; with `shared`, writes reach the file."""
        untyped = UntypedStorage.from_file(filename, shared, size * cls._kind.itemsize)
        return TypedStorage(wrap_storage=untyped, dtype=cls._kind)


def _define_class(kind: dtype) -> _LegacyStorageType:
    text = f"Storages of {kind}. Called with a number it makes one of so many elements, with a sequence one of these."
    return _LegacyStorageType(f"{kind.scalar_name}Storage", (), {"_kind": kind, "__doc__": text, "__module__": "rushlight"})


LEGACY_STORAGES = {f"{kind.scalar_name}Storage": _define_class(kind) for kind in (*ALL, *QUANTIZED_TYPES)}
