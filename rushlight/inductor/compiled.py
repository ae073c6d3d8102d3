"""A built program as a Python callable: checks, pointers, outputs, one native call."""

from __future__ import annotations

import threading

import rushlight._C as _C
from rushlight.core.device import CPU
from rushlight.core.dispatch_key import CPU_KEYS
from rushlight.core.storage import StorageImpl, allocate
from rushlight.core.tensor import Tensor, wrap
from rushlight.core.tensor_impl import TensorImpl
from rushlight.core.thread_state import state
from rushlight.inductor.build import Library
from rushlight.inductor.codegen.program import Program
from rushlight.inductor.graph import LoweredGraph

TILE_COLUMNS = 64  # upper bound of the padding of a packed matrix's columns


class CompiledGraph:
    """Runs a program. Constants are packed at the first call and again when they were written to since."""

    def __init__(self, lowered: LoweredGraph, program: Program, library: Library, constants: dict[str, Tensor]):
        self.program = program
        self.library = library
        self.inputs = lowered.inputs
        self.outputs = lowered.outputs
        self.constants = [constants[buffer.target] for buffer in program.constants]
        self._by_name = {buffer.name: tensor for buffer, tensor in zip(program.constants, self.constants, strict=True)}
        self._expected = [(buffer.layout.size, buffer.layout.stride, buffer.layout.dtype) for buffer in self.inputs]
        self._output_bytes = self._sizes_of_outputs(lowered)
        self._dtypes = {buffer.name: buffer.layout.dtype for buffer in lowered.buffers}
        self._packed: list[StorageImpl] = []
        self._state: tuple | None = None
        self._constant_pointers: list[int] = []
        self._lock = threading.Lock()

    def _sizes_of_outputs(self, lowered: LoweredGraph) -> dict[str, int]:
        layouts = {buffer.name: buffer.layout for buffer in lowered.buffers}
        return {name: layouts[name].numel * layouts[name].dtype.itemsize for name in self.program.outputs}

    def __call__(self, *tensors: Tensor) -> tuple:
        """The flat outputs for inputs of the compiled sizes, strides and dtypes; RuntimeError for any others."""
        self._check(tensors)
        constants = self._prepared()
        made = {name: allocate(nbytes) for name, nbytes in self._output_bytes.items()}
        arena = _C.allocate(self.library.arena_bytes)
        pointers = [tensor._impl.data_ptr for tensor in tensors]
        pointers += constants
        pointers += [storage.data_ptr for storage in made.values()]
        pointers.append(arena.data_ptr)
        if _C.launch(self.library.entry, pointers):
            raise IndexError("index out of range in self")
        return tuple(self._output(view, made, tensors) for view in self.outputs)

    def _check(self, tensors: tuple[Tensor, ...]) -> None:
        if len(tensors) != len(self._expected):
            raise RuntimeError(f"the compiled graph takes {len(self._expected)} tensors, got {len(tensors)}")
        for position, (tensor, expected) in enumerate(zip(tensors, self._expected, strict=True)):
            impl = tensor._impl
            if (impl.sizes, impl.strides, impl.dtype) != expected or impl.storage.buffer is None:
                size, stride, kind = expected
                raise RuntimeError(
                    f"input {position} of the compiled graph must be a {kind} CPU tensor of size {list(size)} and stride "
                    f"{list(stride)}, got {impl.dtype} of size {list(impl.sizes)} and stride {list(impl.strides)}"
                )

    def _prepared(self) -> list[int]:
        """Addresses of the constants and of their packed forms, which are made anew after a change."""
        current = tuple([(tensor._impl.version.value, tensor._impl.data_ptr) for tensor in self.constants])
        if current != self._state:
            with self._lock:
                self._pack()
                self._state = current
        return self._constant_pointers

    def _pack(self) -> None:
        pointers = [tensor._impl.data_ptr for tensor in self.constants]
        packed = [allocate(4 * operand.depth * (operand.columns + TILE_COLUMNS)) for operand in self.program.packed]
        addresses = [storage.data_ptr for storage in packed]
        if packed:
            _C.launch(self.library.prepare, pointers + addresses)
        self._packed = packed
        self._constant_pointers = pointers + addresses

    def _output(self, view, made: dict[str, StorageImpl], tensors: tuple[Tensor, ...]) -> object:
        if not view.buffer:
            return view.value
        storage = made.get(view.buffer)
        if storage is None:
            return self._alias(view, tensors)
        kind = self._dtypes[view.buffer]
        impl = TensorImpl(storage, view.size, view.stride, view.offset, kind, CPU, CPU_KEYS)
        impl.inference = state.inference
        return wrap(impl)

    def _alias(self, view, tensors: tuple[Tensor, ...]) -> Tensor:
        """An output that is a view of an input or of a constant."""
        source = self._by_name.get(view.buffer)
        if source is None:
            names = [buffer.name for buffer in self.inputs]
            source = tensors[names.index(view.buffer)]
        if (view.size, view.stride, view.offset) == (source._impl.sizes, source._impl.strides, 0):
            return source
        return source.as_strided(view.size, view.stride, source.storage_offset() + view.offset)
