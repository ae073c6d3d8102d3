"""Read and write quantized tensors in checkpoints and archives: `torch._utils._rebuild_qtensor`.

In: a storage, a geometry, and a scheme with its scales and zero points. Out: a quantized tensor, after every claim was checked;
and the arguments for writing one. In files, 4-bit and 2-bit elements are packed into bytes, the first one lowest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from rushlight.core.device import CPU
from rushlight.core.dtype import FLOATING, QUANTIZED_TYPES, dtype, from_numpy_dtype, quint2x4, quint4x2
from rushlight.core.qscheme import per_channel_affine, per_channel_affine_float_qparams, per_tensor_affine, qscheme
from rushlight.core.storage import StorageImpl, UntypedStorage
from rushlight.core.tensor import Tensor, tensor_from_array
from rushlight.core.typed_storage import TypedStorage
from rushlight.quantized.layout import is_quantized, make_quantized, of_integers, quantizer_of
from rushlight.quantized.loading import ensure_operators
from rushlight.quantized.quantizer import ChannelQuantizer, Quantizer, TensorQuantizer
from rushlight.serialization.errors import PicklingError, UnpicklingError
from rushlight.serialization.rebuild import check_geometry, make_tensor

_BITS = {quint4x2: 4, quint2x4: 2}
_ZERO_POINT_LIMIT = 1 << 31


def rebuild_quantized(storage: TypedStorage | UntypedStorage, offset: Any, sizes: Any, strides: Any, settings: Any) -> Tensor:
    """Return the tensor of a file's claims; UnpicklingError where they don't fit one another."""
    if not isinstance(storage, TypedStorage) or storage.dtype not in QUANTIZED_TYPES:
        raise UnpicklingError("a quantized tensor is made of a storage without a quantized dtype")
    if storage.device.type != "cpu":
        raise UnpicklingError(f"quantized tensors live on the CPU only, not on {storage.device}")
    kind = storage.dtype
    if kind in _BITS:
        integers = _unpack_elements(storage.untyped(), kind, offset, sizes, strides)
        quantizer = _quantizer(settings, sizes)
        ensure_operators()
        return make_quantized(integers, kind, quantizer)
    plain = make_tensor(storage.untyped(), from_numpy_dtype(kind.numpy), offset, sizes, strides)
    quantizer = _quantizer(settings, sizes)
    ensure_operators()
    return of_integers(plain, kind, quantizer)


def _unpack_elements(storage: UntypedStorage, kind: dtype, offset: Any, sizes: Any, strides: Any) -> np.ndarray:
    per_byte = 8 // _BITS[kind]
    check_geometry(storage.nbytes() * per_byte, kind, offset, sizes, strides)
    count = math.prod(sizes)
    if offset != 0 or -(-count // per_byte) > storage.nbytes():
        raise UnpicklingError(f"a {kind} tensor of size {list(sizes)} does not begin and end where its storage does")
    shifts = np.arange(per_byte, dtype=np.uint8) * np.uint8(_BITS[kind])
    elements = storage.numpy()[:, None] >> shifts & np.uint8((1 << _BITS[kind]) - 1)
    return elements.reshape(-1)[:count].reshape(tuple(sizes)).copy()


def _quantizer(settings: Any, sizes: Any) -> Quantizer:
    if not isinstance(settings, tuple) or not settings or not isinstance(settings[0], qscheme):
        raise UnpicklingError("a quantized tensor has no scheme")
    scheme, *rest = settings
    if scheme is per_tensor_affine and [type(each) for each in rest] == [float, int]:
        if abs(rest[1]) >= _ZERO_POINT_LIMIT:
            raise UnpicklingError(f"a quantized tensor has the zero point {rest[1]}, which no dtype holds")
        return TensorQuantizer(*rest)
    if scheme in (per_channel_affine, per_channel_affine_float_qparams) and len(rest) == 3:
        return _channel_quantizer(*rest, sizes)
    raise UnpicklingError(f"a quantized tensor of scheme {scheme} has settings of an unknown form")


def _channel_quantizer(scales: Any, zero_points: Any, axis: Any, sizes: Any) -> Quantizer:
    for each in (scales, zero_points):
        if not isinstance(each, Tensor) or is_quantized(each) or each.device != CPU or each.dim() != 1:
            raise UnpicklingError("the scales and zero points of a quantized tensor must be tensors of one dimension")
    if type(axis) is not int or not 0 <= axis < len(sizes) or len({len(scales), len(zero_points), sizes[axis]}) != 1:
        raise UnpicklingError(f"a quantized tensor of size {list(sizes)} has {len(scales)} scales along dimension {axis}")
    if scales.dtype.category != FLOATING or zero_points.dtype.is_complex:
        raise UnpicklingError("the scales of a quantized tensor must be floating-point numbers")
    is_floating = zero_points.dtype.category == FLOATING
    kinds = (np.float32, np.float32) if is_floating else (np.float64, np.int64)
    arrays = [each.detach()._impl.array.astype(kind) for each, kind in zip((scales, zero_points), kinds, strict=True)]
    return ChannelQuantizer(*arrays, axis)


# Writing


class Writer(Protocol):
    """The part of a pickler's interface that is needed here."""

    def write_global(self, module: str, name: str) -> None:
        """Write a global."""

    def write_tuple(self, values: tuple) -> None:
        """Write a tuple; elements that are functions write themselves."""

    def write_ordered_dict(self) -> None:
        """Write an empty OrderedDict."""


def quantized_arguments(tensor: Tensor, machine: Writer, write_storage: Callable[[UntypedStorage, dtype], None]) -> tuple:
    """Return the arguments of `_rebuild_qtensor`: values, and functions that write some."""
    if not is_quantized(tensor):
        raise PicklingError(f"a tensor of dtype {tensor.dtype} has no scale, so it can't be saved")
    quantizer = quantizer_of(tensor)
    if isinstance(quantizer, TensorQuantizer):
        numbers = (quantizer.scale, quantizer.zero_point)
    else:
        numbers = (tensor_from_array(quantizer.scales), tensor_from_array(quantizer.zero_points), quantizer.axis)
    settings = (lambda: machine.write_global("torch", quantizer.scheme.name), *numbers)
    storage, offset, strides = _written_form(tensor)
    geometry = (offset, tuple(tensor.shape), strides)
    written = (lambda: machine.write_tuple(settings), False, machine.write_ordered_dict)
    return (lambda: write_storage(storage, tensor.dtype), *geometry, *written)


def _written_form(tensor: Tensor) -> tuple[UntypedStorage, int, tuple[int, ...]]:
    """Return storage, offset and strides, with sub-byte elements packed."""
    kind = tensor.dtype
    if kind not in _BITS:
        return tensor.untyped_storage(), tensor.storage_offset(), tuple(tensor.stride())
    dense = tensor.contiguous()
    per_byte = 8 // _BITS[kind]
    flat = dense._impl.array.reshape(-1)
    padded = np.zeros((-(-flat.size // per_byte), per_byte), np.uint8)
    padded.reshape(-1)[: flat.size] = flat
    shifts = np.arange(per_byte, dtype=np.uint8) * np.uint8(_BITS[kind])
    packed = np.bitwise_or.reduce(padded << shifts, axis=1).astype(np.uint8)
    return UntypedStorage(StorageImpl(packed, packed.nbytes, CPU)), 0, tuple(dense.stride())
