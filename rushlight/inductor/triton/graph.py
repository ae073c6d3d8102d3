"""A Triton program as a Python callable: checks inputs, folds constants, runs the program and makes its results.

In: a lowered graph, its program and a launcher. Out: a callable over flat tensors, and ints where sizes are inputs. If a kernel
reports an error, `reference` runs the graph in eager, and raises eager's error. Stage: inductor, calling.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rushlight.core.algebra import Expr
from rushlight.core.storage import StorageImpl
from rushlight.core.tensor import Tensor
from rushlight.inductor.codegen.triton.program import TritonProgram
from rushlight.inductor.graph import LoweredGraph
from rushlight.inductor.plan import OutputView
from rushlight.inductor.size_checks import make_binder, make_function
from rushlight.inductor.size_symbols import SizeSymbols
from rushlight.inductor.triton.launcher import Launcher, Memory

State = list[tuple[int, StorageImpl, int]]  # each constant's version, its storage, and the storage's generation


class TritonGraph:
    """Runs a program. Folded constants are kept until a constant changes."""

    def __init__(
        self, lowered: LoweredGraph, program: TritonProgram, launcher: Launcher, constants: Mapping[str, Tensor],
        reference: Callable[..., tuple],
    ):  # fmt: skip
        self.lowered = lowered
        self.program = program
        self.launcher = launcher
        self.reference = reference
        functions: dict[str, Callable] = {}
        exec(compile(program.wrapper_source, "<the launches of a Triton program>", "exec"), functions)
        self._run, self._fold = functions["call"], functions.get("fold")
        self._bind = make_binder(lowered.symbols)
        self._outputs = [(view, _geometry_of(view, lowered.symbols)) for view in lowered.outputs]
        self._inputs = [buffer.name for buffer in lowered.inputs]
        self._constants = [constants[buffer.target] for buffer in program.constants]
        self._by_name = {buffer.name: tensor for buffer, tensor in zip(program.constants, self._constants, strict=True)}
        self._dtypes = {buffer.name: buffer.layout.dtype for buffer in lowered.buffers}
        self._folded: tuple[State, tuple[Memory, ...]] | None = None

    @property
    def source_code(self) -> str:
        """The program's text."""
        return self.program.source

    def __call__(self, *inputs: Tensor | int) -> tuple:
        """Return the flat outputs; RuntimeError for inputs of other dtypes, sizes or strides."""
        numbers = self._bind(inputs)
        tensors = [given for given in inputs if isinstance(given, Tensor)]
        named = dict(zip(self._inputs, tensors, strict=True)) | self._by_name
        addresses = [self.launcher.address(tensor) for tensor in (*tensors, *self._constants)]
        folded = self._fold_constants()
        results = self._run(self.launcher, *addresses, *(memory.data_ptr for memory in folded), *numbers)
        if results is None:
            return self.reference(*inputs)
        made = dict(zip(self.program.outputs, results, strict=True))
        return tuple([self._make_output(view, made, named, geometry(*numbers)) for view, geometry in self._outputs])

    def _fold_constants(self) -> tuple[Memory, ...]:
        """Return the results of loops over constants."""
        if self._fold is None:
            return ()
        impls = [tensor._impl for tensor in self._constants]
        now = [(impl.version.value, impl.storage, impl.storage.generation) for impl in impls]
        if self._folded is None or self._folded[0] != now:
            self._folded = now, self._fold(self.launcher, *map(self.launcher.address, self._constants))
        return self._folded[1]

    def _make_output(
        self, view: OutputView, made: dict[str, Memory], named: dict[str, Tensor], geometry: Any
    ) -> object:  # fmt: skip
        if not view.buffer:
            return geometry
        size, stride, offset = geometry
        if view.buffer in made:
            return self.launcher.tensor(made[view.buffer], size, stride, offset, self._dtypes[view.buffer])
        source = named[view.buffer]
        return source if view.is_whole else source.as_strided(size, stride, source.storage_offset() + offset)


def _geometry_of(view: OutputView, symbols: SizeSymbols) -> Callable[..., Any]:
    """Return a function of the symbols' values: of a result's size, stride and offset, or of a result that is no tensor."""
    if view.buffer:
        return make_function(symbols, (view.size, view.stride, view.offset))
    return make_function(symbols, view.value) if isinstance(view.value, Expr) else lambda *numbers: view.value
