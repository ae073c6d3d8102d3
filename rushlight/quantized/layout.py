"""The layout of quantized tensors: integers in a storage that also holds their quantizer.

It is a `Tensor` with the dispatch key QuantizedCPU: operators without a kernel for that key reject it. Views share the storage,
and so the quantizer. Elements of less than a byte take a byte each.
"""

from __future__ import annotations

import numpy as np

from rushlight.core.device import CPU
from rushlight.core.dispatch_key import CPU_KEYS, DispatchKey, bit
from rushlight.core.dtype import dtype, from_numpy_dtype
from rushlight.core.layout import channels_last
from rushlight.core.storage import StorageImpl, UntypedStorage
from rushlight.core.strides import contiguous_strides
from rushlight.core.tensor import Tensor, wrap
from rushlight.core.tensor_impl import TensorImpl
from rushlight.quantized.loading import ensure_operators
from rushlight.quantized.native import is_channels_last
from rushlight.quantized.quantizer import Quantizer, TensorQuantizer

QUANTIZED_BIT = bit(DispatchKey.QuantizedCPU)


class QuantizedStorage(StorageImpl):
    """The storage of quantized tensors."""

    __slots__ = ("quantizer",)

    def __init__(self, buffer: object, nbytes: int, quantizer: Quantizer):
        super().__init__(buffer, nbytes, CPU)
        self.quantizer = quantizer

    def reduced(self, tensor: Tensor) -> tuple:
        """Return the pickle recipe of a tensor over this storage."""
        return (_unpickled, (np.array(tensor._impl.array), tensor._impl.dtype, self.quantizer))

    def copied(self) -> QuantizedStorage:
        """Return a copy of the memory with the same quantizer."""
        memory = UntypedStorage.from_buffer(self.bytes())._impl
        return QuantizedStorage(memory.buffer, memory.nbytes, self.quantizer)


def _unpickled(integers: np.ndarray, kind: dtype, quantizer: Quantizer) -> Tensor:
    """Rebuild a pickled tensor. Pickles refer to this function by name."""
    ensure_operators()
    return make_quantized(integers, kind, quantizer)


def make_quantized(integers: np.ndarray, kind: dtype, quantizer: Quantizer) -> Tensor:
    """Return a quantized tensor over an array of `kind.numpy`. It shares the array if that is row-major or channels-last, else
    copies it."""
    memory = integers.transpose(0, 2, 3, 1) if is_channels_last(integers) else integers
    if not memory.flags.c_contiguous:
        memory = integers = np.ascontiguousarray(integers)
    storage = QuantizedStorage(memory, memory.nbytes, quantizer)
    strides = tuple(stride // kind.itemsize for stride in integers.strides)
    if not integers.size:  # NumPy's strides are 0
        strides = contiguous_strides(integers.shape)
    return wrap(TensorImpl(storage, integers.shape, strides, 0, kind, CPU, QUANTIZED_BIT))


def per_tensor(integers: np.ndarray, kind: dtype, scale: float, zero_point: int) -> Tensor:
    """Return a quantized tensor of one scale and zero point over an array."""
    return make_quantized(integers, kind, TensorQuantizer(float(scale), int(zero_point)))


def integers_of(tensor: Tensor) -> Tensor:
    """Return the integers of a quantized tensor, as a plain tensor over the same memory."""
    impl = tensor._impl
    kind = from_numpy_dtype(impl.dtype.numpy)
    return wrap(TensorImpl(impl.storage, impl.sizes, impl.strides, impl.storage_offset, kind, CPU, CPU_KEYS))


def in_one_order(integers: Tensor) -> Tensor:
    """Return integers row-major, unless they are channels-last: the orders that new quantized tensors have."""
    is_ordered = integers.is_contiguous() or (integers.dim() == 4 and integers.is_contiguous(memory_format=channels_last))
    return integers if is_ordered else integers.contiguous()


def of_integers(integers: Tensor, kind: dtype, quantizer: Quantizer) -> Tensor:
    """Return a quantized tensor over the memory of a plain tensor of integers."""
    impl = integers._impl
    storage = QuantizedStorage(impl.storage.buffer, impl.storage.nbytes, quantizer)
    return wrap(TensorImpl(storage, impl.sizes, impl.strides, impl.storage_offset, kind, CPU, QUANTIZED_BIT))


def is_quantized(tensor: Tensor) -> bool:
    """Return whether a tensor is quantized."""
    return bool(tensor._impl.key_set & QUANTIZED_BIT)


def quantizer_of(tensor: Tensor) -> Quantizer:
    """Return the quantizer of a quantized tensor."""
    return tensor._impl.storage.quantizer


def one_scale(tensor: Tensor) -> TensorQuantizer:
    """Return the quantizer of a tensor with one scale; RuntimeError for one with a scale per channel."""
    found = quantizer_of(tensor)
    if not isinstance(found, TensorQuantizer):
        raise RuntimeError(
            "Expected quantizer->qscheme() == kPerTensorAffine to be true, but got false: the tensor is quantized by "
            f"{found.scheme}, and one scale for all elements is needed"
        )
    return found


def like(source: Tensor, integers: np.ndarray) -> Tensor:
    """Return a tensor with other integers, and the dtype and quantizer of `source`."""
    return make_quantized(integers, source._impl.dtype, quantizer_of(source))
