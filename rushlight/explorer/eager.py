"""Eager operators and backward passes of a program, while a recording goes on.

In: calls of operators on the thread that is recorded. Out: for each operator and line of the program, how often and how long it
ran, and the way of its first call through the dispatcher; for each line that runs a backward pass, its tape.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rushlight.autograd.node import Edge, Node
from rushlight.autograd.profiler_recording import RecordedFacts, Recording, Span
from rushlight.core.dispatch_key import DispatchKey
from rushlight.core.pytree import tree_flatten
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.explorer.places import Files, Place
from rushlight.explorer.texts import short_text
from rushlight.fx.annotations import PACKAGE_FOLDER, describe_value
from rushlight.jit.tracing.state import is_tracing
from rushlight.ops.dispatcher import Kernel, OpOverload

MAX_CALLS = 1_000  # operators times lines
MAX_TAPES = 12
MAX_NODES = 1_500  # nodes shown of one tape
_PLACE = "rushlight_explorer_place"
_PASSES_ON = (
    DispatchKey.Functionalize, DispatchKey.Conjugate, DispatchKey.Negative, DispatchKey.ADInplaceOrView, DispatchKey.Autograd,
    DispatchKey.Dual, DispatchKey.Autocast, DispatchKey.Anomaly, DispatchKey.Narrow,
)  # fmt: skip
"""Keys whose kernels dispatch the same operator again, to the keys below."""


class EagerRecording(Recording):
    """Notes eager calls of the thread on which it is started. A profiler that the program uses goes first."""

    gives_way = True

    def __init__(self, files: Files):
        super().__init__(RecordedFacts())
        self.files = files
        self.calls: dict[tuple[OpOverload, Place | None], dict] = {}
        self.tapes: list[dict] = []
        self.left_out = 0
        self._has_ended = False
        self._place: Place | None = None
        self._first: dict | None = None

    def end(self) -> None:
        """End: now, or at the next call on the thread that began it, where this is another one or a profiler runs."""
        self._has_ended = True
        if state.recording is self:
            self.stop()

    def begin(self, name: str, annotation: bool = False) -> Span:
        """A span that begins now, which nobody keeps."""
        return Span(name, time.perf_counter_ns())

    def finish(self, span: Span) -> None:
        """End a span."""

    def apply(self, node: Any, run: Callable[[], Any]) -> Any:
        """Run a node of the backward pass."""
        return run()

    def call(self, op: OpOverload, below: int, function: Callable, args: tuple, kwargs: dict) -> Any:
        """Call an operator. Calls while something is captured are not the program's; describing values would be traced."""
        if self._has_ended:
            self.end()
            return function(*args, **kwargs)
        if state.modes or is_tracing() or below >> DispatchKey.Meta & 1:
            return function(*args, **kwargs)
        if self.depth:
            return self._call_within(op, below, function, args, kwargs)
        self._place = self._user_place()
        known = self.calls.get((op, self._place))
        made = known or self._new_call(op, below, args)
        self._first = made if known is None else None
        self.depth, began = 1, time.perf_counter()
        try:
            result = function(*args, **kwargs)
        finally:
            self.depth = 0
            if made is not None:
                made["seconds"] += time.perf_counter() - began
                made["count"] += 1
        self._note_result(result)
        if self._first is not None:
            made["outputs"] = [short_text(leaf) for leaf in tree_flatten(result)[0]]
        return result

    def _call_within(self, op: OpOverload, below: int, function: Callable, args: tuple, kwargs: dict) -> Any:
        """A call that another operator makes."""
        if self._first is not None:
            self._first["steps"] += walk(op, below, self.depth)
        self.depth += 1
        try:
            result = function(*args, **kwargs)
        finally:
            self.depth -= 1
        self._note_result(result)
        return result

    def _new_call(self, op: OpOverload, below: int, args: tuple) -> dict | None:
        if len(self.calls) == MAX_CALLS:
            self.left_out += 1
            return None
        made = self.calls[op, self._place] = {
            "operator": op.name, "places": [self._place] if self._place else [], "seconds": 0.0, "count": 0,
            "inputs": [short_text(value) for value in args], "outputs": [], "steps": list(walk(op, below, 0)),
        }  # fmt: skip
        return made

    def _note_result(self, result: object) -> None:
        """Tell the nodes of results from which line of the program they are."""
        if self._place is not None and isinstance(result, Tensor):
            node = getattr(result._impl.autograd, "grad_fn", None)  # asking the tensor may make, or refuse, a view's history
            if node is not None:
                node.metadata.setdefault(_PLACE, self._place)

    def _user_place(self) -> Place | None:
        """The innermost line of the program."""
        frame = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename.startswith(PACKAGE_FOLDER):
            frame = frame.f_back
        return None if frame is None else self.files.place(frame.f_code.co_filename, frame.f_lineno)

    def backward(self, roots: Sequence[Edge]) -> None:
        """Take the tape of a backward pass that begins."""
        if self._has_ended or state.modes or len(self.tapes) == MAX_TAPES:
            return
        place = self._user_place()
        if any(tape["places"] == [place] for tape in self.tapes):
            return
        self.tapes.append(tape_of([node for node, _ in roots if node is not None], place))


