"""A built structured program as a Python callable: numbers, lists and tensors in, the same out, one native call."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence

import numpy as np

import rushlight._C as _C
from rushlight.core.device import CPU
from rushlight.core.dispatch_key import CPU_KEYS
from rushlight.core.storage import allocate
from rushlight.core.tensor import Tensor, wrap
from rushlight.core.tensor_impl import TensorImpl
from rushlight.core.thread_state import state
from rushlight.inductor.build import build
from rushlight.inductor.codegen.structured import StructuredWriter
from rushlight.inductor.structured import BOOL, FLOAT, INT, Kind, ListOf, StructuredProgram, TensorOf

_libc = ctypes.CDLL(None)
_libc.free.argtypes = [ctypes.c_void_p]
_PACK = struct.Struct("<d")
_CELL = struct.Struct("<q")
_TYPES = {INT: np.int64, FLOAT: np.float64, BOOL: np.bool_}


class Stopped(Exception):
    """The program gave up; what it was made of has to run instead."""


class StructuredCall:
    """Calls a program. Tensors must be contiguous and of the program's dtypes and sizes; nobody looks at that here."""

    def __init__(self, program: StructuredProgram, debug: bool = False):
        self.source = StructuredWriter(program).write()
        self.inputs = [var.kind for var in program.inputs]
        self.outputs = [operand.kind for operand in program.outputs]
        self._library = build(self.source, debug)
        self._cells = ctypes.c_int64 * max(1, len(self.inputs) + len(self.outputs))

    def __call__(self, *values: object) -> list:
        """The outputs for inputs. Stopped where the program gave up."""
        cells = self._cells()
        kept: list[object] = []
        for position, (value, kind) in enumerate(zip(values, self.inputs, strict=True)):
            cells[position] = _into_cell(value, kind, kept)
        first = len(self.inputs)
        made = [_room(kind) for kind in self.outputs]
        for position, room in enumerate(made):
            if room is not None:
                cells[first + position] = room._impl.data_ptr
        arena = _C.allocate(self._library.arena_bytes)
        if _C.launch(self._library.entry, (ctypes.addressof(cells), arena.data_ptr)):
            raise Stopped
        return [
            room if room is not None else _from_cell(cells[first + position], kind)
            for position, (room, kind) in enumerate(zip(made, self.outputs, strict=True))
        ]


def _room(kind: Kind) -> Tensor | None:
    """Memory for an output that is a tensor."""
    if not isinstance(kind, TensorOf):
        return None
    strides, step = [], 1
    for size in reversed(kind.size):
        strides.append(step)
        step *= max(size, 1)
    impl = TensorImpl(allocate(kind.nbytes), kind.size, tuple(reversed(strides)), 0, kind.dtype, CPU, CPU_KEYS)
    impl.inference = state.inference
    return wrap(impl)


def _into_cell(value: object, kind: Kind, kept: list) -> int:
    if isinstance(kind, TensorOf):
        return value._impl.data_ptr
    if isinstance(kind, ListOf):
        return _list_into_cell(value, kind, kept)
    if kind == FLOAT:
        return _CELL.unpack(_PACK.pack(value))[0]
    if not -(1 << 63) <= value < 1 << 63:
        raise Stopped
    return int(value)


def _list_into_cell(values: Sequence, kind: ListOf, kept: list) -> int:
    if isinstance(kind.element, TensorOf):
        data = b"".join(bytes(value._impl.array.reshape(-1).view(np.uint8)) for value in values)
    else:
        data = _bytes_of_numbers(values, _TYPES[kind.element])
    held = ctypes.create_string_buffer(_CELL.pack(len(values)) + data, 8 + max(len(data), 1))
    kept.append(held)
    return ctypes.addressof(held)


def _bytes_of_numbers(values: Sequence, kind: type) -> bytes:
    try:
        return np.asarray(values, kind).tobytes()
    except OverflowError:
        raise Stopped from None


def _from_cell(cell: int, kind: Kind) -> object:
    if isinstance(kind, ListOf):
        try:
            return _list_from(cell, kind)
        finally:
            _libc.free(cell)
    if kind == FLOAT:
        return _PACK.unpack(_CELL.pack(cell))[0]
    return bool(cell) if kind == BOOL else cell


def _list_from(address: int, kind: ListOf) -> list:
    count = ctypes.c_int64.from_address(address).value
    element = kind.element
    width = element.nbytes if isinstance(element, TensorOf) else np.dtype(_TYPES[element]).itemsize
    data = ctypes.string_at(address + 8, count * width)
    if not isinstance(element, TensorOf):
        return np.frombuffer(data, _TYPES[element]).tolist()
    made = []
    for index in range(count):
        tensor = _room(element)
        ctypes.memmove(tensor._impl.data_ptr, data[index * width : (index + 1) * width], width)
        made.append(tensor)
    return made


