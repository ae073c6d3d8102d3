"""Compiled graphs with symbolic sizes as Python callables: sizes are read from the inputs at each call.

In: a lowered graph, its program and library. Out: a callable over tensors and integers. Stage: inductor, calling.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import rushlight._C as _C
from rushlight.core.storage import allocate
from rushlight.core.tensor import Tensor
from rushlight.inductor.build import Library
from rushlight.inductor.codegen.cpp.program import Program
from rushlight.inductor.compiled import CompiledGraph
from rushlight.inductor.graph import LoweredGraph
from rushlight.inductor.launch import NoNativeForm
from rushlight.inductor.open_launch import LARGEST, OpenSizes, counts_of
from rushlight.inductor.plan import OutputView, Plan
from rushlight.inductor.size_checks import make_binder, make_function
from rushlight.inductor.size_symbols import SizeSymbols, TensorInput
from rushlight.inductor.sizes import Size

if TYPE_CHECKING:
    from rushlight.core.algebra import Var


@dataclass(frozen=True, slots=True)
class _Sized:
    """The numbers derived from one choice of sizes."""

    sizes: tuple[int, ...]
    arena_bytes: int
    output_bytes: dict[str, int]
    outputs: tuple[OutputView, ...]


class SymbolicGraph(CompiledGraph):
    """Runs a program for all sizes that its capture allows. RuntimeError for other inputs."""

    def __init__(
        self, plan: Plan, library: Library, constants: dict[str, Tensor], reference: Callable[..., tuple],
        details: Callable[[], tuple[LoweredGraph, Program]],
    ):  # fmt: skip
        super().__init__(plan, library, constants, reference, details)
        lowered, program = details()
        symbols = lowered.symbols
        self._tensors = [position for position, given in enumerate(symbols.inputs) if isinstance(given, TensorInput)]
        self.written = tuple(self._tensors[number] for number in plan.written)
        self._bind = make_binder(symbols)
        self._work_out = _make_sizing(symbols, program, plan.views, plan.outputs)
        self._sized: _Sized | None = None
        self._symbols = list(symbols.definitions)

    def sizes(self) -> OpenSizes | None:
        """Return the sizes for native calls; None if they have no native form."""
        lowered, program = self.details()
        try:
            return OpenSizes(lowered.symbols, program, self.plan, self.library)
        except NoNativeForm:
            return None

    def __call__(self, *inputs: Tensor | int) -> tuple:
        """Return the flat outputs; RuntimeError for inputs of other dtypes, or with inconsistent sizes and strides."""
        sizes = self._bind(inputs)
        sized = self._sized
        if sized is None or sized.sizes != sizes:
            sized = self._sized = self._compute_sizes(sizes)
        prepared = self._prepare()
        tensors = [inputs[position] for position in self._tensors]
        made = {name: allocate(nbytes) for name, nbytes in sized.output_bytes.items()}
        arena = _C.allocate(sized.arena_bytes)
        pointers = [tensor._impl.data_ptr for tensor in tensors]
        pointers += prepared.pointers
        pointers += [storage.data_ptr for storage in made.values()]
        pointers.append(arena.data_ptr)
        pointers += sizes
        if self._run(pointers, dict(zip(self._symbols, sizes, strict=True))):
            return self.reference(*inputs)
        return tuple(self._make_output(view, made, tensors) for view in sized.outputs)

    def allocated_by(self, sizes: Mapping[Var, int]) -> int:
        """Return the bytes that one call allocates for these sizes: results, and the arena."""
        sized = self._compute_sizes(tuple(sizes[symbol] for symbol in self._symbols))
        return sum(sized.output_bytes.values()) + sized.arena_bytes

    def _compute_sizes(self, sizes: tuple[int, ...]) -> _Sized:
        output_bytes, views, counts = self._work_out(*sizes)
        largest = max((*output_bytes, *counts), default=0)
        if largest > LARGEST:
            raise RuntimeError(f"inputs of these sizes need {largest} bytes or steps in the graph, more than {LARGEST}")
        arena_bytes = self.library.arena_bytes_for((ctypes.c_int64 * len(sizes))(*sizes))
        outputs = tuple(
            view._replace(size=size, stride=stride, offset=offset, value=value if isinstance(view.value, Size) else view.value)
            for view, (size, stride, offset, value) in zip(self.plan.views, views, strict=True)
        )
        return _Sized(sizes, arena_bytes, dict(zip(self.plan.outputs, output_bytes, strict=True)), outputs)


def _make_sizing(
    symbols: SizeSymbols, program: Program, outputs: Sequence[OutputView], output_bytes: dict[str, Size]
) -> Callable[..., tuple]:
    """Return a function of the symbols: bytes of outputs, their views, and the counts that must not become too large."""
    views = [
        (view.size, view.stride, view.offset, view.value if isinstance(view.value, Size) else None) for view in outputs
    ]
    return make_function(symbols, (tuple(output_bytes.values()), views, counts_of(program)))
