"""`torch.accelerator`: the one kind of accelerator that a machine has. There is none here: programs ask, and go on without."""

from __future__ import annotations

from rushlight.core.device import device

_NONE = "Cannot access accelerator device when none is available."


def is_available() -> bool:
    """Return whether there is an accelerator: never."""
    return False


def current_accelerator(check_available: bool = False) -> device | None:
    """Return the kind of accelerator; None, as there is none."""
    return None


def device_count() -> int:
    """Return the number of accelerators: 0."""
    return 0


def current_device_index() -> int:
    """Raise RuntimeError, as there is no accelerator whose index could be returned."""
    raise RuntimeError(_NONE)


current_device_idx = current_device_index


def set_device_index(device: object, /) -> None:
    """Use another accelerator; RuntimeError, as there is none."""
    raise RuntimeError(_NONE)


set_device_idx = set_device_index


def current_stream(device: object = None, /) -> None:
    """Return the stream in use; RuntimeError, as there is none."""
    raise RuntimeError(_NONE)


def synchronize(device: object = None, /) -> None:
    """Wait for the accelerator; RuntimeError, as there is none."""
    raise RuntimeError(_NONE)


def empty_cache() -> None:
    """Release the accelerator's unused memory; RuntimeError, as there is none."""
    raise RuntimeError(_NONE)


def memory_allocated(device_index: object = None, /) -> int:
    """Return the bytes that tensors hold on the accelerator; RuntimeError, as there is none."""
    raise RuntimeError(_NONE)


max_memory_allocated = memory_reserved = max_memory_reserved = memory_stats = memory_allocated
get_memory_info = reset_peak_memory_stats = reset_accumulated_memory_stats = set_stream = memory_allocated


class device_index:  # noqa: N801  (torch's name)
    """A context in which another accelerator is used; None changes nothing. RuntimeError for a number, as there is none."""

    def __init__(self, device: int | None, /) -> None:
        self.idx = device

    def __enter__(self) -> None:
        if self.idx is not None:
            raise RuntimeError(_NONE)

    def __exit__(self, *args: object) -> None:
        return None
