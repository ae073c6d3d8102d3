"""`torch.cuda` on a library without GPUs: programs ask whether one is there, and go on without.

What needs a GPU raises AssertionError, as PyTorch's builds for the CPU do.
"""

from __future__ import annotations

from rushlight.core.absent import absent_class, absent_function
from rushlight.core.absent_device import answering, device_names, raising
from rushlight.core.errors import OutOfMemoryError

_MESSAGE = "Torch not compiled with CUDA enabled"
_HINT = "there is no GPU"

globals().update(device_names("cuda", _MESSAGE))

has_half = False
has_magma = False
OutOfMemoryError = OutOfMemoryError


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return whether the GPU computes in bfloat16: there is none."""
    return False


def memory_summary(device: object = None, abbreviated: bool = False) -> str:
    """Return a table of the GPU's memory; AssertionError, as there is none."""
    raise AssertionError(_MESSAGE)


get_gencode_flags = answering("get_gencode_flags", "", "What a GPU's code is compiled for: nothing.")
cudart = raising("cudart", AssertionError, _MESSAGE)
reset_max_memory_allocated = raising("reset_max_memory_allocated", AssertionError, _MESSAGE)
memory_cached = answering("memory_cached", 0, "0, as there is no GPU.")
max_memory_cached = answering("max_memory_cached", 0, "0, as there is no GPU.")
memory_snapshot = raising("memory_snapshot", AssertionError, _MESSAGE)
get_sync_debug_mode = raising("get_sync_debug_mode", AssertionError, _MESSAGE)
set_sync_debug_mode = raising("set_sync_debug_mode", AssertionError, _MESSAGE)

CUDAGraph = absent_class("torch.cuda.CUDAGraph", _HINT)
ExternalStream = absent_class("torch.cuda.ExternalStream", _HINT)
MemPool = absent_class("torch.cuda.MemPool", _HINT)
graph = absent_class("torch.cuda.graph", _HINT)
graph_pool_handle = absent_function("torch.cuda.graph_pool_handle", _HINT)
make_graphed_callables = absent_function("torch.cuda.make_graphed_callables", _HINT)


class CudaError(RuntimeError):
    """An error on a GPU."""


class DeferredCudaCallError(Exception):
    """An error in a call that waited until the GPU was initialized."""


def __getattr__(name: str):
    if name in ("amp", "nvtx", "memory", "random", "streams"):
        from importlib import import_module

        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
