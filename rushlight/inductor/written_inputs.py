"""Calls of graphs that write to their inputs: new versions for these, and eager's errors for inputs that may not be written to.

In: what runs a graph, and which inputs it writes to. Out: the same with the marks that autograd looks for. Stage: inductor,
calling.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rushlight.core.tensor_impl import TensorImpl, count_write
from rushlight.core.thread_state import state


def noting_writes(
    run: Callable[..., tuple], reference: Callable[..., tuple], places: Sequence[int]
) -> Callable[..., tuple]:
    """`run`, after which the inputs at `places` count as written to; `reference`, which raises what is due, where one of
    them may not be written to."""

    def counted(*inputs: object) -> tuple:
        if not all(_is_writable(inputs[place]._impl) for place in places):
            return reference(*inputs)
        results = run(*inputs)
        for place in places:
            count_write(inputs[place]._impl)
        return results

    return counted


def _is_writable(impl: TensorImpl) -> bool:
    if impl.inference and not state.inference:
        return False
    return impl.storage.buffer is None or impl.array.flags.writeable
