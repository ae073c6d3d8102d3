"""A built structured program as a Python callable: numbers, lists and tensors in and out, one native call."""

from __future__ import annotations

import array
import ctypes
import struct
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import rushlight._C as _C
from rushlight.core.tensor import Tensor
from rushlight.inductor.build import build
from rushlight.inductor.codegen.cpp.structured import StructuredWriter
from rushlight.inductor.external_calls import ExternalCalls, allocate_tensor
from rushlight.inductor.observed import enlist
from rushlight.inductor.structured import (
    BOOL,
    FLOAT,
    INT,
    Kind,
    ListOf,
    Scalar,
    StructuredProgram,
    TensorOf,
    contiguous_strides,
)

if TYPE_CHECKING:
    from rushlight.core.algebra import Var
    from rushlight.inductor.codegen.cpp.program import Program
    from rushlight.inductor.graph import LoweredGraph
    from rushlight.inductor.observed import Observer

_libc = ctypes.CDLL(None)
_libc.free.argtypes = [ctypes.c_void_p]
_CODES = {INT: "q", FLOAT: "d", BOOL: "b"}  # type codes of module array
_LENGTH, _SAME_BITS = struct.Struct("<q"), struct.Struct("<d")
_MAX_KEPT_ARENA = 1 << 20  # bytes; each thread keeps an arena of at most this size between calls


class Stopped(Exception):
    """The program gave up; its original must run instead."""


class _Frame:
    """The argument cells and the arena of one thread's calls; `busy` during a call."""

    __slots__ = ("arena", "busy", "cells", "pointers")

    def __init__(self, count: int, arena_bytes: int):
        self.cells = array.array("q", bytes(8 * count))
        self.arena = _C.allocate(arena_bytes)
        self.pointers = (self.cells.buffer_info()[0], self.arena.data_ptr)
        self.busy = False


class StructuredCall:
    """Calls a program. The caller ensures that tensors are contiguous and match the program's dtypes and sizes."""

    kind = "CompiledProgram"

    def __init__(self, program: StructuredProgram, debug: bool = False):
        self.program = program
        self.source = StructuredWriter(program).write()
        self.inputs = [var.kind for var in program.inputs]
        self.outputs = [operand.kind for operand in program.outputs]
        self.library = build(self.source, debug)
        self.number = -1  # set by `enlist`
        self._observer: Observer | None = None
        self._calls = ExternalCalls(program.calls) if program.calls else None
        self._count = len(self.inputs) + len(self.outputs) + 1
        self._pack = struct.Struct("<" + "".join(map(_struct_code, self.inputs))).pack_into
        self._unpack = struct.Struct("<" + "".join(map(_struct_code, self.outputs))).unpack_from
        first = len(self.inputs)
        self._addressed = [(position, kind) for position, kind in enumerate(self.inputs) if not isinstance(kind, Scalar)]
        self._rooms = [(position, kind) for position, kind in enumerate(self.outputs, first) if isinstance(kind, TensorOf)]
        self._converted = [(position, kind) for position, kind in enumerate(self.outputs) if kind not in (INT, FLOAT)]
        self._threads = threading.local()
        enlist(self)

    def parts(self) -> list[tuple[LoweredGraph, Program]]:
        """The regions, each as a lowered graph and its program."""
        return [(region.lowered, region.program) for region in self.program.regions]

    def allocated_by(self, sizes: Mapping[Var, int]) -> int:
        """Return the bytes that one call allocates: results, and an arena that is too large to be kept between calls."""
        results = sum(kind.numel * kind.dtype.itemsize for _, kind in self._rooms)
        return results + (self.library.arena_bytes if self.library.arena_bytes > _MAX_KEPT_ARENA else 0)

    def timed_source(self) -> str:
        """The text of a variant that measures its kernels."""
        return StructuredWriter(self.program, is_timed=True).write()

    def divert(self, observer: Observer | None) -> None:
        """Make an observer measure all calls; None stops that."""
        self._observer = observer

    def __call__(self, *values: object) -> list:
        """Run the program. Stopped if it gave up."""
        frame = getattr(self._threads, "frame", None)
        if frame is None or frame.busy:
            frame = self._new_frame()
        frame.busy = True
        try:
            return self._run(frame, values)
        finally:
            frame.busy = False

    def _new_frame(self) -> _Frame:
        made = _Frame(self._count, self.library.arena_bytes)
        if self.library.arena_bytes <= _MAX_KEPT_ARENA:
            self._threads.frame = made
        return made

    def _run(self, frame: _Frame, values: Sequence[object]) -> list:
        cells, kept = frame.cells, []
        if self._addressed:
            values = list(values)
            for position, kind in self._addressed:
                value = values[position]
                values[position] = value._impl.data_ptr if type(kind) is TensorOf else _write_list(value, kind, kept)
        try:
            self._pack(cells, 0, *values)
        except struct.error:  # raised by `pack` if an int does not fit 64 bits
            raise Stopped from None
        rooms = []
        for position, kind in self._rooms:
            made = allocate_tensor(kind, contiguous_strides(kind.size))
            rooms.append(made)
            cells[position] = made._impl.data_ptr
        if self._calls is not None:
            cells[-1] = self._calls.address
        observer = self._observer
        failed = _C.launch(self.library.entry if observer is None else observer.entry_for(self), frame.pointers)
        if observer is not None:
            observer.ran(self, {})
        if failed:
            raise Stopped
        found = list(self._unpack(cells, 8 * len(self.inputs)))
        if self._converted:
            made = iter(rooms)
            for position, kind in self._converted:
                found[position] = next(made) if type(kind) is TensorOf else _read_cell(found[position], kind)
        return found


