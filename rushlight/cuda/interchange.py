"""Device memory of other libraries, and for them, without a copy: DLPack and `__cuda_array_interface__`.

In: capsules and objects of other libraries; device tensors. Out: tensors over their memory; capsules and descriptions of ours.
Definitions: the DLPack specification, version 0.8 (its structs are `_Managed` and the ones inside); Numba's "CUDA Array
Interface", version 3. """

from __future__ import annotations

import ctypes
import itertools
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p, py_object

import numpy as np

from rushlight.core.device import device
from rushlight.core.dtype import (
    bfloat16,
    bool_,
    complex64,
    complex128,
    dtype,
    float16,
    float32,
    float64,
    from_numpy_dtype,
    int8,
    int16,
    int32,
    int64,
    uint8,
)
from rushlight.core.storage import StorageImpl
from rushlight.core.strides import contiguous_strides, storage_extent
from rushlight.core.tensor import Tensor
from rushlight.cuda import runtime, tensors

CUDA_KIND = 2  # DLPack's number of the kind of device
_NAME, _USED_NAME = b"dltensor", b"used_dltensor"
_INT, _UINT, _FLOAT, _BFLOAT, _COMPLEX, _BOOL = 0, 1, 2, 4, 5, 6
_CODES = {
    int8: (_INT, 8), int16: (_INT, 16), int32: (_INT, 32), int64: (_INT, 64), uint8: (_UINT, 8), float16: (_FLOAT, 16),
    float32: (_FLOAT, 32), float64: (_FLOAT, 64), bfloat16: (_BFLOAT, 16), complex64: (_COMPLEX, 64),
    complex128: (_COMPLEX, 128), bool_: (_BOOL, 8),
}  # fmt: skip
_KINDS = {code: kind for kind, code in _CODES.items()}


class _Array(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32), ("code", c_uint8),
        ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]  # fmt: skip


class _Managed(ctypes.Structure):
    pass


_Deleter = ctypes.CFUNCTYPE(None, POINTER(_Managed))
_Managed._fields_ = [("array", _Array), ("manager", c_void_p), ("deleter", _Deleter)]

_capsules = ctypes.pythonapi
_capsules.PyCapsule_New.restype, _capsules.PyCapsule_New.argtypes = py_object, (c_void_p, c_char_p, c_void_p)
_capsules.PyCapsule_GetPointer.restype, _capsules.PyCapsule_GetPointer.argtypes = c_void_p, (py_object, c_char_p)
_capsules.PyCapsule_IsValid.argtypes = (c_void_p, c_char_p)
_capsules.PyCapsule_SetName.argtypes = (py_object, c_char_p)
_exported: dict[int, tuple] = {}  # keeps exported memory alive until its consumer calls the deleter
_numbers = itertools.count(1)


@_Deleter
def _release(managed: object) -> None:
    _exported.pop(managed.contents.manager, None)


@ctypes.CFUNCTYPE(None, c_void_p)
def _destroy(capsule: int) -> None:
    """Release what an unused capsule holds."""
    if _capsules.PyCapsule_IsValid(capsule, _NAME):
        pointer = ctypes.cast(capsule, py_object).value
        managed = _Managed.from_address(_capsules.PyCapsule_GetPointer(pointer, _NAME))
        managed.deleter(ctypes.pointer(managed))


def to_capsule(tensor: Tensor, stream: int | None = None) -> object:
    """Return a DLPack capsule over a tensor. A consumer that names its stream finds the memory written there."""
    impl = tensor._impl
    if impl.dtype not in _CODES:
        raise BufferError(f"DLPack has no type for {impl.dtype}")
    _order(impl.device.index, stream)
    rank, (code, bits) = len(impl.sizes), _CODES[impl.dtype]
    sizes, strides = (c_int64 * max(rank, 1))(*impl.sizes), (c_int64 * max(rank, 1))(*impl.strides)
    number = next(_numbers)
    place = _Array(impl.data_ptr, CUDA_KIND, impl.device.index, rank, code, bits, 1, sizes, strides, 0)
    managed = _Managed(place, number, _release)
    _exported[number] = tensor, managed, sizes, strides
    return _capsules.PyCapsule_New(ctypes.addressof(managed), _NAME, ctypes.cast(_destroy, c_void_p))


