"""A launcher that checks each memory access of kernels: what devices punish and Triton's interpreter forgives.

The interpreter runs the programs of a launch one after the other, so that races between them give the right numbers there; and
it reads and writes wherever a pointer leads. Here an access outside of the memory of the launch's arguments is an error, and so
are two accesses to an element, one of them a store, that a device may run in any order: by different programs, or by different
lanes of one program without a barrier between them. Tiles are small, so that launches have several programs.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rushlight.core.storage import StorageImpl, allocate
from rushlight.core.tensor import Tensor
from rushlight.inductor.codegen.triton.program import TritonProgram
from rushlight.inductor.codegen.triton.wrapper import wrapper_text
from rushlight.inductor.graph import LoweredGraph
from rushlight.inductor.triton.interpreter import InterpreterLauncher, interpreting_triton

LOAD, STORE, ATOMIC, EXCHANGE = range(4)
_KINDS = ("loads", "stores", "atomically changes", "atomically compares and exchanges")
_GUARD = 4096  # bytes after each buffer that belong to no buffer
_STATUS_BYTES = 4
_TILES = {"XBLOCK": 8, "YBLOCK": 8, "ROWS": 16, "COLUMNS": 16, "DEPTH": 16}  # a product's are 16 at least


class KernelFault(RuntimeError):
    """A kernel reads or writes what it must not."""


def make_tiles_small(lowered: LoweredGraph, program: TritonProgram, launcher: object) -> None:
    """Give a program's launches small tiles, so that small tensors, too, take several programs, whose accesses can meet."""
    for launch in program.launches:
        constants = {name: min(size, _TILES.get(name, size)) for name, size in launch.choice.constants.items()}
        launch.choice = replace(launch.choice, constants=constants)
    program.wrapper_source = wrapper_text(lowered, program)


