"""`torch.cuda` on a library without GPUs: programs ask whether one is there, and go on without."""

from __future__ import annotations


def is_available() -> bool:
    """Whether a GPU can be used: never."""
    return False


def device_count() -> int:
    """The number of GPUs: 0."""
    return 0


def is_initialized() -> bool:
    """Whether the GPU's state has been set up: never."""
    return False


def manual_seed(seed: int) -> None:
    """Seed the GPU's generator; without one there is nothing to seed, as in torch."""


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all GPUs, of which there are none."""


def empty_cache() -> None:
    """Release unused GPU memory, of which there is none."""


def current_device() -> int:
    """The index of the current GPU; RuntimeError, as there is none."""
    raise RuntimeError("No CUDA GPUs are available")


def synchronize(device: object = None) -> None:
    """Wait for the GPU; RuntimeError, as there is none."""
    raise RuntimeError("No CUDA GPUs are available")


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the GPU computes in bfloat16: there is none."""
    return False
