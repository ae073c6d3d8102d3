"""`torch.mtia` on a library without such accelerators: questions have their answer; what needs one raises as in torch."""

from __future__ import annotations

from typing import Any, NoReturn

from rushlight.core.device import raise_absent


def is_available() -> bool:
    """Whether there is one: never."""
    return False


def device_count() -> int:
    """How many there are: 0."""
    return 0


def is_initialized() -> bool:
    """Whether one has been set up: never."""
    return False


def is_bf16_supported() -> bool:
    """Whether one computes in bfloat16: there is none."""
    return False


def manual_seed(seed: int) -> None:
    """Seed its generator, of which there is none."""


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all, of which there are none."""


def init(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises AssertionError: there is no such accelerator."""
    raise_absent("mtia")


get_rng_state = set_rng_state = get_device_properties = get_device_capability = _lazy_init = init


def synchronize(device: Any = None) -> NoReturn:
    """Raises RuntimeError: there is no such accelerator."""
    raise RuntimeError("Cannot execute getCurrentDevice() without MTIA backend.")


current_device = synchronize


def empty_cache() -> NoReturn:
    """Raises RuntimeError: there is no such accelerator."""
    raise RuntimeError("Cannot execute emptyCache() without MTIA backend.")