@dataclass
class Accesses:
    """The accesses of one launch; an array for each load, store or atomic operation of a program."""

    kind: list[np.ndarray] = field(default_factory=list)
    address: list[np.ndarray] = field(default_factory=list)
    nbytes: list[np.ndarray] = field(default_factory=list)
    program: list[np.ndarray] = field(default_factory=list)
    lane: list[np.ndarray] = field(default_factory=list)
    stretch: list[np.ndarray] = field(default_factory=list)  # how many barriers the program has passed
    order: list[np.ndarray] = field(default_factory=list)
    barriers: dict[int, int] = field(default_factory=dict)

    def add(self, kind: int, program: int, pointers: Any, mask: Any) -> None:
        """Take note of an operation: of its lanes where the mask is true."""
        addresses = pointers.data.reshape(-1)
        lanes = np.arange(addresses.size)
        if mask is not None:
            chosen = np.broadcast_to(mask.data, pointers.data.shape).reshape(-1).astype(bool)
            addresses, lanes = addresses[chosen], lanes[chosen]
        width = max(pointers.get_element_ty().primitive_bitwidth // 8, 1)
        facts = (kind, width, program, self.barriers.get(program, 0), len(self.kind))
        columns = (self.kind, self.nbytes, self.program, self.stretch, self.order)
        for column, fact in zip(columns, facts, strict=True):
            column.append(np.full(addresses.size, fact, dtype=np.int64))
        self.address.append(addresses.astype(np.int64))
        self.lane.append(lanes)

    def pass_barrier(self, program: int) -> None:
        """A program waits for all its lanes."""
        self.barriers[program] = self.barriers.get(program, 0) + 1

    def table(self) -> Table:
        """Return all accesses as columns."""
        columns = (self.kind, self.address, self.nbytes, self.program, self.lane, self.stretch, self.order)
        return Table(*(np.concatenate(column) if column else np.empty(0, dtype=np.int64) for column in columns))


@dataclass
class Table:
    """Accesses as columns of equal length."""

    kind: np.ndarray
    address: np.ndarray
    nbytes: np.ndarray
    program: np.ndarray
    lane: np.ndarray
    stretch: np.ndarray
    order: np.ndarray

    def rows(self, chosen: np.ndarray) -> Table:
        """Return some of the rows, in the order given."""
        columns = (self.kind, self.address, self.nbytes, self.program, self.lane, self.stretch, self.order)
        return Table(*(column[chosen] for column in columns))


_active: list[Accesses] = []  # the launches that run now and are checked, innermost last


@functools.cache
def _watched_builder() -> Any:
    """Make the interpreter's builder tell the active launch of each access; return the builder."""
    interpreter = interpreting_triton().runtime.interpreter
    builder = interpreter.InterpreterBuilder

    def watch(name: str, kind: int, pointers_at: int, mask_at: int | None) -> None:
        original = getattr(builder, name)

        def watched(self: Any, *args: Any) -> Any:
            if _active:
                mask = args[mask_at] if mask_at is not None else None
                _active[-1].add(kind, _number_of(self.grid_idx, self.grid_dim), args[pointers_at], mask)
            return original(self, *args)

        setattr(builder, name, watched)

    watch("create_masked_load", LOAD, 0, 1)
    watch("create_masked_store", STORE, 0, 2)
    watch("create_atomic_rmw", ATOMIC, 1, 3)
    watch("create_atomic_cas", EXCHANGE, 0, None)
    barrier = builder.create_barrier

    def watched_barrier(self: Any, *args: Any) -> Any:
        if _active:
            _active[-1].pass_barrier(_number_of(self.grid_idx, self.grid_dim))
        return barrier(self, *args)

    builder.create_barrier = watched_barrier
    return builder


def _number_of(place: Sequence[int], sizes: Sequence[int]) -> int:
    return (int(place[0]) * int(sizes[1]) + int(place[1])) * int(sizes[2]) + int(place[2])


@contextmanager
def _watching() -> Iterator[Accesses]:
    _watched_builder()
    _active.append(Accesses())
    try:
        yield _active[-1]
    finally:
        _active.pop()


class SanitizingLauncher(InterpreterLauncher):
    """Runs a program's kernels in Triton's interpreter; KernelFault for accesses that a device may punish."""

    def __init__(self, program: TritonProgram, name: str):
        super().__init__(program, name)
        self._names = {kernel: [name for name, _ in launch.parameters] for kernel, launch in program.kernels.items()}
        self._extents: dict[int, tuple[int, int]] = {}  # by the address that arguments start at or behind: begin, end

    def allocate(self, nbytes: int) -> StorageImpl:
        """Return CPU memory, before a stretch that belongs to nobody."""
        memory = allocate(nbytes + _GUARD)
        self._extents[memory.data_ptr] = (memory.data_ptr, memory.data_ptr + nbytes)
        return memory

    def address(self, tensor: Tensor) -> int:
        """Return the address of a CPU tensor's first element."""
        storage = tensor._impl.storage
        self._extents[storage.data_ptr] = (storage.data_ptr, storage.data_ptr + storage.nbytes)
        return super().address(tensor)

    def clear_status(self) -> int:
        """Return the address of the launcher's status."""
        self._status_address = address = super().clear_status()
        self._extents[address] = (address, address + _STATUS_BYTES)
        return address

    def launch(
        self, kernel: str, grid: tuple[int, ...], arguments: tuple[int, ...], constants: dict[str, int], *, warps: int,
        stages: int,
    ) -> None:  # fmt: skip
        """Run a kernel program by program, and check what it did."""
        with _watching() as accesses:
            super().launch(kernel, grid, arguments, constants, warps=warps, stages=stages)
        table = accesses.table()
        kinds = self._signatures[kernel]
        pointers = {
            name: value for name, value, kind in zip(self._names[kernel], arguments, kinds, strict=True) if kind[0] == "*"
        }
        check_bounds(kernel, table, pointers, [extent for value in pointers.values() for extent in self._around(value)])
        status = getattr(self, "_status_address", 0)  # all programs may write the same word there
        check_order(kernel, table.rows(table.address != status), pointers)

    def _around(self, address: int) -> list[tuple[int, int]]:
        """Return the extent of the buffer that an argument points into, if one is known."""
        return [extent for extent in self._extents.values() if extent[0] <= address <= extent[1]]


def check_bounds(kernel: str, table: Table, pointers: dict[str, int], extents: Sequence[tuple[int, int]]) -> None:
    """Raise KernelFault for an access outside of all extents."""
    inside = np.zeros(table.address.size, dtype=bool)
    for begin, end in set(extents):
        inside |= (table.address >= begin) & (table.address + table.nbytes <= end)
    if not inside.all():
        first = table.rows(np.flatnonzero(~inside)[:1])
        raise KernelFault(f"kernel {kernel} {_described(first, 0, pointers)}, outside of its arguments' memory")


def check_order(kernel: str, table: Table, pointers: dict[str, int]) -> None:
    """Raise KernelFault for two accesses to one element, one of them a store, whose order a device does not keep."""
    changed = np.unique(table.address[table.kind != LOAD])
    table = table.rows(np.isin(table.address, changed))
    table = table.rows(np.lexsort((table.order, table.program, table.address)))
    if table.address.size == 0:
        return
    starts = np.flatnonzero(np.r_[True, table.address[1:] != table.address[:-1]])
    ends = np.r_[starts[1:], table.address.size]
    varied = np.zeros(starts.size, dtype=bool)  # whether several programs, or several lanes, use the element
    for column in (table.program, table.lane):
        varied |= np.minimum.reduceat(column, starts) != np.maximum.reduceat(column, starts)
    for begin, end in zip(starts[varied], ends[varied], strict=True):
        found = _conflict(table, int(begin), int(end))
        if found is not None:
            first, second = (_described(table, place, pointers) for place in found[:2])
            raise KernelFault(f"kernel {kernel} {first} and {second}, {found[2]}")


def _conflict(table: Table, begin: int, end: int) -> tuple[int, int, str] | None:
    """Return two accesses of a stretch of rows, all to one element, that have no order, and why; None for none."""
    part = slice(begin, end)
    kinds, programs = table.kind[part], table.program[part]
    if not (kinds == STORE).any() and not ((kinds == LOAD).any() and (kinds == ATOMIC).any()):
        return None  # an exchange compares with what was loaded before
    if programs[0] != programs[-1]:
        change = int(np.flatnonzero(kinds != LOAD)[0])
        other = int(np.flatnonzero(programs != programs[change])[0])
        return begin + change, begin + other, "in different programs, which run in any order"
    for change in np.flatnonzero(kinds != LOAD):
        apart = (table.stretch[part] == table.stretch[begin + change]) & (table.lane[part] != table.lane[begin + change])
        apart &= (kinds == STORE) | (kinds[change] == STORE) | ((kinds == LOAD) & (kinds[change] == ATOMIC))
        if apart.any():
            other = int(np.flatnonzero(apart)[0])
            return begin + int(change), begin + other, "in different lanes, without a barrier between"
    return None


def _described(table: Table, row: int, pointers: dict[str, int]) -> str:
    address = int(table.address[row])
    name, base = min(pointers.items(), key=lambda pair: abs(address - pair[1])) if pointers else ("memory", 0)
    what = f"{_KINDS[int(table.kind[row])]} {int(table.nbytes[row])} bytes at {name} {address - base:+d}"
    return f"{what} (program {int(table.program[row])}, lane {int(table.lane[row])})"
