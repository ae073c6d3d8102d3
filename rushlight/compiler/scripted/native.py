"""What the jit's executor calls to have a graph run natively.

In: a function's graph as the executor runs it, and arguments. Out: a callable over arguments like these, or None where
there is none. Graphs without loops and branches become one compiled graph, all others a structured program, of which there
are several where what a program does depends on values such as sizes and strings.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence

from rushlight.autograd.grad_mode import no_grad
from rushlight.autograd.graph import increment_version
from rushlight.compiler.logs import StageLog
from rushlight.compiler.scripted.constants import make_tuples
from rushlight.compiler.scripted.plan import Source
from rushlight.compiler.scripted.regions import Unsupported
from rushlight.compiler.scripted.straight import attributes_of, compile_straight
from rushlight.compiler.scripted.translate import Given, Optional, Translation, translate
from rushlight.compiler.scripted.values import kind_of
from rushlight.compiler.settings import Settings, configured, from_environment
from rushlight.core.parallel import get_num_threads
from rushlight.core.symbolic import UnguardedSizeError
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import DataDependentError
from rushlight.core.thread_state import state
from rushlight.inductor.build import BuildError, CompilerMissing
from rushlight.inductor.sizes import UnsupportedSize
from rushlight.inductor.structured import ListOf, TensorOf
from rushlight.inductor.structured_call import Stopped, StructuredCall
from rushlight.jit.ir.graph import Graph
from rushlight.jit.passes.lower_tuples import lower_simple_tuples
from rushlight.jit.passes.remove_mutation import remove_tensor_mutation
from rushlight.jit.runtime.native import set_native_compiler
from rushlight.random import get_rng_state, set_rng_state

_NOT_NATIVE = (
    Unsupported, DataDependentError, UnsupportedSize, UnguardedSizeError, NotImplementedError, CompilerMissing, BuildError,
)  # fmt: skip
_MOST_VARIANTS = 8
_CALLS_BEFORE_ANOTHER = 3  # with other values than those that a program was made for


class NativeProgram:
    """A structured program as the executor calls it: the graph's results for a function's arguments, None if it gave up.

    Of arguments it knows the kinds already, not of attributes.
    """

    def __init__(self, translation: Translation, call: StructuredCall):
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

    def fits(self, arguments: Sequence[object]) -> bool:
        """Whether the values that the program takes for granted are these."""
        for source, value in self.guards:
            found = source.read(arguments)
            if type(found) is not type(value) or found != value:
                return False
        return True

    def __call__(self, arguments: Sequence[object]) -> list | None:
        if self._is_direct:
            values = [arguments[place] for place in self._direct]
        else:
            values = [source.read(arguments) for source in self.sources]
            if not self._fit(values):
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
            if random is not None:  # the interpreter draws the same numbers again
                set_rng_state(random)
            return None
        for place in self.written:
            increment_version(values[place])
        return [_built(each, results, arguments) for each in self.structure]

    def _fit(self, values: Sequence[object]) -> bool:
        """Whether attributes are still of the kinds that the program takes, and no gradients are asked for."""
        for place, kind in self._checked:
            value = values[place]
            if kind_of(value) != kind and not (isinstance(kind, ListOf) and value == []):
                return False
            if isinstance(value, Tensor) and state.grad_enabled and value.requires_grad:
                return False
        return True

    def _may_write(self, values: Sequence[object]) -> bool:
        """Whether what is written to shares memory with no other input, and may be written to."""
        ranges = [_memory(value) for value in _all_tensors(values)]
        for place in self.written:
            impl = values[place]._impl
            if impl.inference and not state.inference:
                return False
            first, last = _memory(values[place])
            if sum(low < last and first < high for low, high in ranges) > 1:
                return False
        return True


def _all_tensors(values: Sequence[object]) -> list[Tensor]:
    found = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, list | tuple):
            found += _all_tensors(value)
    return found


def _memory(tensor: Tensor) -> tuple[int, int]:
    """The addresses between which a tensor's elements lie."""
    impl = tensor._impl
    reach = sum((size - 1) * step for size, step in zip(impl.sizes, impl.strides, strict=True)) + 1 if impl.numel else 0
    return impl.data_ptr, impl.data_ptr + reach * impl.dtype.itemsize


