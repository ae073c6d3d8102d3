"""Compile scripted code to a structured program: loops and branches decided at run time, numbers and lists that change.


In: a jit graph and arguments. Out: a callable for the executor: it returns the results, None if the program gave up, or UNFIT.
"""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.autograd.grad_mode import no_grad
from rushlight.autograd.graph import increment_version
from rushlight.autograd.profiler import compile_stage
from rushlight.compiler.logs import StageLog
from rushlight.compiler.scripted.checks import same_value
from rushlight.compiler.scripted.constants import make_tuples
from rushlight.compiler.scripted.plan import Source
from rushlight.compiler.scripted.program import UNFIT, memory_of
from rushlight.compiler.scripted.state import lift_state
from rushlight.compiler.scripted.translate import Given, Joined, Named, Optional, Translation, translate
from rushlight.compiler.scripted.values import kind_of
from rushlight.compiler.settings import Settings
from rushlight.core.parallel import get_num_threads
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.inductor.structured import ListOf, TensorOf
from rushlight.inductor.structured_call import Stopped, StructuredCall
from rushlight.jit.ir.graph import Graph
from rushlight.jit.passes.lower_tuples import lower_simple_tuples
from rushlight.jit.passes.peephole import peephole_optimize
from rushlight.jit.passes.remove_mutation import remove_tensor_mutation
from rushlight.jit.runtime.interpreter import make_named_tuple
from rushlight.jit.runtime.specialized import spec_of
from rushlight.ops.packet import find_packet
from rushlight.random import get_rng_state, set_rng_state


class NativeProgram:
    """A structured program as the executor calls it: returns the graph's results for a function's arguments, None if it gave
    up.


    The executor has checked the types of the arguments; the types of attributes are checked here.
    """

    def __init__(self, translation: Translation, call: StructuredCall, state: Sequence[Source]):
        self.state = state
        self.sources = translation.sources
        self.structure = translation.structure
        self.guards = list(translation.guards.items())
        self.call = call
        self.draws = translation.draws
        self.written = [self.sources.index(source) for source in translation.written]
        self._checked = [
            (place, kind) for place, (source, kind) in enumerate(zip(self.sources, call.inputs, strict=True))
            if isinstance(source, Source) and source.path
        ]  # fmt: skip
        self._tensors = [place for place, kind in enumerate(call.inputs) if isinstance(kind, TensorOf)]
        self._direct = [source.argument if isinstance(source, Source) and not source.path else None for source in self.sources]
        self._is_direct = None not in self._direct

    def attempt(self, arguments: Sequence[object]) -> object:
        """Run a call. Return its results, None if the interpreter has to run it, or UNFIT if the values that the program
        specializes on

        differ.
        """
        return self(arguments) if self._fits(arguments) else UNFIT

    def changed_sources(self, arguments: Sequence[object]) -> set[tuple]:
        """Return nothing: numbers are inputs wherever that is possible."""
        return set()

    def changed_dims(self, arguments: Sequence[object]) -> dict[object, frozenset[int]]:
        """Return nothing: all sizes are fixed."""
        return {}

    def _fits(self, arguments: Sequence[object]) -> bool:
        """Return whether the numbers that the program specializes on have the same values in a call."""
        for source, value in self.guards:
            found = source.read(arguments)
            if not same_value(found, value):
                return False
        return True

    def __call__(self, arguments: Sequence[object]) -> list | None:
        if self._is_direct:
            values = [arguments[place] for place in self._direct]
        else:
            values = [source.read(arguments) for source in self.sources]
            if not self._attributes_fit(values):
                return None
        for place in self._tensors:
            if not values[place]._impl.is_contiguous():
                if self.written:
                    return None
                values[place] = values[place].contiguous()
        if self.written and not self._may_write(values):
            return None
        random = get_rng_state() if self.draws else None
        try:
            results = self.call(*values)
        except Stopped:
            if random is not None:  # the interpreter has to draw the same numbers
                set_rng_state(random)
            return None
        for place in self.written:
            increment_version(values[place])
        values = [_build_result(each, results, arguments) for each in self.structure]
        count = len(values) - len(self.state)
        for source, value in zip(self.state, values[count:], strict=True):
            source.owner(arguments).slots[source.path[-1]] = value
        return values[:count]

    def _attributes_fit(self, values: Sequence[object]) -> bool:
        """Return whether attributes still have the expected types, and none requires gradients."""
        for place, kind in self._checked:
            value = values[place]
            if kind_of(value) != kind and not (isinstance(kind, ListOf) and value == []):
                return False
            if isinstance(value, Tensor) and state.grad_enabled and value.requires_grad:
                return False
        return True

    def _may_write(self, values: Sequence[object]) -> bool:
        """Return whether the tensors that are written to overlap with no other input, and may be written to."""
        ranges = [memory_of(value._impl) for value in _all_tensors(values)]
        for place in self.written:
            impl = values[place]._impl
            if impl.inference and not state.inference:
                return False
            first, last = memory_of(impl)
            if sum(low < last and first < high for low, high in ranges) > 1:
                return False
        return True


