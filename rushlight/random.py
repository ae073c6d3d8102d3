"""`rushlight.random`: seeding and saving the state of the default generator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rushlight.core.device import gpus
from rushlight.core.generator import Generator, default_generator
from rushlight.core.tensor import Tensor

__all__ = ["default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]


def manual_seed(seed: int) -> Generator:
    """Start the default generator, and those of GPUs, from `seed`, an int of 64 bits; the same seed gives torch's CPU
    numbers."""
    gpus.seed(int(seed))
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Start the default generator, and those of GPUs, from a seed of the operating system, and return it."""
    chosen = default_generator.seed()
    gpus.seed(chosen)
    return chosen


def initial_seed() -> int:
    """Return the seed that the default generator was last started from."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """Return the state of the default generator: a uint8 tensor of 5056 bytes."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Put the default generator into a state that `get_rng_state` gave."""
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(devices: Iterable | None = None, enabled: bool = True, device_type: str = "cpu") -> Iterator[None]:
    """Return a context after which the default generator, and those of all GPUs, are in the states that they
    were in before. `devices` and `device_type` are accepted for torch's sake. """
    if not enabled:
        yield
        return
    saved, others = get_rng_state(), gpus.generators()
    states = [generator.get_state() for generator in others]
    try:
        yield
    finally:
        set_rng_state(saved)
        for generator, state in zip(others, states, strict=True):
            generator.set_state(state)