def _built(structure: object, results: list, arguments: Sequence[object]) -> object:
    if isinstance(structure, int):
        return results[structure]
    if isinstance(structure, tuple):
        return tuple(_built(each, results, arguments) for each in structure)
    if isinstance(structure, Given):
        return structure.source.read(arguments)
    if isinstance(structure, Optional):
        return results[structure.value] if results[structure.present] else None
    return structure.value


class Variants:
    """Programs of one graph for arguments of one kind, which differ in the values that they take for granted."""

    def __init__(self, graph: Graph, name: str, settings: Settings, first: NativeProgram):
        self.graph = graph
        self.name = name
        self.settings = settings
        self.programs = [first]
        self._met: dict[tuple, int] = {}
        self._lock = threading.Lock()

    def __call__(self, arguments: Sequence[object]) -> list | None:
        for program in self.programs:
            if program.fits(arguments):
                return program(arguments)
        if not self._is_worth_another(arguments):
            return None
        log = StageLog(self.settings, self.name)
        made = _guarded(lambda: _compile_program(self.graph, arguments, self.settings, log), self.name, log)
        if made is None:
            return None
        with self._lock:
            self.programs.append(made)
        return made(arguments)

    def _is_worth_another(self, arguments: Sequence[object]) -> bool:
        """Whether values come up often enough, and there are not too many programs; one thread makes one."""
        key = tuple(source.read(arguments) for source, _ in self.programs[0].guards)
        with self._lock:
            if len(self.programs) >= _MOST_VARIANTS or len(self._met) > 64:
                return False
            self._met[key] = self._met.get(key, 0) + 1
            return self._met[key] == _CALLS_BEFORE_ANOTHER


def compile_native(graph: Graph, arguments: Sequence[object], name: str) -> Callable[[Sequence[object]], list | None] | None:
    """What runs a graph natively for arguments like these; None where it has no native form."""
    settings = configured(from_environment())
    log = StageLog(settings, name)
    return _guarded(lambda: _compile(graph, arguments, name, settings, log), name, log)


def _compile(graph: Graph, arguments: Sequence[object], name: str, settings: Settings, log: StageLog) -> Callable:
    if state.grad_enabled and any(_needs_grad(value) for value in attributes_of(graph, arguments).values()):
        raise Unsupported("gradients are needed")
    if not any(node.blocks for node in graph.nodes):
        with no_grad():
            copied = graph.copy()
            lower_simple_tuples(copied)
            return compile_straight(copied, arguments, settings, log)
    first = _compile_program(graph, arguments, settings, log)
    return Variants(graph, name, settings, first) if first.guards else first


def _compile_program(graph: Graph, arguments: Sequence[object], settings: Settings, log: StageLog) -> NativeProgram:
    copied = graph.copy()
    make_tuples(copied)
    lower_simple_tuples(copied)
    remove_tensor_mutation(copied)
    with no_grad():
        translation = translate(copied, arguments, settings.threads or get_num_threads())
        log("loops", lambda: str(translation.program))
        call = StructuredCall(translation.program, settings.debug_cpp)
        log("code", lambda: call.source)
    return NativeProgram(translation, call)


def _guarded(make: Callable[[], Callable], name: str, log: StageLog) -> Callable | None:
    """What `make` gives; None where there is no native form, or making it fails."""
    try:
        return make()
    except _NOT_NATIVE as reason:
        text = str(reason)
        log("graph_breaks", lambda: f"runs in the interpreter: {text}")
    except Exception as error:  # the interpreter is right whatever is wrong with the compilation
        warnings.warn(
            f"jit: running {name} in the interpreter, because making native code of it failed, which should be reported: "
            f"{type(error).__name__}: {error}", stacklevel=3,
        )  # fmt: skip
    return None


def _needs_grad(value: object) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


set_native_compiler(compile_native)
