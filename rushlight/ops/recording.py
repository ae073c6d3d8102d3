"""Kernels at the key Tracer, which intercept every operator call of a thread before autograd, with composites whole.

In: a function `record(op, key_set, args, kwargs)`. Out: inside `recording(record)`, each call of this thread goes through it.
TorchScript's tracing (`jit.tracing`) and `torch.export` record programs this way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rushlight.core.dispatch_key import DispatchKey, bit
from rushlight.core.thread_state import state
from rushlight.core.wrapper_subclasses import constants_of_graphs
from rushlight.ops.dispatcher import Kernel, OpOverload, register_fallback

TRACER = bit(DispatchKey.Tracer)


@contextmanager
def recording(record: Callable[[OpOverload, int, tuple, dict], object]) -> Iterator[None]:
    """Pass each operator call of this thread to `record`, which returns the call's result."""
    before, include = state.recorder, state.include
    state.recorder, state.include = record, include | TRACER
    try:
        yield
    finally:
        state.recorder, state.include = before, include


@contextmanager
def suspended() -> Iterator[None]:
    """Return a context without recording."""
    include = state.include
    state.include = include & ~TRACER
    try:
        yield
    finally:
        state.include = include


def _kernel(op: OpOverload, key_set: int) -> Callable:
    def run(*args: object, **kwargs: object) -> object:
        record = state.recorder
        if record is None or constants_of_graphs((*args, *kwargs.values())):
            # A constant of graphs is not recorded itself; its operators on inner tensors are.
            return op.redispatch(key_set, *args, **kwargs)
        return record(op, key_set, args, kwargs)

    return run


register_fallback(DispatchKey.Tracer, Kernel(_kernel, linked=True))
