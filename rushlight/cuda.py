"""`torch.cuda` on a library without GPUs: programs ask whether one is there, and go on without.

Questions have their answer. What needs a GPU raises as in torch's build for CPUs.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

from rushlight.core.device import raise_absent
from rushlight.core.tensor import Tensor

default_generators: tuple = ()
has_half = True
has_magma = False


class OutOfMemoryError(RuntimeError):
    """A GPU's memory did not suffice."""


class CudaError(RuntimeError):
    """A call of the CUDA runtime failed."""


def is_available() -> bool:
    """Whether a GPU can be used: never."""
    return False


def device_count() -> int:
    """The number of GPUs: 0."""
    return 0


def is_initialized() -> bool:
    """Whether the GPU's state has been set up: never."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the GPU computes in bfloat16: there is none."""
    return False


def is_tf32_supported() -> bool:
    """Whether the GPU computes in TF32: there is none."""
    return False


def _is_compiled() -> bool:
    return False


def get_arch_list() -> list[str]:
    """The kinds of GPU that the library was compiled for: none."""
    return []


def get_gencode_flags() -> str:
    """The compiler's flags for them: none."""
    return ""


def manual_seed(seed: int) -> None:
    """Seed the GPU's generator; without one there is nothing to seed, as in torch."""


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all GPUs, of which there are none."""


def seed() -> None:
    """Seed the GPU's generator with a random number; there is none."""


def seed_all() -> None:
    """Seed the generators of all GPUs with a random number; there are none."""


def get_rng_state_all() -> list[Tensor]:
    """The states of the generators of all GPUs: none."""
    return []


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Set the states of the generators of all GPUs; AssertionError if there is any, as there is no GPU."""
    for state in new_states:
        set_rng_state(state)


def empty_cache() -> None:
    """Release unused GPU memory, of which there is none."""


def memory_stats(device: Any = None) -> OrderedDict[str, Any]:
    """Numbers about the GPU's memory: none."""
    return OrderedDict()


def memory_allocated(device: Any = None) -> int:
    """The bytes of GPU memory in use: 0."""
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_cached = max_memory_cached = memory_allocated


def _needing_gpu(name: str) -> Callable[..., NoReturn]:
    """A function that needs a GPU, and so raises AssertionError."""

    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise_absent("cuda")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Raises AssertionError: there is no GPU."
    return function


init = _needing_gpu("init")
_lazy_init = _needing_gpu("_lazy_init")
synchronize = _needing_gpu("synchronize")
current_device = _needing_gpu("current_device")
set_device = _needing_gpu("set_device")
get_device_name = _needing_gpu("get_device_name")
get_device_properties = _needing_gpu("get_device_properties")
get_device_capability = _needing_gpu("get_device_capability")
can_device_access_peer = _needing_gpu("can_device_access_peer")
current_stream = _needing_gpu("current_stream")
default_stream = _needing_gpu("default_stream")
set_stream = _needing_gpu("set_stream")
get_rng_state = _needing_gpu("get_rng_state")
set_rng_state = _needing_gpu("set_rng_state")
initial_seed = _needing_gpu("initial_seed")
mem_get_info = _needing_gpu("mem_get_info")
memory_summary = _needing_gpu("memory_summary")
memory_snapshot = _needing_gpu("memory_snapshot")
reset_peak_memory_stats = _needing_gpu("reset_peak_memory_stats")
reset_max_memory_allocated = _needing_gpu("reset_max_memory_allocated")
reset_max_memory_cached = _needing_gpu("reset_max_memory_cached")
reset_accumulated_memory_stats = _needing_gpu("reset_accumulated_memory_stats")
set_per_process_memory_fraction = _needing_gpu("set_per_process_memory_fraction")
ipc_collect = _needing_gpu("ipc_collect")
utilization = _needing_gpu("utilization")
current_blas_handle = _needing_gpu("current_blas_handle")
cudart = _needing_gpu("cudart")
graph_pool_handle = _needing_gpu("graph_pool_handle")
make_graphed_callables = _needing_gpu("make_graphed_callables")


def is_current_stream_capturing() -> bool:
    """Whether a CUDA graph is being recorded: never."""
    return False


class Stream:
    """A queue of work for a GPU. RuntimeError when made: there is none."""

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any):
        raise RuntimeError("torch.cuda.Stream requires CUDA support")


class ExternalStream(Stream):
    """A queue of another library's. RuntimeError when made."""


class Event:
    """A mark in a queue of work. RuntimeError when made: there is no GPU."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False):
        raise RuntimeError("Tried to instantiate dummy base class Event")


class CUDAGraph:
    """Recorded work of a GPU. RuntimeError when made: there is none."""

    def __init__(self, keep_graph: bool = False):
        raise RuntimeError("Tried to instantiate dummy base class _CUDAGraph")


@contextlib.contextmanager
def stream(stream: Stream | None) -> Iterator[None]:
    """A block in which work goes to `stream`; nothing for None, which is all that there is."""
    yield


class device:
    """A block in which a GPU is the current one: nothing for a negative index or None, RuntimeError for others."""

    def __init__(self, device: Any):
        index = device if isinstance(device, int) or device is None else getattr(device, "index", None)
        self.idx = -1 if index is None else index

    def __enter__(self) -> None:
        if self.idx >= 0:
            raise RuntimeError("PyTorch was compiled without CUDA support")

    def __exit__(self, *error: object) -> None:
        pass


class device_of(device):
    """A block in which the GPU of a tensor is the current one; no tensor is on one."""

    def __init__(self, obj: Any):
        super().__init__(None)


class _TensorType:
    """A type of tensors on a GPU, of which there are none: TypeError when called."""

    def __init__(self, *args: Any):
        name = type(self).__name__
        raise TypeError(f"type torch.cuda.{name} not available. Torch not compiled with CUDA enabled.")


for _name in ("Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool"):
    globals()[f"{_name}Tensor"] = type(f"{_name}Tensor", (_TensorType,), {"__doc__": _TensorType.__doc__})
