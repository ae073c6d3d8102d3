"""A built program as a Python callable: checks inputs, collects pointers, allocates outputs, and makes one native call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import rushlight._C as _C
from rushlight.core.device import CPU
from rushlight.core.dispatch_key import CPU_KEYS
from rushlight.core.lazy_module import LazyModule
from rushlight.core.storage import StorageImpl, aligned, allocate
from rushlight.core.tensor import Tensor, wrap
from rushlight.core.tensor_impl import TensorImpl
from rushlight.core.thread_state import state
from rushlight.inductor.build import Library
from rushlight.inductor.launch import KnownSizes, Sizes, bytes_needed, has_no_data, make_launch
from rushlight.inductor.observed import enlist
from rushlight.inductor.plan import Plan
from rushlight.inductor.written_inputs import noting_writes

if TYPE_CHECKING:
    from rushlight.core.algebra import Var
    from rushlight.inductor.codegen.cpp.program import Program
    from rushlight.inductor.graph import LoweredGraph
    from rushlight.inductor.observed import Observer


pieces = LazyModule("rushlight.inductor.pieces")


class ConstantChanged(RuntimeError):
    """A parameter's size, stride or dtype has changed since compilation."""


class _Prepared(NamedTuple):
    """The constants' pointers for a call. Each call holds a reference to this record, so a constant that is changed at the same
    time frees no memory that the call reads."""

    state: list[tuple[int, StorageImpl, int]]  # for each constant: version, storage, the storage's generation
    pointers: list[int]
    memory: list[StorageImpl]  # folded and packed constants


class _Folded(NamedTuple):
    """The results of loops over constants, for one state of the constants."""

    state: list[tuple[int, StorageImpl, int]]
    memory: list[StorageImpl]


