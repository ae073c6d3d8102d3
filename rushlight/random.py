"""`rushlight.random`: seeding and saving the state of the default generator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rushlight.core.generator import Generator, default_generator
from rushlight.core.tensor import Tensor

__all__ = ["default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]


def manual_seed(seed: int) -> Generator:
    """Start the default generator from `seed`, an int of 64 bits; the same seed gives torch's CPU numbers."""
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Start the default generator from a seed of the operating system, and return it."""
    return default_generator.seed()


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
    """Return a context after which the default generator is in the state that it was in before.

    `devices` and `device_type` are accepted for torch's sake: the CPU has the only generator.
    """
    if not enabled:
        yield
        return
    saved = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(saved)
