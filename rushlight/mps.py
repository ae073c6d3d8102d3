"""`torch.mps` on a library without Apple's GPUs: questions have their answer; what needs one raises as in torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn


def is_available() -> bool:
    """Whether there is such a GPU: never."""
    return False


def device_count() -> int:
    """The number of such GPUs: 0."""
    return 0


def _needing_gpu(call: str) -> Callable[..., NoReturn]:
    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(f"Cannot execute {call}() without MPS backend.")

    function.__doc__ = "Raises RuntimeError: there is no such GPU."
    return function


synchronize = _needing_gpu("deviceSynchronize")
empty_cache = _needing_gpu("emptyCache")
manual_seed = seed = get_rng_state = set_rng_state = _needing_gpu("getDefaultGenerator")
current_allocated_memory = _needing_gpu("currentAllocatedMemory")
driver_allocated_memory = _needing_gpu("driverAllocatedMemory")
