"""What the jit's executor calls to have a graph run natively.

In: a function's graph as the executor runs it, and arguments. Out: a callable over arguments like these, or None where
there is none. Graphs without loops and branches become one compiled graph, all others a structured program.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

from rushlight.autograd.grad_mode import no_grad
from rushlight.compiler.logs import StageLog
from rushlight.compiler.scripted.regions import Unsupported
from rushlight.compiler.scripted.straight import attributes_of, compile_straight
from rushlight.compiler.scripted.translate import Translation, translate
from rushlight.compiler.scripted.values import kind_of
from rushlight.compiler.settings import from_environment
from rushlight.core.parallel import get_num_threads
from rushlight.core.symbolic import UnguardedSizeError
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import DataDependentError
from rushlight.core.thread_state import state
from rushlight.inductor.build import BuildError, CompilerMissing
from rushlight.inductor.sizes import UnsupportedSize
from rushlight.inductor.structured import Kind, ListOf
from rushlight.inductor.structured_call import Stopped, StructuredCall
from rushlight.jit.ir.graph import Graph
from rushlight.jit.passes.lower_tuples import lower_simple_tuples
from rushlight.jit.runtime.native import set_native_compiler

_NOT_NATIVE = (
    Unsupported, DataDependentError, UnsupportedSize, UnguardedSizeError, NotImplementedError, CompilerMissing, BuildError,
)  # fmt: skip


class NativeProgram:
    """A structured program as the executor calls it: the graph's results for a function's arguments, None if it gave up."""

    def __init__(self, translation: Translation, call: StructuredCall):
        self.sources = translation.sources
        self.structure = translation.structure
        self.call = call

    def __call__(self, arguments: Sequence[object]) -> list | None:
        values = [source.read(arguments) for source in self.sources]
        if not _fit(values, self.call.inputs):
            return None
        values = [_contiguous(value) if isinstance(value, Tensor) else value for value in values]
        try:
            results = self.call(*values)
        except Stopped:
            return None
        return [_built(each, results) for each in self.structure]


def _fit(values: Sequence[object], kinds: Sequence[Kind]) -> bool:
    """Whether attributes are still of the kinds that the program takes, and no gradients are asked for."""
    for value, kind in zip(values, kinds, strict=True):
        if kind_of(value) != kind and not (isinstance(kind, ListOf) and value == []):
            return False
        if isinstance(value, Tensor) and state.grad_enabled and value.requires_grad:
            return False
    return True


def _contiguous(tensor: Tensor) -> Tensor:
    return tensor if tensor._impl.is_contiguous() else tensor.contiguous()


def _built(structure: object, results: list) -> object:
    if isinstance(structure, tuple):
        return tuple(_built(each, results) for each in structure)
    return None if structure is None else results[structure]


def compile_native(graph: Graph, arguments: Sequence[object], name: str) -> Callable[[Sequence[object]], list | None] | None:
    """What runs a graph natively for arguments like these; None where it has no native form."""
    copied = graph.copy()
    lower_simple_tuples(copied)
    settings = from_environment()
    log = StageLog(settings, name)
    try:
        if state.grad_enabled and any(_needs_grad(value) for value in attributes_of(copied, arguments).values()):
            raise Unsupported("gradients are needed")
        with no_grad():
            if not any(node.blocks for node in copied.nodes):
                return compile_straight(copied, arguments, settings, log)
            translation = translate(copied, arguments, settings.threads or get_num_threads())
            log("loops", lambda: str(translation.program))
            call = StructuredCall(translation.program, settings.debug_cpp)
            log("code", lambda: call.source)
    except _NOT_NATIVE as reason:
        text = str(reason)
        log("graph_breaks", lambda: f"runs in the interpreter: {text}")
        return None
    except Exception as error:  # the interpreter is right whatever is wrong with the compilation
        warnings.warn(
            f"jit: running {name} in the interpreter, because making native code of it failed, which should be reported: "
            f"{type(error).__name__}: {error}", stacklevel=2,
        )  # fmt: skip
        return None
    return NativeProgram(translation, call)


def _needs_grad(value: object) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


set_native_compiler(compile_native)