def _struct_code(kind: Kind) -> str:
    """Return the struct code of a cell."""
    return "d" if kind is FLOAT else "q"


def _write_list(values: Sequence, kind: ListOf, kept: list) -> int:
    """Return the address of a list's length and elements. Their memory is added to `kept`, to keep it alive."""
    element = kind.element
    if isinstance(element, Scalar):
        return _write_numbers(values, element, kept)
    if isinstance(element, TensorOf):
        rows = [value if value._impl.is_contiguous() else value.contiguous() for value in values]
        kept.append(rows)
        addresses = [row._impl.data_ptr for row in rows]
    else:
        addresses = [_write_list(value, element, kept) for value in values]
    held = array.array("q", [len(values), *addresses])
    kept.append(held)
    return held.buffer_info()[0]


def _write_numbers(values: Sequence, element: Scalar, kept: list) -> int:
    try:
        if element is BOOL:
            held = array.array("b", _LENGTH.pack(len(values)) + bytes(values))
        elif element is INT:
            held = array.array("q", [len(values), *values])
        else:
            held = array.array("d", [*_SAME_BITS.unpack(_LENGTH.pack(len(values))), *values])
    except OverflowError:
        raise Stopped from None
    kept.append(held)
    return held.buffer_info()[0]


def _read_cell(cell: int, kind: Scalar | ListOf) -> object:
    if isinstance(kind, ListOf):
        return _read_list(cell, kind) if cell else None
    return cell != 0


def _read_list(address: int, kind: ListOf) -> list:
    """Read the list at an address and free its memory."""
    try:
        count = ctypes.c_int64.from_address(address).value
        element = kind.element
        if isinstance(element, TensorOf):
            return _read_tensors(address + 8, count, element)
        if isinstance(element, ListOf):
            cells = array.array("q", ctypes.string_at(address + 8, count * 8))
            return [_read_list(cell, element) for cell in cells]
        found = array.array(_CODES[element], ctypes.string_at(address + 8, count * (1 if element is BOOL else 8)))
        return list(map(bool, found)) if element is BOOL else found.tolist()
    finally:
        _libc.free(address)


def _read_tensors(address: int, count: int, kind: TensorOf) -> list[Tensor]:
    """Copy consecutive tensors, each to its own memory."""
    strides, nbytes = contiguous_strides(kind.size), kind.nbytes
    made = []
    for position in range(address, address + count * nbytes, nbytes) if nbytes else [address] * count:
        tensor = allocate_tensor(kind, strides)
        ctypes.memmove(tensor._impl.data_ptr, position, nbytes)
        made.append(tensor)
    return made
