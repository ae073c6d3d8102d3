"""A Triton program as a Python callable: checks inputs, folds constants, runs the program and makes its results.

In: a lowered graph, its program and a launcher. Out: a callable over flat tensors, and ints where sizes are inputs. If a kernel
reports an error, `reference` runs the graph in eager, and raises eager's error. Stage: inductor, calling.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rushlight._C import LaunchPlan, PlannedCalls
from rushlight.core.algebra import Expr
from rushlight.core.dtype import dtype, uint8
from rushlight.core.storage import StorageImpl
from rushlight.core.tensor import Tensor
from rushlight.inductor.codegen.triton.program import TritonProgram
from rushlight.inductor.graph import LoweredGraph
from rushlight.inductor.plan import OutputView
from rushlight.inductor.size_checks import make_binder, make_function
from rushlight.inductor.size_symbols import SizeSymbols
from rushlight.inductor.triton.launcher import Launcher, Memory
from rushlight.inductor.triton.planning import Planner

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
        self._constants = [constants[buffer.target] for buffer in program.constants]
        self._names = [buffer.name for buffer in (*lowered.inputs, *program.constants)]
        self._folds = [buffer.name for buffer in program.folded] if self._fold is not None else []
        self._dtypes = {buffer.name: buffer.layout.dtype for buffer in lowered.buffers}
        self._folded: tuple[State, tuple[Tensor, ...]] | None = None
        self._planner: Callable[[Sequence[Tensor]], Planner | None] = getattr(launcher, "planner", lambda tensors: None)
        self._calls = PlannedCalls(self._call_unplanned, False)

    @property
    def source_code(self) -> str:
        """The program's text."""
        return self.program.source

    def __call__(self, *inputs: Tensor | int) -> tuple:
        """Return the flat outputs; RuntimeError for inputs of other dtypes, sizes or strides."""
        return self._calls(*inputs, *self._constants, *self._fold_constants())

    def plan_of(self, *inputs: Tensor | int) -> LaunchPlan | None:
        """Return the launch plan for inputs with which the program has run; None if there is none, or if it reads constants."""
        return None if self._constants else self._calls.find(*inputs)

    def _call_unplanned(self, *given: Any) -> tuple:
        """Run the program: by a plan, which is kept, if the call comes again and the launcher makes plans."""
        inputs = given[: len(given) - len(self._constants) - len(self._folds)]
        numbers = self._bind(inputs)
        tensors = [value for value in given if isinstance(value, Tensor)]
        planner = self._planner(tensors) if self._calls.is_repeated else None
        if planner is not None:
            return self._call_planned(planner, given, tensors, numbers)
        results = self._run(self.launcher, *map(self.launcher.address, tensors), *numbers)
        if results is None:
            return self.reference(*inputs)
        made = dict(zip(self.program.outputs, results, strict=True))
        named = dict(zip(self._names, tensors, strict=False))
        return tuple([self._make_output(view, made, named, geometry(*numbers)) for view, geometry in self._outputs])

    def _call_planned(self, planner: Planner, given: tuple, tensors: list[Tensor], numbers: tuple[int, ...]) -> tuple:
        results = self._run(planner, *planner.addresses(), *numbers)
        slots = {name: planner.slot_of(memory) for name, memory in zip(self.program.outputs, results, strict=True)}
        places = {name: place for place, name in enumerate(self._names)}
        plan = planner.plan([self._planned_output(view, slots, places, geometry(*numbers)) for view, geometry in self._outputs])
        self._calls.remember(given, {}, plan, "tuple", None)
        return plan(*tensors)

    def _planned_output(self, view: OutputView, slots: dict[str, int], places: dict[str, int], geometry: Any) -> tuple:
        """Describe a result for `LaunchPlan`."""
        if not view.buffer:
            return "object", geometry
        if view.buffer in slots:
            return "memory", slots[view.buffer], *geometry, self._dtypes[view.buffer]
        place = places[view.buffer]
        return ("input", place) if view.is_whole else ("view", place, *geometry)

    @property
    def output_dtypes(self) -> list[dtype]:
        """The dtypes of outputs that are tensors."""
        return [self._dtypes[view.buffer] for view in self.lowered.outputs if view.buffer]

    def run_at(self, addresses: Sequence[int]) -> tuple:
        """Return the flat outputs of a graph without symbols whose outputs are no inputs. `addresses` are those of all inputs,
        which the caller has compared with those that the graph was compiled for."""
        constants = [self.launcher.address(tensor) for tensor in self._constants]
        folded = [tensor._impl.data_ptr for tensor in self._fold_constants()]
        made = dict(zip(self.program.outputs, self._run(self.launcher, *addresses, *constants, *folded), strict=True))
        return tuple([self._make_output(view, made, {}, geometry()) for view, geometry in self._outputs])

    def _fold_constants(self) -> tuple[Tensor, ...]:
        """Return the results of loops over constants, as bytes."""
        if self._fold is None:
            return ()
        impls = [tensor._impl for tensor in self._constants]
        now = [(impl.version.value, impl.storage, impl.storage.generation) for impl in impls]
        if self._folded is None or self._folded[0] != now:
            made = self._fold(self.launcher, *map(self.launcher.address, self._constants))
            self._folded = now, tuple([self.launcher.tensor(memory, (memory.nbytes,), (1,), 0, uint8) for memory in made])
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