def _order(index: int, stream: int | None) -> None:
    """Let a consumer's stream wait for the present work; -1 asks for no order, 1 and None are the default stream."""
    own, other = runtime.current_stream(index), 0 if stream in (None, 1, 2) else stream
    if stream == -1 or own == other:
        return
    found = runtime.device_at(index).driver
    event = found.create_event(False)
    found.record_event(event, own)
    found.stream_waits_for(other, event)
    found.destroy_event(event)


class _Foreign:
    """Owns another library's memory: the `buffer` of a storage over it."""

    def __init__(self, owner: object, data_ptr: int, nbytes: int):
        self.owner, self.data_ptr, self.nbytes = owner, data_ptr, nbytes


class _Consumed:
    """A capsule's content; its last reference releases it."""

    def __init__(self, managed: _Managed):
        self.managed = managed

    def __del__(self) -> None:
        if self.managed.deleter:
            self.managed.deleter(ctypes.pointer(self.managed))


def is_capsule_of_gpu(capsule: object) -> bool:
    """Return whether a DLPack capsule describes device memory."""
    if not _capsules.PyCapsule_IsValid(id(capsule), _NAME):
        return False
    return _Managed.from_address(_capsules.PyCapsule_GetPointer(capsule, _NAME)).array.device_type == CUDA_KIND


def from_capsule(capsule: object) -> Tensor:
    """Return a tensor over the memory that a capsule describes."""
    managed = _Managed.from_address(_capsules.PyCapsule_GetPointer(capsule, _NAME))
    _capsules.PyCapsule_SetName(capsule, _USED_NAME)
    array = managed.array
    kind = _KINDS.get((array.code, array.bits))
    if kind is None or array.lanes != 1:
        raise BufferError(f"DLPack: there is no dtype for code {array.code} of {array.bits} bits")
    sizes = tuple(array.shape[: array.ndim])
    strides = tuple(array.strides[: array.ndim]) if array.strides else contiguous_strides(sizes)
    return _over(_Consumed(managed), (array.data or 0) + array.byte_offset, sizes, strides, kind, array.device_id)


def _over(owner: object, address: int, sizes: tuple, strides: tuple, kind: dtype, index: int) -> Tensor:
    nbytes = storage_extent(sizes, strides, 0) * kind.itemsize
    storage = StorageImpl(_Foreign(owner, address, nbytes), nbytes, device("cuda", index), address)
    return tensors.over(storage, sizes, strides, 0, kind)


def array_interface(tensor: Tensor) -> dict:
    """Return `__cuda_array_interface__` of a device tensor; AttributeError where it has none."""
    impl = tensor._impl
    if impl.device.type != "cuda":
        raise AttributeError("Can't get __cuda_array_interface__ on non-CUDA tensor type: use tensor.cuda() first")
    if tensor.requires_grad:
        raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad. Use tensor.detach() first.")
    if impl.dtype not in _CODES or impl.dtype is bfloat16:
        raise AttributeError(f"__cuda_array_interface__ has no type for {impl.dtype}")
    itemsize = impl.dtype.itemsize
    return {
        "typestr": np.dtype(impl.dtype.numpy).str, "shape": impl.sizes, "version": 2,
        "strides": None if impl.is_contiguous() else tuple([stride * itemsize for stride in impl.strides]),
        "data": (impl.data_ptr if impl.numel else 0, False),
    }  # fmt: skip


def from_array_interface(source: object) -> Tensor:
    """Return a tensor over the memory that an object's `__cuda_array_interface__` describes."""
    facts = source.__cuda_array_interface__
    kind, sizes = from_numpy_dtype(np.dtype(facts["typestr"])), tuple(facts["shape"])
    strides = facts.get("strides")
    steps = contiguous_strides(sizes) if strides is None else tuple([stride // kind.itemsize for stride in strides])
    return _over(source, facts["data"][0], sizes, steps, kind, runtime.current_index())
