"""Native forms of a graph, one for each kind of arguments, made for what has taken the interpreter long enough.

In: arguments, and how long the interpreter took for such. Out: the results of native code, or None where the interpreter has
to run. Arguments of one kind have the same dtypes, sizes and strides of tensors, and the same types otherwise.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from rushlight.amp.autocast_mode import is_autocast_enabled
from rushlight.core.device import CPU
from rushlight.core.dispatch_key import AUTOGRAD_BITS, CPU_KEYS
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.jit.ir.graph import Graph
from rushlight.jit.runtime.native import Native, native_compiler
from rushlight.jit.runtime.objects import ScriptObject
from rushlight.jit.settings import native_seconds

_PLAIN = (bool, int, float, str, type(None))
_MOST_KINDS = 16
_MOST_MISSES = 8


def spec_of(arguments: Sequence[object]) -> tuple | None:
    """What kind of arguments these are; None for kinds that have no native form, as where gradients are needed."""
    if state.modes or state.include & ~AUTOGRAD_BITS or is_autocast_enabled("cpu"):
        return None
    parts: list[object] = [state.grad_enabled]
    for value in arguments:
        if isinstance(value, Tensor):
            impl = value._impl
            if impl.key_set != CPU_KEYS or impl.device is not CPU or impl.fake:
                return None
            needs_grad = state.grad_enabled and impl.requires_grad
            if needs_grad:
                return None
            parts.append((impl.dtype, impl.sizes, impl.strides))
        elif isinstance(value, _PLAIN):
            parts.append(type(value))
        elif isinstance(value, list | tuple):
            part = _spec_of_items(value)
            if part is None:
                return None
            parts.append(part)
        elif isinstance(value, dict):
            part = spec_of(list(value.values()))
            if part is None:
                return None
            parts.append((*value, part))
        elif isinstance(value, ScriptObject):
            parts.append(value.type)
        else:
            return None
    return tuple(parts)


def _spec_of_items(values: Sequence[object]) -> tuple | None:
    """A list of numbers is of one kind whatever its length, one of tensors is not."""
    kinds = set(map(type, values))
    if isinstance(values, list) and len(kinds) == 1 and kinds <= {bool, int, float}:
        return (list, *kinds)
    if kinds == {str}:
        return (type(values), str, len(values))
    inner = spec_of(values)
    return None if inner is None else (type(values), inner)


@dataclass
class Kind:
    """What is known for one kind of arguments."""

    limit: float = field(default_factory=native_seconds)
    """How many seconds of the interpreter's native code is made after; reading the environment takes as long as a short run."""
    seconds: float = 0.0
    runs: int = 0
    tried: bool = False
    native: Native | None = None
    misses: int = 0


class Specialized:
    """The native forms of one graph. Threads may ask at the same time; one of them compiles, the others go on without."""

    def __init__(self, graph: Graph, name: str):
        self.graph = graph
        self.name = name
        self._kinds: dict[tuple, Kind] = {}
        self._lock = threading.Lock()

    def kind_of(self, arguments: Sequence[object]) -> Kind | None:
        """The record for such arguments; None where no native code is to be made for them."""
        spec = spec_of(arguments)
        if spec is None:
            return None
        found = self._kinds.get(spec)
        if found is None and len(self._kinds) < _MOST_KINDS:
            found = self._kinds.setdefault(spec, Kind())
        return found

    def run(self, kind: Kind, arguments: Sequence[object]) -> list | None:
        """The results of native code, if there is some and it serves. It is made here, by the call after the one that makes it
        worth while: a program that calls once does not wait for it."""
        if not kind.tried and kind.runs and kind.seconds >= kind.limit:
            self._compile(kind, arguments)
        native = kind.native
        if native is None:
            return None
        results = native(arguments)
        if results is None:
            kind.misses += 1
            if kind.misses > _MOST_MISSES:
                kind.native = None
        else:
            kind.misses = 0
        return results

    def compile_now(self, kind: Kind, arguments: Sequence[object]) -> bool:
        """Make native code for such arguments, unless that was tried; whether there is some."""
        if not kind.tried:
            self._compile(kind, arguments)
        return kind.native is not None

    def note(self, kind: Kind, seconds: float) -> None:
        """The interpreter took this long for such arguments; native code is made once that has added up to enough."""
        kind.seconds += seconds
        kind.runs += 1

    def _compile(self, kind: Kind, arguments: Sequence[object]) -> None:
        with self._lock:
            if kind.tried:
                return
            kind.tried = True
        compiler = native_compiler()
        if compiler is not None:
            kind.native = compiler(self.graph, arguments, self.name)
