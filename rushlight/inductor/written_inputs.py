"""Calls of graphs that mutate inputs: they bump the inputs' versions, and raise eager's errors for read-only inputs.

In: a callable that runs a graph, and the inputs it mutates. Out: a callable that also does the bookkeeping for autograd. Stage:
inductor, calling.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rushlight.core.tensor_impl import TensorImpl, count_write
from rushlight.core.thread_state import state


def noting_writes(
    run: Callable[..., tuple], reference: Callable[..., tuple], positions: Sequence[int]
) -> Callable[..., tuple]:
    """Wrap `run` to increase the versions of the inputs at `positions`. If one of them is read-only, run `reference` instead,
    which raises the error."""

    def counted(*inputs: object) -> tuple:
        if not all(_is_writable(inputs[position]._impl) for position in positions):
            return reference(*inputs)
        results = run(*inputs)
        for position in positions:
            count_write(inputs[position]._impl)
        return results

    return counted


def _is_writable(impl: TensorImpl) -> bool:
    if impl.inference and not state.inference:
        return False
    if impl.storage.buffer is None or impl.device.type == "cuda":
        return True
    return impl.array.flags.writeable
