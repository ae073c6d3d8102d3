"""`torch.cuda.memory`: what the caching allocator holds, and limits on it. Numbers are bytes; 0 without a GPU."""

from __future__ import annotations

from typing import Any

from rushlight.core.absent import absent_class
from rushlight.core.device import device
from rushlight.cuda import pinned, runtime
from rushlight.cuda.allocator import Counter
from rushlight.cuda.streams import index_of, require_device

__all__ = [
    "MemPool",
    "empty_cache",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_summary",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_per_process_memory_fraction",
]

MemPool = absent_class("torch.cuda.MemPool", "a captured graph has a pool of its own")
_Device = device | str | int | None


def _counter(where: _Device, name: str) -> Counter:
    if not runtime.is_present():
        return Counter()
    allocator = runtime.device_at(index_of(where)).allocator
    allocator.settle()
    return allocator.counters[name]


def memory_allocated(device: _Device = None) -> int:
    """Return the bytes that tensors hold on a device."""
    return _counter(device, "allocated_bytes").current


def max_memory_allocated(device: _Device = None) -> int:
    """Return the most bytes that tensors held at once."""
    return _counter(device, "allocated_bytes").peak


def memory_reserved(device: _Device = None) -> int:
    """Return the bytes that the allocator has from the driver."""
    return _counter(device, "reserved_bytes").current


def max_memory_reserved(device: _Device = None) -> int:
    """Return the most bytes that the allocator had from the driver at once."""
    return _counter(device, "reserved_bytes").peak


memory_cached, max_memory_cached = memory_reserved, max_memory_reserved


def memory_stats(device: _Device = None) -> dict[str, Any]:
    """Return the allocator's counters under PyTorch's names; an empty dict without a GPU."""
    return _flat("", memory_stats_as_nested_dict(device))


def memory_stats_as_nested_dict(device: _Device = None) -> dict[str, Any]:
    """Return the allocator's counters as nested dicts; an empty one without a GPU."""
    if not runtime.is_present():
        return {}
    allocator = runtime.device_at(index_of(device)).allocator
    allocator.settle()
    found: dict[str, Any] = {
        name: {"all": {"current": count.current, "peak": count.peak, "allocated": count.allocated, "freed": count.freed}}
        for name, count in allocator.counters.items()
    }
    return found | {"num_alloc_retries": allocator.retries, "num_ooms": allocator.failures}


def _flat(prefix: str, found: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in sorted(found.items()):
        flat |= _flat(f"{prefix}{name}.", value) if isinstance(value, dict) else {f"{prefix}{name}": value}
    return flat


def memory_snapshot(mempool_id: object = None) -> list[dict[str, Any]]:
    """Return the allocator's segments and their blocks. NotImplementedError for a pool: segments of all are given."""
    if mempool_id is not None:
        raise NotImplementedError("memory_snapshot: segments are not given by pool; leave mempool_id out")
    require_device()
    return [
        {
            "device": found.index, "address": segment.address, "total_size": segment.size, "stream": segment.stream,
            "segment_type": "small" if segment.is_small else "large",
            "blocks": [
                {"address": block.address, "size": block.size, "state": "inactive" if block.is_free else "active_allocated"}
                for block in segment.blocks
            ],
        }
        for found in runtime.opened_devices() for segment in found.allocator.segments()
    ]  # fmt: skip


def memory_summary(device: _Device = None, abbreviated: bool = False) -> str:
    """Return a table of the allocator's counters; `abbreviated`, without what was allocated and freed over time."""
    require_device()
    index, rows = index_of(device), memory_stats_as_nested_dict(device)
    columns = ["current", "peak"] if abbreviated else ["current", "peak", "allocated", "freed"]
    lines = [f"Memory of cuda:{index}", f"{'':18}" + "".join(f"{'now' if name == 'current' else name:>16}" for name in columns)]
    for name, row in rows.items():
        if isinstance(row, dict):
            lines.append(f"{name:18}" + "".join(f"{row['all'][column]:>16,}" for column in columns))
    return "\n".join([*lines, f"retries {rows['num_alloc_retries']}, failures {rows['num_ooms']}"])


def empty_cache() -> None:
    """Give unused memory back to the driver."""
    for found in runtime.opened_devices():
        runtime.device_at(found.index).allocator.empty_cache()
    if runtime.opened_devices():
        pinned.release_cached()
        runtime.device_at()


def mem_get_info(device: _Device = None) -> tuple[int, int]:
    """Return a device's free and total bytes."""
    index = index_of(device)
    with runtime.on_device(index) as found:
        return found.driver.memory_info()


def reset_peak_memory_stats(device: _Device = None) -> None:
    """Let the peaks start from the present numbers."""
    for count in runtime.device_at(index_of(device)).allocator.counters.values():
        count.peak = count.current


def reset_accumulated_memory_stats(device: _Device = None) -> None:
    """Let the sums start from 0."""
    for count in runtime.device_at(index_of(device)).allocator.counters.values():
        count.allocated = count.freed = 0


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


def set_per_process_memory_fraction(fraction: float, device: _Device = None) -> None:
    """Let the allocator take at most this part of a device's memory; ValueError outside 0 to 1."""
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    index = index_of(device)
    found = runtime.device_at(index)
    found.allocator.limit = int(fraction * found.driver.properties(index).total_memory)
