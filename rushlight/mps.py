"""`torch.mps`, Apple's GPUs, on a library without GPUs: programs ask whether one is there, and go on without."""

from __future__ import annotations

from rushlight.core.absent import absent_class, absent_function
from rushlight.core.absent_device import answering, raising

_MESSAGE = "Torch not compiled with MPS enabled"

is_available = answering("is_available", False, "False, as there is no GPU of Apple's.")
device_count = answering("device_count", 0, "0, as there is no GPU of Apple's.")
manual_seed = answering("manual_seed", None, "There is no generator that this would change.")
empty_cache = answering("empty_cache", None, "There is no memory that this would release.")
globals().update({
    name: raising(name, AssertionError, _MESSAGE)
    for name in ("synchronize", "seed", "get_rng_state", "set_rng_state", "current_allocated_memory", "driver_allocated_memory",
                 "recommended_max_memory", "set_per_process_memory_fraction")
})  # fmt: skip
Event = absent_class("torch.mps.Event", "there is no such device")
compile_shader = absent_function("torch.mps.compile_shader", "there is no such device")