class OfOneKind:
    """A structured program among arguments of any sizes: it serves those of the kind that it was made for."""

    def __init__(self, program: NativeProgram, arguments: Sequence[object], unread: frozenset[int]):
        self.program = program
        self._unread = unread
        self._spec = spec_of(arguments, unread)
        self.changed_sources, self.changed_dims = program.changed_sources, program.changed_dims

    def attempt(self, arguments: Sequence[object]) -> object:
        """Run a call as `NativeProgram.attempt` does; UNFIT for arguments of another kind."""
        return self.program.attempt(arguments) if spec_of(arguments, self._unread) == self._spec else UNFIT


def _all_tensors(values: Sequence[object]) -> list[Tensor]:
    found = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, list | tuple):
            found += _all_tensors(value)
    return found


def _build_result(structure: object, results: list, arguments: Sequence[object]) -> object:
    """Build a result of the graph from the outputs of the program."""
    if isinstance(structure, int):
        return results[structure]
    if isinstance(structure, Named):
        return make_named_tuple(structure.type, [_build_result(each, results, arguments) for each in structure.parts])
    if isinstance(structure, tuple):
        return tuple(_build_result(each, results, arguments) for each in structure)
    if isinstance(structure, Joined):
        return find_packet(structure.operator)(results[structure.tensors], structure.dim)
    if isinstance(structure, Given):
        return structure.source.read(arguments)
    if isinstance(structure, Optional):
        return results[structure.value] if results[structure.present] else None
    return structure.value


def structured_form(
    graph: Graph, arguments: Sequence[object], owns_lists: bool, written_later: frozenset[int], threads: int | None
) -> tuple[Translation, list[Source]]:  # fmt: skip
    """Translate a graph to a structured program for arguments like these; return also the attributes that are its last outputs.

    `owns_lists`: nobody else holds the lists among the arguments. `written_later`: the indices of results whose memory is
    written
    to after the graph. `threads`: None for any number.
    """
    copied = graph.copy()
    changing = lift_state(copied, arguments)
    peephole_optimize(copied, disable_shape_peepholes=True)
    make_tuples(copied)
    lower_simple_tuples(copied)
    remove_tensor_mutation(copied)
    with no_grad():
        return translate(copied, arguments, threads, frozenset(changing), owns_lists, written_later), changing


@compile_stage("structured_program")
def compile_structured(
    graph: Graph, arguments: Sequence[object], owns_lists: bool, written_later: frozenset[int], settings: Settings,
    log: StageLog,
) -> NativeProgram:  # fmt: skip
    """Compile `structured_form` to a callable."""
    threads = settings.threads or get_num_threads()
    translation, changing = structured_form(graph, arguments, owns_lists, written_later, threads)
    log("loops", lambda: str(translation.program), lambda: translation)
    call = StructuredCall(translation.program, settings.debug_cpp)
    log("code", lambda: call.source, lambda: call)
    return NativeProgram(translation, call, changing)