def walk(op: OpOverload, key_set: int, depth: int) -> Iterator[dict]:
    """The way of a call through the dispatcher: at each step the keys, the one chosen, and its kernel."""
    while key_set:
        chosen = op.choose(key_set)
        if chosen is None:
            return
        key, kernel, below = chosen
        yield {"keys": names_of(key_set), "key": key.name, "kernel": f"{op.name}: {_name_of(kernel)}", "depth": depth}
        if key not in _PASSES_ON:
            return
        key_set = below


def names_of(key_set: int) -> list[str]:
    """The names of the keys of a set, the highest first."""
    return [key.name for key in sorted(DispatchKey, reverse=True) if key_set >> key & 1]


def _name_of(kernel: Kernel) -> str:
    """A kernel's function, with its module."""
    function = kernel.function
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None) or type(function).__name__
    module = getattr(function, "__module__", None)
    return f"{module}.{name}" if module else name


def tape_of(roots: Sequence[Node], place: Place | None) -> dict:
    """The nodes from which a backward pass begins and all that it reaches, with what they saved."""
    indices: dict[Node, int] = {}
    memory: dict[int, int] = {}
    edges: list[list[int]] = []
    described = []
    waiting = deque(dict.fromkeys(roots))
    met = set(waiting)
    while waiting and len(described) < MAX_NODES:
        node = waiting.popleft()
        indices[node] = len(described)
        saved = []
        for name, tensor in _saved_by(node):
            nbytes = tensor.numel() * tensor.element_size()
            saved.append([name, describe_value(tensor), nbytes])
            memory[id(tensor._impl.storage)] = max(nbytes, memory.get(id(tensor._impl.storage), 0))
        where = node.metadata.get(_PLACE)
        described.append({"name": node.name(), "saved": saved, "places": [where] if where else []})
        for after, _ in node.next_functions:
            if after is not None and after not in met:
                met.add(after)
                waiting.append(after)
    for node, index in indices.items():
        edges += [[index, indices[after]] for after, _ in node.next_functions if after in indices]
    return {
        "title": f"backward from {roots[0].name() if roots else 'nothing'}", "places": [place] if place else [],
        "nodes": described, "edges": edges, "bytes": sum(memory.values()),
    }  # fmt: skip


def _saved_by(node: Node) -> Iterator[tuple[str, Tensor]]:
    """The tensors that a node keeps for its backward, by name."""
    names = [f"_saved_{name}" for name in getattr(node, "saved", None) or () if isinstance(name, str)]
    try:
        found = [(name[7:], getattr(node, name)) for name in names]
        found += [(f"saved_tensors[{index}]", each) for index, each in enumerate(getattr(node, "saved_tensors", ()))]
    except (RuntimeError, AttributeError):  # freed, or written to since: the backward pass itself says so
        return
    yield from ((name, value) for name, value in found if isinstance(value, Tensor))
