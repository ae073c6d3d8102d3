"""A built structured program as a Python callable: numbers, lists and tensors in, the same out, one native call."""

from __future__ import annotations

import array
import ctypes
from collections.abc import Sequence

import rushlight._C as _C
from rushlight.core.device import CPU
from rushlight.core.dispatch_key import CPU_KEYS
from rushlight.core.storage import allocate
from rushlight.core.tensor import Tensor, wrap
from rushlight.core.tensor_impl import TensorImpl
from rushlight.core.thread_state import state
from rushlight.inductor.build import build
from rushlight.inductor.codegen.structured import StructuredWriter
from rushlight.inductor.structured import (
    BOOL,
    FLOAT,
    INT,
    ListOf,
    Scalar,
    StructuredProgram,
    TensorOf,
    contiguous_strides,
)

_libc = ctypes.CDLL(None)
_libc.free.argtypes = [ctypes.c_void_p]
_CODES = {INT: "q", FLOAT: "d", BOOL: "b"}  # of elements, as module array names them


class Stopped(Exception):
    """The program gave up; what it was made of has to run instead."""


class StructuredCall:
    """Calls a program. Tensors must be contiguous and of the program's dtypes and sizes; nobody looks at that here."""

    def __init__(self, program: StructuredProgram, debug: bool = False):
        self.source = StructuredWriter(program).write()
        self.inputs = [var.kind for var in program.inputs]
        self.outputs = [operand.kind for operand in program.outputs]
        self.written = [program.inputs.index(var) for var, _ in program.written]
        library = build(self.source, debug)
        self._entry, self._arena_bytes = library.entry, library.arena_bytes
        self._kept_library = library
        count = max(1, len(self.inputs) + len(self.outputs))
        self._cells, self._floats = ctypes.c_int64 * count, ctypes.c_double * count

    def __call__(self, *values: object) -> list:
        """The outputs for inputs; None for a tensor that is not there. Stopped where the program gave up."""
        cells = self._cells()
        address = ctypes.addressof(cells)
        floats = self._floats.from_address(address)
        kept: list[object] = []
        position = 0
        for value, kind in zip(values, self.inputs, strict=True):
            if kind is FLOAT:
                floats[position] = value
            elif isinstance(kind, TensorOf):
                cells[position] = value._impl.data_ptr
            elif isinstance(kind, ListOf):
                cells[position] = _list_into_cell(value, kind, kept)
            elif -(1 << 63) <= value < 1 << 63:
                cells[position] = value
            else:
                raise Stopped
            position += 1
        made = [_room(kind) if isinstance(kind, TensorOf) else None for kind in self.outputs]
        for room in made:
            if room is not None:
                cells[position] = room._impl.data_ptr
            position += 1
        arena = _C.allocate(self._arena_bytes)
        if _C.launch(self._entry, (address, arena.data_ptr)):
            raise Stopped
        first = len(self.inputs)
        return [
            room if room is not None else floats[index] if kind is FLOAT else _from_cell(cells[index], kind)
            for index, (room, kind) in enumerate(zip(made, self.outputs, strict=True), first)
        ]


def _room(kind: TensorOf) -> Tensor:
    """Memory for a tensor."""
    strides = contiguous_strides(kind.size)
    impl = TensorImpl(allocate(kind.nbytes), kind.size, strides, 0, kind.dtype, CPU, CPU_KEYS)
    impl.inference = state.inference
    return wrap(impl)


def _list_into_cell(values: Sequence, kind: ListOf, kept: list) -> int:
    """The address of a list's length and elements; what they lie in is added to `kept`."""
    element = kind.element
    if isinstance(element, Scalar):
        return _numbers_into_cell(values, element, kept)
    if isinstance(element, TensorOf):
        addresses = [value._impl.data_ptr for value in values]
    else:
        addresses = [_list_into_cell(value, element, kept) for value in values]
    held = array.array("q", [len(values), *addresses])
    kept.append(held)
    return held.buffer_info()[0]


def _numbers_into_cell(values: Sequence, element: Scalar, kept: list) -> int:
    try:
        if element is INT:
            held = array.array("q", [len(values), *values])
        else:
            data = array.array(_CODES[element], values).tobytes()
            held = array.array("b", array.array("q", (len(values),)).tobytes() + data)
    except OverflowError:
        raise Stopped from None
    kept.append(held)
    return held.buffer_info()[0]


def _from_cell(cell: int, kind: Scalar | ListOf) -> object:
    if isinstance(kind, ListOf):
        return _list_from(cell, kind) if cell else None
    return cell != 0 if kind is BOOL else cell


def _list_from(address: int, kind: ListOf) -> list:
    """The list at an address, whose memory is given back."""
    try:
        count = ctypes.c_int64.from_address(address).value
        element = kind.element
        if isinstance(element, TensorOf):
            return [_tensor_from(address + 8 + index * element.nbytes, element) for index in range(count)]
        if isinstance(element, ListOf):
            cells = array.array("q", ctypes.string_at(address + 8, count * 8))
            return [_list_from(cell, element) for cell in cells]
        found = array.array(_CODES[element], ctypes.string_at(address + 8, count * (1 if element is BOOL else 8)))
        return list(map(bool, found)) if element is BOOL else found.tolist()
    finally:
        _libc.free(address)


def _tensor_from(address: int, kind: TensorOf) -> Tensor:
    made = _room(kind)
    ctypes.memmove(made._impl.data_ptr, address, kind.nbytes)
    return made
