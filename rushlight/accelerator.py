"""`torch.accelerator`: the one kind of accelerator that a machine has, a GPU. Without one, programs ask, and go on without."""

from __future__ import annotations

from typing import Any

from rushlight.core.device import device, gpus
from rushlight.core.lazy_module import LazyModule

cuda = LazyModule("rushlight.cuda")
_NONE = "Cannot access accelerator device when none is available."


def is_available() -> bool:
    """Return whether there is an accelerator."""
    return gpus.count() > 0


def current_accelerator(check_available: bool = False) -> device | None:
    """Return the kind of accelerator; None if there is none."""
    return device("cuda") if is_available() else None


def device_count() -> int:
    """Return the number of accelerators."""
    return gpus.count()


def _cuda() -> Any:
    """Return the module of the accelerator; RuntimeError if there is none."""
    if not is_available():
        raise RuntimeError(_NONE)
    return cuda


def current_device_index() -> int:
    """Return the index of the accelerator in use; RuntimeError if there is none."""
    return _cuda().current_device()


current_device_idx = current_device_index


def set_device_index(device: object, /) -> None:
    """Use another accelerator; RuntimeError if there is none."""
    _cuda().set_device(device)


set_device_idx = set_device_index


def current_stream(device: object = None, /) -> Any:
    """Return the stream in use; RuntimeError if there is none."""
    return _cuda().current_stream(device)


def set_stream(stream: Any) -> None:
    """Use another stream; RuntimeError if there is no accelerator."""
    _cuda().set_stream(stream)


def synchronize(device: object = None, /) -> None:
    """Wait for the accelerator; RuntimeError if there is none."""
    _cuda().synchronize(device)


def empty_cache() -> None:
    """Release the accelerator's unused memory; RuntimeError if there is none."""
    _cuda().empty_cache()


def memory_allocated(device_index: object = None, /) -> int:
    """Return the bytes that tensors hold on the accelerator; RuntimeError if there is none."""
    return _cuda().memory_allocated(device_index)


def max_memory_allocated(device_index: object = None, /) -> int:
    """Return the most bytes that tensors held at once; RuntimeError if there is no accelerator."""
    return _cuda().max_memory_allocated(device_index)


def memory_reserved(device_index: object = None, /) -> int:
    """Return the bytes that the allocator has from the driver; RuntimeError if there is no accelerator."""
    return _cuda().memory_reserved(device_index)


def max_memory_reserved(device_index: object = None, /) -> int:
    """Return the most bytes that the allocator had at once; RuntimeError if there is no accelerator."""
    return _cuda().max_memory_reserved(device_index)


def memory_stats(device_index: object = None, /) -> dict[str, Any]:
    """Return the allocator's counters; RuntimeError if there is no accelerator."""
    return _cuda().memory_stats(device_index)


def get_memory_info(device_index: object = None, /) -> tuple[int, int]:
    """Return the accelerator's free and total bytes; RuntimeError if there is none."""
    return _cuda().mem_get_info(device_index)


def reset_peak_memory_stats(device_index: object = None, /) -> None:
    """Let the peaks start from the present numbers; RuntimeError if there is no accelerator."""
    _cuda().reset_peak_memory_stats(device_index)


def reset_accumulated_memory_stats(device_index: object = None, /) -> None:
    """Let the sums start from 0; RuntimeError if there is no accelerator."""
    _cuda().reset_accumulated_memory_stats(device_index)


class device_index:  # noqa: N801  (torch's name)
    """A context in which another accelerator is used; None changes nothing. RuntimeError for a number if there is none."""

    def __init__(self, device: int | None, /) -> None:
        self.idx = device

    def __enter__(self) -> None:
        if self.idx is not None:
            self._before = current_device_index()
            set_device_index(self.idx)

    def __exit__(self, *args: object) -> None:
        if self.idx is not None:
            set_device_index(self._before)
