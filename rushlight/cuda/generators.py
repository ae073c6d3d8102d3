"""Random numbers on devices: each device's generator counts the seeds that it has given to graphs.

A graph makes its random numbers by Philox from one seed. The generator's n-th seed is a function of its own seed and n, so the
state is these two numbers. Definition of Philox: J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
"""

from __future__ import annotations

import struct
import threading

import numpy as np

from rushlight.core.device import device, gpus, present_device
from rushlight.core.dtype import int64, uint8
from rushlight.core.generator import DEFAULT_SEED, Generator, checked_seed, state_bytes
from rushlight.core.tensor import Tensor, tensor_from_array
from rushlight.cuda import runtime, tensors
from rushlight.cuda.driver import active_driver

_STATE = struct.Struct("<QQ")
_MASK = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15  # SplitMix64 adds this constant per draw


class DeviceGenerator(Generator):
    """A source of random numbers on a device. Its state is 16 bytes, as in PyTorch: the seed and a count."""

    def __init__(self, device: device | str):
        self.device = present_device(device)
        self.lock = threading.RLock()
        self._seed, self._count = DEFAULT_SEED, 0

    def manual_seed(self, seed: int) -> Generator:
        """Restart from a 64-bit seed; RuntimeError when it is larger."""
        seed = checked_seed(seed)
        with self.lock:
            self._seed, self._count = seed, 0
        return self

    def next_seed(self) -> int:
        """Return the seed of the next graph, 63 bits."""
        return self.skip(1)

    @property
    def position(self) -> tuple[int, int]:
        """The generator's own seed, and the count of seeds that it has given."""
        return self._seed, self._count

    def skip(self, count: int) -> int:
        """Give the next `count` seeds at once; return the last of them."""
        with self.lock:
            self._count += count
            return self.seed_at(self._count)

    def seed_at(self, count: int) -> int:
        """Return the seed of a number, the first of which is 1."""
        mixed = (self._seed + count * _STEP) & _MASK
        mixed = ((mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ mixed >> 27) * 0x94D049BB133111EB) & _MASK
        return (mixed ^ mixed >> 31) >> 1

    def get_state(self) -> Tensor:
        """Return the state as 16 bytes."""
        with self.lock:
            packed = _STATE.pack(self._seed, self._count)
        return tensor_from_array(np.frombuffer(packed, np.uint8).copy(), uint8)

    def set_state(self, new_state: Tensor) -> Generator:
        """Continue from what `get_state` gave; TypeError for other dtypes, RuntimeError for other sizes."""
        packed = state_bytes(new_state)
        if len(packed) != _STATE.size:
            raise RuntimeError("RNG state is wrong size")
        with self.lock:
            self._seed, self._count = _STATE.unpack(packed)
        return self

    def clone_state(self) -> Generator:
        """Return another generator in the same state."""
        return DeviceGenerator(self.device).set_state(self.get_state())

    def __setstate__(self, saved: tuple) -> None:
        DeviceGenerator.__init__(self, saved[0])
        self.set_state(tensor_from_array(saved[1], uint8))


_generators: dict[int, DeviceGenerator] = {}
runtime.on_forget(_generators.clear)


def generator_of(index: int, chosen: object = None) -> DeviceGenerator:
    """Return a device's generator, or the chosen one; RuntimeError for one of another device."""
    if chosen is not None:
        if not isinstance(chosen, DeviceGenerator):
            raise RuntimeError("Expected a 'cuda' device type for generator but found 'cpu'")
        return chosen
    found = _generators.get(index)
    if found is None:
        found = _generators[index] = DeviceGenerator(device("cuda", index))
        if gpus.first_seed is not None:
            found.manual_seed(gpus.first_seed)
    return found


def seed_used(seed: int) -> None:
    """Restart the generators that exist."""
    for found in _generators.values():
        found.manual_seed(seed)


def device_generators() -> list[DeviceGenerator]:
    """Return the generators of all devices, also of those that have not drawn yet: what saves states now may set them back
    after the first draws."""
    return [generator_of(index) for index in range(active_driver().device_count())]


def seed_tensor(index: int, chosen: object = None) -> Tensor:
    """Return the next seed as an int64 tensor on a device. In a capture its value is written before each replay."""
    found, source = runtime.device_at(index), generator_of(index, chosen)
    if found.draws is not None and found.driver.is_capturing(runtime.current_stream(index)):
        return found.draws.add(source, index)
    return tensors.written(_packed(source.next_seed()), int64, index)


def _packed(seed: int) -> bytes:
    return seed.to_bytes(8, "little")


class CapturedDraws:
    """The seeds that a captured graph reads. Each replay gets the seeds that the same calls would get without a capture: the
    generators go on from where they are then. A state that is set back while the graph is captured, as checkpoints do, is set
    back in each replay."""

    def __init__(self) -> None:
        self._starts: dict[DeviceGenerator, tuple[int, int]] = {}
        self._totals: dict[DeviceGenerator, int] = {}
        self._seeds: list[tuple[DeviceGenerator, int, Tensor]] = []

    def add(self, source: DeviceGenerator, index: int) -> Tensor:
        """Return a tensor for a generator's next seed; RuntimeError if the generator was seeded anew in the capture."""
        start = self._starts.setdefault(source, source.position)
        if source.position[0] != start[0]:
            raise RuntimeError("a generator cannot be seeded while a graph is captured that draws its random numbers")
        source.next_seed()
        with runtime.outside_of_pools(index):  # the graph's earlier kernels may write to memory of its pool
            made = tensors.empty((), int64, index)
        self._seeds.append((source, source.position[1] - start[1], made))
        return made

    def end(self) -> None:
        """End the capture: it has not drawn any numbers."""
        for source, (_, count) in self._starts.items():
            self._totals[source] = source.position[1] - count
            source.skip(-self._totals[source])

    def write(self) -> None:
        """Write the seeds of the next replay."""
        for source, number, made in self._seeds:
            made._impl.storage.buffer.record_stream(runtime.current_stream(made._impl.device.index))
            tensors.write(made, _packed(source.seed_at(source.position[1] + number)))
        for source, total in self._totals.items():
            source.skip(total)
