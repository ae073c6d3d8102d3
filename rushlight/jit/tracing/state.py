"""The state of an active trace: its graph, and the mapping from tensors to values.

In: tensors of the running program. Out: values of the graph. A thread has at most one active trace.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from rushlight.core.following import answers_when_followed
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import TensorImpl
from rushlight.core.thread_state import state
from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.tracing.frames import calling_frame, name_in, range_of
from rushlight.jit.types.kinds import TensorType
from rushlight.ops.recording import TRACER, recording, suspended

_NEEDS_GRAD = (
    "Cannot insert a Tensor that requires grad as a constant. Consider making it a parameter or input, or detaching the "
    "gradient\nTensor:\n"
)


class _Current(threading.local):
    tracing: TracingState | None = None


_current = _Current()


def tracing_state() -> TracingState | None:
    """Return the active trace of this thread; None also inside an operator."""
    return _current.tracing if state.include & TRACER else None


@answers_when_followed(False)
def is_tracing() -> bool:
    """Return whether this thread traces."""
    return _current.tracing is not None


def complete_type(tensor: Tensor) -> TensorType:
    """Return the complete type of a tensor."""
    impl = tensor._impl
    return TensorType(
        impl.dtype, tuple(map(int, impl.sizes)), tuple(map(int, impl.strides)), tensor.requires_grad, str(impl.device)
    )


class TracingState:
    """The graph of a trace, and the values of tensors. `strict`: containers among the outputs are errors or cause warnings."""

    def __init__(self, strict: bool = True):
        self.graph = Graph()
        self.strict = strict
        self.values: dict[TensorImpl, Value] = {}
        self.objects: dict[object, Value] = {}
        self.module_paths: dict[object, tuple[str, ...]] = {}

    @contextmanager
    def recording(self, record: Callable[..., object]) -> Iterator[TracingState]:
        """Return a context manager that records this thread's calls, each by `record(self, op, key_set, args, kwargs)`.

        RuntimeError inside another trace.
        """
        if _current.tracing is not None:
            raise RuntimeError("Tracing can't be nested: a trace is going on in this thread already")
        _current.tracing = self
        try:
            with recording(partial(record, self)):
                yield self
        finally:
            _current.tracing = None

    def locate(self) -> None:
        """Set the source range of new nodes to the running line."""
        self.graph.current_range = range_of(calling_frame(sys._getframe(1)))

    def value_of(self, tensor: Tensor) -> Value:
        """Return the value of a tensor; a constant for an unknown tensor. RuntimeError if that one requires grad."""
        found = self.values.get(tensor._impl)
        if found is not None:
            if not found.has_debug_name and found.node.kind not in ("prim::TracedAttr", "prim::NumToTensor"):
                name = name_in(calling_frame(sys._getframe(1)), tensor._impl)
                if name is not None:
                    found.debug_name = name
            return found
        if tensor.requires_grad:
            with suspended():
                raise RuntimeError(f"{_NEEDS_GRAD}{tensor.detach()!r}")
        return self.constant_tensor(tensor)

    def constant_tensor(self, tensor: Tensor) -> Value:
        """Add a tensor as a constant, and bind it to that value."""
        node = self.graph.insert("prim::Constant").set("value", tensor)
        node.output.set_type(complete_type(tensor))
        self.values[tensor._impl] = node.output
        return node.output

    def set_value(self, tensor: Tensor, value: Value) -> None:
        """Bind a tensor to a value."""
        self.values[tensor._impl] = value

    def is_traced(self, tensor: Tensor) -> bool:
        """Return whether a tensor is bound to a value that is not constant."""
        found = self.values.get(tensor._impl)
        return found is not None and not found.is_constant

    @contextmanager
    def module_call(self, path: tuple[str, ...], inner: Value) -> Iterator[Node]:
        """Return a context manager whose recording becomes a method of the module at `path`, whose object is `inner`."""
        node = self.graph.insert("prim::TracedModuleForward", [inner], 0).set("path", path)
        block: Block = node.add_block()
        with self.graph.inserting(at_end_of=block):
            yield node
