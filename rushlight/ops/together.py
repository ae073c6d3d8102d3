"""Functions of lists of tensors, which a GPU runs as one graph: `call_together`.

In: a function, tensors and numbers. Out: its results. Where all tensors are on one GPU, and nothing observes single operators,
the provider of `SERVICE` compiles the function for these sizes when it is called with them a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from rushlight.core import function_modes
from rushlight.core.dispatch_key import CUDA_KEYS
from rushlight.core.following import is_compiling
from rushlight.core.providers import import_provider
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")
_MAX_STACKED = 32  # tensors that are stacked at once
SERVICE = "functions of lists on GPUs"
Function = Callable[[Sequence[Tensor], Sequence[float], Hashable], tuple]


class Together:
    """What runs a function as one graph: the provider sets `run`, which returns NotImplemented where it does not."""

    def __init__(self) -> None:
        self.run: Callable[[Function, Sequence[Tensor], Sequence[float], Hashable], object] | None = None


together = Together()


def call_together(
    function: Function, tensors: Sequence[Tensor], numbers: Sequence[float] = (), options: Hashable = ()
) -> tuple:  # fmt: skip
    """Return function(tensors, numbers, options): a tuple of new tensors; it may also write to `tensors`.

    `numbers` are floats, which may differ from call to call. Other facts are `options`. `function` must be one object for all
    calls.
    """
    if not is_compiling() and may_be_a_graph(tensors):
        if together.run is None:
            import_provider(SERVICE)
        made = together.run(function, tensors, numbers, options)
        if made is not NotImplemented:
            return made
    return function(tensors, numbers, options)


def stacked(numbers: Sequence[Tensor]) -> Tensor:
    """Return tensors without dimensions as a vector; many of them in two steps, since concatenations in graphs have a limit."""
    parts = [aten.stack.default(numbers[start : start + _MAX_STACKED]) for start in range(0, len(numbers), _MAX_STACKED)]
    return parts[0] if len(parts) == 1 else aten.cat.default(parts)


def may_be_a_graph(tensors: Sequence[Tensor]) -> bool:
    """Return whether tensors are several plain ones on one GPU, and nothing records or observes operators."""
    if len(tensors) < 2:
        return False
    first = tensors[0]._impl.device
    if first.type != "cuda" or state.modes or state.batch_levels or state.dual_levels:
        return False
    if state.recorder is not None or function_modes.entered:
        return False
    for tensor in tensors:
        impl = tensor._impl
        if impl.key_set != CUDA_KEYS or impl.device != first or impl.fake or (impl.inference and not state.inference):
            return False
        if state.grad_enabled and impl.requires_grad:
            return False
    return True
