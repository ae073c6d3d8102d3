"""`torch._inductor.hooks`: functions that generated programs call with their intermediate values."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from rushlight.core.tensor import Tensor

INTERMEDIATE_HOOKS: list[Callable[[str, Tensor], None]] = []


@contextlib.contextmanager
def intermediate_hook(fn: Callable[[str, Tensor], None]) -> Iterator[None]:
    """Have `fn(name, value)` called for each intermediate value in a block."""
    INTERMEDIATE_HOOKS.append(fn)
    try:
        yield
    finally:
        INTERMEDIATE_HOOKS.remove(fn)


def run_intermediate_hooks(name: str, val: Tensor) -> None:
    """Call the hooks for one value; they are not called for what a hook computes."""
    hooks, INTERMEDIATE_HOOKS[:] = list(INTERMEDIATE_HOOKS), []
    try:
        for hook in hooks:
            hook(name, val)
    finally:
        INTERMEDIATE_HOOKS[:] = hooks
