"""`torch.cuda.random`: the GPUs' generators. Seeding does nothing without a GPU, as in torch."""

from __future__ import annotations

from collections.abc import Iterable

from rushlight.core.device import device, gpus
from rushlight.core.tensor import Tensor
from rushlight.cuda import generators, runtime
from rushlight.cuda.streams import index_of, require_device

__all__ = [
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]


def manual_seed(seed: int) -> None:
    """Restart the current device's generator."""
    if runtime.is_present():
        generators.generator_of(runtime.current_index()).manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Restart the generators of all devices."""
    gpus.seed(int(seed))


def seed() -> None:
    """Restart the current device's generator from a seed of the operating system."""
    require_device()
    generators.generator_of(runtime.current_index()).seed()


def seed_all() -> None:
    """Restart the generators of all devices from one seed of the operating system."""
    require_device()
    gpus.seed(generators.generator_of(runtime.current_index()).seed())


def initial_seed() -> int:
    """Return the seed of the current device's generator."""
    require_device()
    return generators.generator_of(runtime.current_index()).initial_seed()


def get_rng_state(device: device | str | int = "cuda") -> Tensor:
    """Return the state of a device's generator: 16 bytes."""
    return generators.generator_of(index_of(device)).get_state()


def get_rng_state_all() -> list[Tensor]:
    """Return the states of all devices' generators."""
    return [get_rng_state(index) for index in range(_device_count())]


def set_rng_state(new_state: Tensor, device: device | str | int = "cuda") -> None:
    """Set the state of a device's generator."""
    generators.generator_of(index_of(device)).set_state(new_state)


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Set the states of all devices' generators."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def _device_count() -> int:
    return runtime.active_driver().device_count()
