"""Random number generators: the Mersenne Twister, drawn from in the same way as torch's CPU generator.

In: a seed. Out: raw 32- and 64-bit draws, uniform numbers made of them, and a state that torch can read too. Definition of the
raw draws: M. Matsumoto and T. Nishimura, "Mersenne Twister" (ACM TOMACS 8, 1998), variant mt19937.
"""

from __future__ import annotations

import struct
import threading

import numpy as np

from rushlight._C import MersenneTwister
from rushlight.core.device import CPU, as_device, device, gpus
from rushlight.core.dtype import uint8
from rushlight.core.lazy_module import LazyModule
from rushlight.core.tensor import Tensor, tensor_from_array

secrets, generators = map(LazyModule, ("secrets", "rushlight.cuda.generators"))
DEFAULT_SEED = 67280421310721
_WORDS = 624
# The layout of torch's state, 5056 bytes with padding: seed, draws left before the next twist, whether seeded, position, the
# words; three fields for a cached normal number and a flag for it; the same for float32, which is never used.
_STATE = struct.Struct(f"<Qii Q {_WORDS}Q ddd i4x f?3x")


def _without_generator(name: str) -> str:
    """Return the error text for a kind of device without a generator, in torch's words."""
    if name in ("cuda", "xpu"):
        return f"Cannot get {name.upper()} generator without ATen_{name} library."
    if name in ("mps", "mtia"):
        return f"Cannot execute getNewGenerator() without {name.upper()} backend."
    if name == "privateuseone":
        return "Please register PrivateUse1HooksInterface by `RegisterPrivateUse1HooksInterface` first."
    return "Backend doesn`t support getNewGenerator()" if name == "hpu" else f"{name.upper()} device type not an accelerator."


def checked_seed(seed: int) -> int:
    """Return a seed as an unsigned 64-bit number; RuntimeError for other types and for larger numbers."""
    if not isinstance(seed, int | np.integer):
        raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
    seed = int(seed)
    if not -(1 << 63) <= seed < 1 << 64:
        raise RuntimeError(f"manual_seed expected a seed in [-2**63, 2**64), but got {seed}")
    return seed % (1 << 64)


def state_bytes(state: Tensor) -> bytes:
    """Return the bytes of a generator's state; TypeError for what is no uint8 tensor."""
    if not isinstance(state, Tensor) or state.dtype is not uint8:
        kind = state.dtype if isinstance(state, Tensor) else type(state).__name__
        raise TypeError(f"expected a torch.ByteTensor, but got {kind}")
    return state.numpy().tobytes()


