"""`torch.accelerator`: the accelerator of this process, of which there is none."""

from __future__ import annotations

from typing import Any, NoReturn

from rushlight.core.device import device


def is_available() -> bool:
    """Whether there is an accelerator: never."""
    return False


def device_count() -> int:
    """The number of accelerators: 0."""
    return 0


def current_accelerator(check_available: bool = False) -> device | None:
    """The accelerator's device without an index: None."""
    return None


def synchronize(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises RuntimeError: there is no accelerator."""
    raise RuntimeError("Cannot access accelerator device when none is available.")


current_device_index = current_device_idx = set_device_index = set_device_idx = current_stream = set_stream = synchronize
empty_cache = memory_allocated = max_memory_allocated = memory_reserved = max_memory_reserved = memory_stats = synchronize
reset_peak_memory_stats = get_memory_info = synchronize
