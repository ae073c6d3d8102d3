"""Calls of Python functions from structured programs: for operators without native code inside native loops.

In: the functions, and the types of their arguments and results. Out: an address that a program calls with a function's number
and an array of slots: tensor addresses and numbers, then addresses for the results. An error stops the program.
"""

from __future__ import annotations

import array
import ctypes
import struct
from collections.abc import Sequence

from rushlight.core.device import CPU
from rushlight.core.dispatch_key import CPU_KEYS
from rushlight.core.storage import allocate
from rushlight.core.tensor import Tensor, wrap
from rushlight.core.tensor_impl import TensorImpl
from rushlight.core.thread_state import state
from rushlight.inductor.structured import BOOL, FLOAT, External, TensorOf, contiguous_strides

_SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64, ctypes.c_void_p)


class ExternalCalls:
    """The functions of one program; it calls `address`."""

    def __init__(self, calls: Sequence[External]):
        self._calls = calls
        self._formats = [struct.Struct("<" + "".join("d" if kind is FLOAT else "q" for kind in each.inputs)) for each in calls]
        self._entry = _SIGNATURE(self._call)
        self.address = ctypes.cast(self._entry, ctypes.c_void_p).value

    def _call(self, number: int, slots: int) -> int:
        try:
            self._run(number, slots)
        except BaseException:  # the original program, which runs next, will raise the same error
            return 1
        return 0

    def _run(self, number: int, slots: int) -> None:
        call, packed = self._calls[number], self._formats[number]
        count = len(call.inputs) + len(call.outputs)
        data = ctypes.string_at(slots, 8 * count)
        given = packed.unpack_from(data)
        values = [_read_argument(value, kind) for value, kind in zip(given, call.inputs, strict=True)]
        addresses = array.array("q", data[8 * len(call.inputs) :])
        for result, kind, address in zip(call.function(*values), call.outputs, addresses, strict=True):
            impl = result._impl
            if impl.dtype is not kind.dtype or tuple(impl.sizes) != kind.size:
                raise ValueError("a result of another dtype or size than was expected")
            if not impl.is_contiguous():
                impl = result.contiguous()._impl
            ctypes.memmove(address, impl.data_ptr, kind.nbytes)


def _read_argument(value: object, kind: object) -> object:
    """Return a number, or a tensor copied from an address."""
    if not isinstance(kind, TensorOf):
        return value != 0 if kind is BOOL else value
    tensor = allocate_tensor(kind, contiguous_strides(kind.size))
    ctypes.memmove(tensor._impl.data_ptr, value, kind.nbytes)
    return tensor


def allocate_tensor(kind: TensorOf, strides: tuple[int, ...]) -> Tensor:
    """Allocate a tensor."""
    impl = TensorImpl(allocate(kind.nbytes), kind.size, strides, 0, kind.dtype, CPU, CPU_KEYS)
    impl.inference = state.inference
    return wrap(impl)
