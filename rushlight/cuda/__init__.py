"""`torch.cuda`: GPUs. Without one, programs ask whether one is there, and go on without; what needs one raises AssertionError.

Nothing of a GPU's driver is loaded before the first question about it. See `driver.py` for what is asked of a driver.
"""

from __future__ import annotations

from typing import Any

from rushlight.core.absent import absent_function
from rushlight.core.device import device as torch_device
from rushlight.core.errors import OutOfMemoryError
from rushlight.cuda import runtime
from rushlight.cuda.driver import DeviceProperties, active_driver
from rushlight.cuda.driver import DriverError as CudaError
from rushlight.cuda.graphs import (
    CUDAGraph,
    graph,
    graph_pool_handle,
    is_current_stream_capturing,
    make_graphed_callables,
)
from rushlight.cuda.memory import (
    MemPool,
    empty_cache,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from rushlight.cuda.random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from rushlight.cuda.streams import (
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    index_of,
    require_device,
    set_stream,
    stream,
)

__all__ = [
    "CUDAGraph", "CudaError", "DeferredCudaCallError", "Event", "ExternalStream", "MemPool", "OutOfMemoryError", "Stream",
    "StreamContext", "can_device_access_peer", "current_device", "current_stream", "default_generators", "default_stream",
    "device", "device_count", "device_of", "empty_cache", "get_arch_list", "get_device_capability", "get_device_name",
    "get_device_properties", "get_rng_state", "get_rng_state_all", "graph", "graph_pool_handle", "has_half", "has_magma",
    "init", "initial_seed", "ipc_collect", "is_available", "is_bf16_supported", "is_current_stream_capturing",
    "is_initialized", "is_tf32_supported", "make_graphed_callables", "manual_seed", "manual_seed_all",
    "max_memory_allocated", "max_memory_cached", "max_memory_reserved", "mem_get_info", "memory_allocated", "memory_cached",
    "memory_reserved", "memory_snapshot", "memory_stats", "memory_stats_as_nested_dict", "memory_summary",
    "reset_accumulated_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached", "reset_peak_memory_stats",
    "seed", "seed_all", "set_device", "set_per_process_memory_fraction", "set_rng_state", "set_rng_state_all", "set_stream",
    "stream", "synchronize",
]  # fmt: skip

_AMPERE = 8  # the first generation with bfloat16 and TF32
has_half = True
has_magma = False


def is_available() -> bool:
    """Return whether there is a GPU, and Triton to compile its kernels."""
    return device_count() > 0


def device_count() -> int:
    """Return the number of GPUs."""
    return active_driver().device_count()


def is_initialized() -> bool:
    """Return whether a GPU was used."""
    return bool(runtime.opened_devices())


def init() -> None:
    """Start to use the current GPU; AssertionError if there is none."""
    require_device()
    runtime.device_at()


def current_device() -> int:
    """Return the index of this thread's GPU, which is in use from here on."""
    require_device()
    return runtime.device_at().index


def set_device(device: torch_device | str | int) -> None:
    """Use another GPU in this thread; a negative number changes nothing."""
    if not isinstance(device, int) or device >= 0:
        runtime.choose_device(index_of(device))


def synchronize(device: torch_device | str | int | None = None) -> None:
    """Let the host wait for all work of a GPU. IndexError where a kernel found an index that is out of range."""
    runtime.wait_for_device(index_of(device))


def get_device_properties(device: torch_device | str | int | None = None) -> DeviceProperties:
    """Return what a GPU is."""
    index = index_of(device)
    return active_driver().properties(index)


def get_device_name(device: torch_device | str | int | None = None) -> str:
    """Return a GPU's name."""
    return get_device_properties(device).name


def get_device_capability(device: torch_device | str | int | None = None) -> tuple[int, int]:
    """Return a GPU's compute capability: (9, 0) for an H100."""
    found = get_device_properties(device)
    return found.major, found.minor


def can_device_access_peer(device: torch_device | str | int, peer_device: torch_device | str | int) -> bool:
    """Return whether a GPU's kernels read another's memory; False: tensors are copied."""
    index_of(device), index_of(peer_device)
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return whether the GPU computes in bfloat16."""
    return is_available() and (including_emulation or get_device_capability()[0] >= _AMPERE)


def is_tf32_supported() -> bool:
    """Return whether the GPU multiplies in TF32."""
    return is_available() and get_device_capability()[0] >= _AMPERE


def get_arch_list() -> list[str]:
    """Return the architectures for which code is compiled: those of the GPUs that are there."""
    found = {active_driver().properties(index) for index in range(device_count())}
    return sorted({f"sm_{facts.major}{facts.minor}" for facts in found})


def get_gencode_flags() -> str:
    """Return the flags of a CUDA compiler for `get_arch_list()`."""
    return " ".join(f"-gencode compute={name.replace('sm', 'compute')},code={name}" for name in get_arch_list())


class device:  # noqa: N801  (torch's name)
    """A context in which another GPU is used; None and negative numbers change nothing."""

    def __init__(self, device: torch_device | str | int | None):
        self.idx = -1 if device is None or (isinstance(device, int) and device < 0) else index_of(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            self.prev_idx = runtime.current_index()
            runtime.choose_device(self.idx)

    def __exit__(self, *error: object) -> bool:
        if self.idx >= 0:
            runtime.choose_device(self.prev_idx)
        return False


class device_of(device):  # noqa: N801  (torch's name)
    """A context in which a tensor's GPU is used; a CPU tensor changes nothing."""

    def __init__(self, obj: Any):
        super().__init__(obj.get_device())


class DeferredCudaCallError(Exception):
    """An error in a call that waited until the GPU was initialized."""


def _needs_management(name: str) -> Any:
    """Return a function that asks for a GPU and then says that NVIDIA's management library is not used."""
    refuse = absent_function(f"torch.cuda.{name}", "nvidia-smi shows it")

    def function(*args: object, **kwargs: object) -> None:
        require_device()
        refuse()

    function.__name__ = function.__qualname__ = name
    function.__doc__ = refuse.__doc__
    return function


utilization, temperature, power_draw, clock_rate, memory_usage = map(
    _needs_management, ("utilization", "temperature", "power_draw", "clock_rate", "memory_usage")
)
cudart, get_sync_debug_mode, set_sync_debug_mode = map(
    _needs_management, ("cudart", "get_sync_debug_mode", "set_sync_debug_mode")
)


def ipc_collect() -> None:
    """Do nothing: memory is not shared between processes. AssertionError without a GPU."""
    require_device()


def __getattr__(name: str) -> Any:
    if name.endswith("Tensor"):
        from rushlight.legacy import CUDA_TYPES

        if name in CUDA_TYPES:
            return CUDA_TYPES[name]
    if name in ("amp", "nvtx", "memory", "random", "streams", "graphs"):
        from importlib import import_module

        return import_module(f"{__name__}.{name}")
    if name == "default_generators":
        from rushlight.cuda.generators import generator_of

        return tuple([generator_of(index) for index in range(device_count())])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
