"""The native programs of one graph: which one serves a call, and when another one is made.


In: a graph and arguments. Out: results, or None if the interpreter has to run.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from rushlight.compiler.logs import StageLog
from rushlight.compiler.scripted import kept_programs
from rushlight.compiler.scripted.execution import Budget, TooManyRounds
from rushlight.compiler.scripted.extraction import append_only
from rushlight.compiler.scripted.kept_programs import Constants
from rushlight.compiler.scripted.open_sizes import Dims
from rushlight.compiler.scripted.program import UNFIT, WholeProgram
from rushlight.compiler.scripted.regions import Unsupported
from rushlight.compiler.scripted.structured_program import NativeProgram, OfOneKind, compile_structured
from rushlight.compiler.scripted.whole import Wish, compile_whole
from rushlight.compiler.settings import Settings
from rushlight.core.symbolic import UnguardedSizeError
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import DataDependentError
from rushlight.core.thread_state import state
from rushlight.inductor.build import BuildError, CompilerMissing
from rushlight.inductor.sizes import UnsupportedSize
from rushlight.jit.ir.graph import Graph, Value
from rushlight.jit.runtime.native import Part
from rushlight.jit.runtime.objects import ScriptObject

NOT_NATIVE = (
    Unsupported, DataDependentError, UnsupportedSize, UnguardedSizeError, NotImplementedError, CompilerMissing, BuildError,
)  # fmt: skip
_MAX_PROGRAMS = 8
_MISSES_BEFORE_COMPILING = 3  # calls that no program fits, before another program is made
# Larger graphs are not translated: it takes long, and they hardly ever become one structured program.
_MAX_STRUCTURED_NODES = 1_500
# Limits of unrolling in the first attempt: larger loops are better kept as loops, if possible.
_FIRST_MAX_ROUNDS, _FIRST_MAX_NODES = 12, 4_000
_MAX_ROUNDS, _MAX_NODES = 512, 12_000
Made = TypeVar("Made")
Program = WholeProgram | NativeProgram | OfOneKind


class Programs:
    """The programs of one graph for arguments of one kind; they differ in the values that they specialize on.


    Threads may call at the same time: one of them makes a program, the others go on with the interpreter. `owns_lists`: nobody
    else holds the lists among the arguments. `changing` are the sources of numbers that differ from call to call, `dims` the
    dimensions of tensors that do. `written_later` are the indices of results whose memory is written to after the graph.
    """

    is_whole = True

    def __init__(
        self, graph: Graph, name: str, settings: Settings, owns_lists: bool = True, dims: Dims | None = None,
        written_later: frozenset[int] = frozenset(),
    ):  # fmt: skip
        self.graph = graph
        self.dims: dict[object, frozenset[int]] = dict(dims or {})
        self.has_one_kind = dims is None
        self.owns_lists = owns_lists
        self.written_later = written_later
        self.name = name
        self.settings = settings
        self.programs: list[Program] = []
        self.changing: frozenset[tuple] = frozenset()
        self._misses = 0
        self._lock = threading.Lock()

    def __call__(self, arguments: Sequence[object]) -> list | None:
        programs = self.programs
        for program in programs:
            results = program.attempt(arguments)
            if results is not UNFIT:
                if program is not programs[0]:  # the next call is likely to fit the same program
                    self._put_first(program)
                return results
        if not self._is_worth_another():
            return None
        log = StageLog(self.settings, self.name, self.graph)
        made = guarded(lambda: self._make_another(arguments, log), self.name, log)
        if made is None:
            return None
        results = made.attempt(arguments)
        return None if results is UNFIT else results

    def entry(self, constants: Constants | None) -> bytes | None:
        """Serialize the first program for other processes; None if that is not possible, or `constants` is None."""
        program = self.programs[0]
        describe, program.describe = getattr(program, "describe", None), None
        if describe is None or constants is None or self.settings.logs or self.settings.dump:
            return None
        key, held = describe()
        return None if key is None else kept_programs.to_bytes(program.form, key, held, constants)

    def watch(self, seconds: dict[object, float] | None) -> None:
        """Do nothing: a program is a single part."""

    def parts(self, depth: int = 0) -> list[Part]:
        """Describe how the graph runs now."""
        nodes = [node for node in self.graph.nodes if node.kind != "prim::Constant"]
        return [Part(depth, "native", len(nodes), nodes[0].source_range, "", None)] if nodes else []

    def _put_first(self, program: Program) -> None:
        """Try this program first from now on. The list is replaced, not changed, since other threads may iterate over it."""
        with self._lock:
            self.programs = [program, *(each for each in self.programs if each is not program)]

    def _is_worth_another(self) -> bool:
        """Count a miss; return whether misses are frequent enough and programs few enough to make another one."""
        with self._lock:
            self._misses += 1
            return len(self.programs) < _MAX_PROGRAMS and self._misses == _MISSES_BEFORE_COMPILING

    def _make_another(self, arguments: Sequence[object], log: StageLog) -> Program:
        for program in self.programs:
            self.changing |= program.changed_sources(arguments)
            for place, dims in program.changed_dims(arguments).items():
                self.dims[place] = self.dims.get(place, frozenset()) | dims
        made = self.make(arguments, log)
        made.describe = None  # only one program of a kind is kept for other processes
        self._put_first(made)
        self._misses = 0
        return made

    def make(self, arguments: Sequence[object], log: StageLog) -> Program:
        """Compile a program for arguments. Cut says which node prevents a program for the whole graph."""
        small = Budget(_FIRST_MAX_ROUNDS, _FIRST_MAX_NODES, open_loops=False)
        if needs_gradients(self.graph, arguments):
            return self._compile_whole(arguments, Budget(_MAX_ROUNDS, _MAX_NODES, open_loops=True), log)
        try:
            return self._compile_whole(arguments, small, log)
        except NOT_NATIVE as error:
            reason = error
        try:
            _check_size(self.graph)
            made = compile_structured(self.graph, arguments, self.owns_lists, self.written_later, self.settings, log)
            return made if self.has_one_kind else OfOneKind(made, arguments, append_only(self.graph))
        except NOT_NATIVE as error:
            text = str(error)
            log("graph_breaks", lambda: f"no program with loops of its own: {text}")
        if isinstance(reason, TooManyRounds):
            return self._compile_whole(arguments, Budget(_MAX_ROUNDS, _MAX_NODES, open_loops=True), log)
        raise reason

    def _compile_whole(self, arguments: Sequence[object], budget: Budget, log: StageLog) -> WholeProgram:
        gradients = needs_gradients(self.graph, arguments)
        dims = {} if gradients else self.dims
        return compile_whole(self.graph, arguments, Wish(self.changing, dims, gradients, budget), self.settings, log)


def needs_gradients(graph: Graph, arguments: Sequence[object]) -> bool:
    """Return whether results for these arguments need gradients."""
    return state.grad_enabled and any(map(_requires_grad, (*arguments, *_attributes_of(graph, arguments))))


def _requires_grad(value: object) -> bool:
    if isinstance(value, list | tuple | dict):
        return any(map(_requires_grad, value.values() if isinstance(value, dict) else value))
    return isinstance(value, Tensor) and value.requires_grad


def _attributes_of(graph: Graph, arguments: Sequence[object]) -> Iterator[object]:
    """Yield the current values of the attributes that a graph reads."""
    found: dict[Value, object] = dict(zip(graph.inputs, arguments, strict=True))
    for node in graph.all_nodes():
        if node.kind == "prim::GetAttr" and isinstance(found.get(node.input()), ScriptObject):
            found[node.output] = found[node.input()].slots[node["name"]]
            yield found[node.output]


def _check_size(graph: Graph) -> None:
    if sum(1 for node in graph.all_nodes() if node.kind != "prim::Constant") > _MAX_STRUCTURED_NODES:
        raise Unsupported(f"more than {_MAX_STRUCTURED_NODES} nodes")


def guarded(make: Callable[[], Made], name: str, log: StageLog) -> Made | None:
    """Call `make`; return None if there is no native form, or making it fails."""
    try:
        return make()
    except NOT_NATIVE as reason:
        text = str(reason)
        log("graph_breaks", lambda: f"runs in the interpreter: {text}")
    except Exception as error:  # the interpreter is correct whatever is wrong with the compilation
        warnings.warn(
            f"jit: running {name} in the interpreter, because making native code of it failed, which should be reported: "
            f"{type(error).__name__}: {error}", stacklevel=3,
        )  # fmt: skip
    return None