class Generator:
    """A source of random numbers. The same seed gives the numbers that torch's CPU generator gives.

    Every method takes the generator's lock. A kernel that draws several times holds `lock` throughout; `twister` fills
    tensors at once, for callers that hold it.
    """

    def __new__(cls, device: device | str | None = "cpu", *args: object) -> Generator:
        where = as_device(device)
        if cls is Generator and where.type == "cuda" and gpus.count():
            return generators.DeviceGenerator(where)
        return object.__new__(cls)

    def __init__(self, device: device | str | None = "cpu"):
        self.device = as_device(device)
        if self.device.type != "cpu":
            raise RuntimeError(_without_generator(self.device.type))
        self.device = CPU
        self.lock = threading.RLock()
        self.twister = MersenneTwister()
        self.manual_seed(DEFAULT_SEED)

    @property
    def kept_normal(self) -> float | None:
        """Return the second normal number of the last pair, if it is still unused."""
        return self.twister.kept_normal

    @kept_normal.setter
    def kept_normal(self, value: float | None) -> None:
        self.twister.kept_normal = value

    def manual_seed(self, seed: int) -> Generator:
        """Restart from `seed`, a 64-bit int of which the low 32 bits count; RuntimeError when it is larger."""
        seed = checked_seed(seed)
        with self.lock:
            self._seed = seed
            self.twister = MersenneTwister(self._seed & 0xFFFFFFFF)
        return self

    def seed(self) -> int:
        """Restart from a seed of the operating system, and return it."""
        self.manual_seed(secrets.randbits(53))
        return self._seed

    def initial_seed(self) -> int:
        """Return the seed that the generator was last started from."""
        return self._seed

    def get_state(self) -> Tensor:
        """Return the state as 5056 bytes, in the layout of torch's CPU generator."""
        with self.lock:
            words, position = self.twister.get_state()
            kept = self.kept_normal
            fresh = position == _WORDS
            packed = _STATE.pack(
                self._seed, _WORDS + 1 - position, 1, 0 if fresh else position, *np.frombuffer(words, np.uint32).tolist(),
                0.0, kept or 0.0, 0.0, kept is not None, 0.0, False,
            )  # fmt: skip
        return tensor_from_array(np.frombuffer(packed, np.uint8).copy(), uint8)

    def set_state(self, new_state: Tensor) -> Generator:
        """Continue from what `get_state` gave; TypeError for other dtypes, RuntimeError for other sizes."""
        packed = state_bytes(new_state)
        if len(packed) != _STATE.size:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {_STATE.size} but found the input RNG state size to be "
                f"{len(packed)}"
            )
        seed, left, seeded, _, *rest = _STATE.unpack(packed)
        words, (_, kept, _, is_kept, _, _) = rest[:_WORDS], rest[_WORDS:]
        if not seeded or not 1 <= left <= _WORDS + 1 or max(words) >> 32:
            raise RuntimeError("Generator.set_state: the bytes are not a state of the Mersenne Twister")
        with self.lock:
            self._seed, self.kept_normal = seed, kept if is_kept else None
            self.twister.set_state(np.array(words, np.uint32).tobytes(), _WORDS + 1 - left)
        return self

    def clone_state(self) -> Generator:
        """Return another generator in the same state."""
        return Generator(self.device).set_state(self.get_state())

    def draw32(self, count: int) -> np.ndarray:
        """Return `count` 32-bit draws as uint64."""
        drawn = np.empty(count, np.uint64)
        with self.lock:
            self.twister.raw(drawn)
        return drawn

    def draw64(self, count: int) -> np.ndarray:
        """Return `count` 64-bit draws as uint64, each of two 32-bit draws, the high half first."""
        halves = self.draw32(2 * count)
        return halves[0::2] << np.uint64(32) | halves[1::2]

    def uniform32(self, count: int) -> np.ndarray:
        """Return `count` float32 numbers in [0, 1), of 24 random bits each."""
        return (self.draw32(count) & np.uint64((1 << 24) - 1)).astype(np.float32) * np.float32(2.0**-24)

    def uniform64(self, count: int) -> np.ndarray:
        """Return `count` float64 numbers in [0, 1), of 53 random bits each."""
        return (self.draw64(count) & np.uint64((1 << 53) - 1)).astype(np.float64) * 2.0**-53

    def normal(self, count: int) -> np.ndarray:
        """Return `count` standard normal float64 numbers by Box and Muller's method; a number left over is kept for later."""
        numbers = np.empty(count)
        with self.lock:
            self.twister.standard_normal(numbers)
        return numbers

    def __repr__(self) -> str:
        return f"<Generator device={self.device} seed={self._seed}>"

    def __getstate__(self) -> tuple:
        return (str(self.device), self.get_state().numpy())

    def __setstate__(self, saved: tuple) -> None:
        self.__init__(saved[0])
        self.set_state(tensor_from_array(saved[1], uint8))


default_generator = Generator()


def cpu_generator(chosen: Generator | None) -> Generator:
    """Return the chosen generator, or the default one; RuntimeError for one of another device."""
    if chosen is None:
        return default_generator
    if chosen.device.type != "cpu":
        raise RuntimeError(f"Expected a 'cpu' device type for generator but found '{chosen.device.type}'")
    return chosen