class CompiledGraph:
    """Runs a program. Constants are packed when a second call finds them unchanged.

    The first call after a change of a constant packs each constant just before its use, into one buffer that all constants
    share. A model that is called once, or between two training steps, thus neither allocates nor touches memory for all its
    packed weights. `reference` runs the same graph in eager. It takes over when native code finds an index out of range, and
    raises eager's error. `details` returns the lowered graph and program, for inspection of the kernels.
    """

    kind = "CompiledGraph"

    def __init__(
        self, plan: Plan, library: Library, constants: dict[str, Tensor], reference: Callable[..., tuple],
        details: Callable[[], tuple[LoweredGraph, Program]],
    ):  # fmt: skip
        self.plan = plan
        self.library = library
        self.reference = reference
        self.details = details
        self.number = -1  # set by `enlist`
        self.constants = [constants[given.target] for given in plan.constants]
        self.by_name = {given.name: tensor for given, tensor in zip(plan.constants, self.constants, strict=True)}
        self.expected = [(given.size, given.stride, given.dtype) for given in plan.inputs]
        self.written = plan.written
        self._layouts = [(given.size, given.stride, given.dtype) for given in plan.constants]
        self._folded: _Folded | None = None
        self._prepared: _Prepared | None = None
        self._lock = threading.Lock()
        self._launch: _C.GraphLaunch | None = None
        self._recorder: Observer | None = None
        enlist(self)

    @property
    def source_code(self) -> str:
        """A Python program that runs this graph alone, with the C++ that it was compiled from."""
        return pieces.text_of("module", *self.details())

    @property
    def source(self) -> str:
        """The C++ text of the library."""
        return self.details()[1].source

    def parts(self) -> list[tuple[LoweredGraph, Program]]:
        """The lowered graph and its program."""
        return [self.details()]

    def allocated_by(self, sizes: Mapping[Var, int]) -> int:
        """Return the bytes that one call allocates: results, and the arena."""
        return sum(self.plan.outputs.values()) + self.library.arena_bytes

    def timed_source(self) -> str:
        """The text of a variant of the program that measures its kernels."""
        return self.details()[1].timed_source()

    def divert(self, recorder: Observer | None) -> None:
        """Make `recorder` measure all calls; None stops the measurements."""
        self._recorder = recorder
        if self._launch is not None:
            self._launch.divert(recorder is not None)

    def callable(self) -> Callable[..., tuple]:
        """Return the callable for inputs: a native launch if possible, else this graph. Inputs that the graph mutates get a new
        version after each call."""
        general = noting_writes(self, self.reference, self.written) if self.written else self
        sizes = self.sizes()
        if sizes is not None:
            self._launch = make_launch(self.plan, sizes, self.library, self.by_name, general, self.reference, self.written)
        self.divert(self._recorder)
        return self._launch or general

    def sizes(self) -> Sizes | None:
        """Return the sizes for native calls; None if they cannot be expressed."""
        return KnownSizes(self.plan)

    def __call__(self, *tensors: Tensor) -> tuple:
        """Return the flat outputs for inputs of the compiled sizes, strides and dtypes; RuntimeError for any others."""
        self._check(tensors)
        prepared = self._prepare()
        made = {name: allocate(nbytes) for name, nbytes in self.plan.outputs.items()}
        arena = _C.allocate(self.library.arena_bytes)
        pointers = [tensor._impl.data_ptr for tensor in tensors]
        pointers += prepared.pointers
        pointers += [storage.data_ptr for storage in made.values()]
        pointers.append(arena.data_ptr)
        if self._run(pointers, {}):
            return self.reference(*tensors)
        return tuple(self._make_output(view, made, tensors) for view in self.plan.views)

    def _run(self, pointers: list[int], sizes: Mapping[Var, int]) -> int:
        """Run the program; a nonzero result means failure."""
        recorder = self._recorder
        if recorder is None:
            return _C.launch(self.library.entry, pointers)
        failed = _C.launch(recorder.entry_for(self), pointers)
        recorder.ran(self, sizes)
        return failed

    def _check(self, tensors: tuple[Tensor, ...]) -> None:
        if len(tensors) != len(self.expected):
            raise RuntimeError(f"the compiled graph takes {len(self.expected)} tensors, got {len(tensors)}")
        for position, (tensor, expected) in enumerate(zip(tensors, self.expected, strict=True)):
            impl = getattr(tensor, "_impl", None)
            if impl is None:
                raise RuntimeError(f"input {position} of the compiled graph must be a tensor, got {type(tensor).__name__}")
            size, stride, kind = expected
            if (impl.sizes, impl.strides, impl.dtype) != expected or has_no_data(impl):
                raise RuntimeError(
                    f"input {position} of the compiled graph must be a {kind} CPU tensor of size {list(size)} and stride "
                    f"{list(stride)}, got {impl.dtype} of size {list(impl.sizes)} and stride {list(impl.strides)}"
                )
            needed = bytes_needed(impl)
            if needed > impl.storage.nbytes:
                raise RuntimeError(
                    f"input {position} of the compiled graph needs a storage of {needed} bytes, got {impl.storage.nbytes}"
                )

    def _prepare(self) -> _Prepared:
        """Return the constants for a call: packed, or with the buffer into which this call packs them."""
        impls = [tensor._impl for tensor in self.constants]
        state_now = [(impl.version.value, impl.storage, impl.storage.generation) for impl in impls]
        prepared = self._prepared
        if prepared is not None and prepared.state == state_now:
            return prepared
        with self._lock:
            prepared, folded = self._prepared, self._folded
            if prepared is not None and prepared.state == state_now:  # another thread has prepared the constants meanwhile
                return prepared
            is_new = folded is None or folded.state != state_now
            if is_new:
                self._check_constants()
                folded = self._folded = _Folded(state_now, self._fold())
            if is_new and self.plan.packed:
                return self._prepare_without_packing(folded)
            prepared = self._prepared = self._pack(folded)
            if self._launch is not None:
                self._launch.use_constants(tuple(self.constants), tuple(state_now), tuple(prepared.pointers), prepared)
        return prepared

    def _check_constants(self) -> None:
        for given, tensor, expected in zip(self.plan.constants, self.constants, self._layouts, strict=True):
            if (tensor._impl.sizes, tensor._impl.strides, tensor._impl.dtype) != expected:
                raise ConstantChanged(
                    f"{given.target} had size {list(expected[0])} and dtype {expected[2]} when the graph was compiled, and "
                    f"has now {list(tensor.shape)} and {tensor.dtype}; compile the model again"
                )
            nbytes = tensor._impl.storage.nbytes
            if bytes_needed(tensor._impl) > nbytes:
                raise RuntimeError(f"{given.target} has a storage of {nbytes} bytes, too small for its size")

    def _fold(self) -> list[StorageImpl]:
        """Run the loops over constants and return their results."""
        memory = [allocate(nbytes) for nbytes in self.plan.folded]
        if memory:
            _C.launch(self.library.fold, self._pointers_of_constants(memory))
        return memory

    def _prepare_without_packing(self, folded: _Folded) -> _Prepared:
        """Return pointers for one call, which packs each operand into the same buffer just before its use."""
        panels = allocate(self.plan.panel_bytes)
        pointers = [*self._pointers_of_constants(folded.memory), *[0] * len(self.plan.packed), panels.data_ptr]
        return _Prepared(folded.state, pointers, [*folded.memory, panels])

    def _pack(self, folded: _Folded) -> _Prepared:
        """Pack all operands, for all calls until a constant changes. The operands share one large memory block, because a large
        block gets huge pages: TLB misses for small weights on many pages cost more than cache misses."""
        pointers = self._pointers_of_constants(folded.memory)
        if not self.plan.packed:
            return _Prepared(folded.state, pointers, folded.memory)
        *positions, end = accumulate(map(aligned, self.plan.packed), initial=0)
        block, passing = allocate(end), allocate(self.plan.passing_bytes)
        pointers += [block.data_ptr + position for position in positions]
        _C.launch(self.library.pack, [*pointers, passing.data_ptr])
        return _Prepared(folded.state, [*pointers, 0], [*folded.memory, block])

    def _pointers_of_constants(self, made: list[StorageImpl]) -> list[int]:
        return [*(tensor._impl.data_ptr for tensor in self.constants), *(storage.data_ptr for storage in made)]

    def _make_output(self, view, made: dict[str, StorageImpl], tensors: tuple[Tensor, ...]) -> object:
        if not view.buffer:
            return view.value
        storage = made.get(view.buffer)
        if storage is None:
            return self._make_alias(view, tensors)
        kind = self.plan.dtypes[view.buffer]
        impl = TensorImpl(storage, view.size, view.stride, view.offset, kind, CPU, CPU_KEYS)
        impl.inference = state.inference
        return wrap(impl)

    def _make_alias(self, view, tensors: tuple[Tensor, ...]) -> Tensor:
        """Return an output that is a view of an input or of a constant."""
        source = self.by_name.get(view.buffer)
        if source is None:
            names = [given.name for given in self.plan.inputs]
            source = tensors[names.index(view.buffer)]
        if view.is_whole:
            return source
        return source.as_strided(view.size, view.stride, source.storage_offset() + view.offset)
