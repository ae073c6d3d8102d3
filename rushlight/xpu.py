"""`torch.xpu` on a library without Intel GPUs: questions have their answer; what needs one raises as in torch."""

from __future__ import annotations

from typing import Any, NoReturn

from rushlight.core.device import raise_absent


def is_available() -> bool:
    """Whether there is such a GPU: never."""
    return False


def device_count() -> int:
    """The number of such GPUs: 0."""
    return 0


def is_initialized() -> bool:
    """Whether a GPU's state has been set up: never."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the GPU computes in bfloat16: there is none."""
    return False


def manual_seed(seed: int) -> None:
    """Seed the GPU's generator, of which there is none."""


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all GPUs, of which there are none."""


def empty_cache() -> None:
    """Release unused GPU memory, of which there is none."""


def init(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises AssertionError: there is no such GPU."""
    raise_absent("xpu")


synchronize = current_device = set_device = get_device_name = get_device_properties = get_device_capability = init
current_stream = get_rng_state = set_rng_state = initial_seed = mem_get_info = _lazy_init = init
