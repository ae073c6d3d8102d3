"""Dispatch keys and key sets, in c10's sense: a key set is an int whose bit k stands for key k; higher keys run first."""

from __future__ import annotations

from enum import IntEnum


class DispatchKey(IntEnum):
    """The functionalities a call passes through, from the last to run to the first."""

    Undefined = 0
    CPU = 1
    Meta = 2
    CUDA = 3
    SparseCPU = 4
    QuantizedCPU = 5
    Python = 6
    Functionalize = 7
    Conjugate = 8
    Negative = 9
    ADInplaceOrView = 10
    Autograd = 11
    Dual = 12
    Tracer = 13
    Autocast = 14
    Anomaly = 15
    Batched = 16
    VmapMode = 17
    Narrow = 18
    Profiler = 19
    # PyTorch has a key per device for each functionality; here one key serves, and these names alias it.
    AutogradCPU = 11
    AutogradCUDA = 11
    AutocastCPU = 14
    AutocastCUDA = 14
    AutocastXPU = 14
    # Aliases: kernels registered to these serve several run-time keys.
    CompositeExplicitAutograd = 20
    CompositeImplicitAutograd = 21


class DispatchKeySet:
    """A set of dispatch keys with set algebra; `int(key_set)` is the bit mask that tensors carry."""

    __slots__ = ("bits",)

    def __init__(self, keys: int | DispatchKey | tuple[DispatchKey, ...] = 0):
        if isinstance(keys, DispatchKey):
            keys = (keys,)
        self.bits = keys if isinstance(keys, int) else sum({1 << key for key in keys})

    def add(self, key: DispatchKey) -> DispatchKeySet:
        """Return this set with `key`."""
        return DispatchKeySet(self.bits | 1 << key)

    def remove(self, key: DispatchKey) -> DispatchKeySet:
        """Return this set without `key`."""
        return DispatchKeySet(self.bits & ~(1 << key))

    def has(self, key: DispatchKey) -> bool:
        """Return whether `key` is in the set."""
        return bool(self.bits >> key & 1)

    def highest(self) -> DispatchKey:
        """Return the key that runs first; Undefined for the empty set."""
        return DispatchKey(self.bits.bit_length() - 1) if self.bits else DispatchKey.Undefined

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self.bits | other.bits)

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self.bits & other.bits)

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self.bits & ~other.bits)

    def __iter__(self):
        return (key for key in reversed(DispatchKey) if key < 20 and self.has(key))

    def __contains__(self, key: DispatchKey) -> bool:
        return self.has(key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self.bits == other.bits

    def __hash__(self) -> int:
        return hash(self.bits)

    def __int__(self) -> int:
        return self.bits

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(key.name for key in self)})"


def bit(key: DispatchKey) -> int:
    """Return the mask of one key."""
    return 1 << key


AUTOGRAD_BITS = bit(DispatchKey.Autograd) | bit(DispatchKey.ADInplaceOrView)
LAZY_BITS = bit(DispatchKey.Conjugate) | bit(DispatchKey.Negative)
"""Keys of tensors that stand for the conjugate or the negative of their memory."""

FORMAT_BITS = bit(DispatchKey.SparseCPU) | bit(DispatchKey.QuantizedCPU)
"""Keys of tensors whose memory is not an array of their elements."""
SPECIAL_BITS = FORMAT_BITS | LAZY_BITS
"""Keys of tensors whose memory alone does not determine their values."""

BATCHED_BIT = bit(DispatchKey.Batched)
BACKEND_BITS = bit(DispatchKey.CPU) | bit(DispatchKey.Meta) | bit(DispatchKey.CUDA) | FORMAT_BITS
CPU_KEYS = bit(DispatchKey.CPU) | AUTOGRAD_BITS
META_KEYS = bit(DispatchKey.Meta) | AUTOGRAD_BITS
CUDA_KEYS = bit(DispatchKey.CUDA) | AUTOGRAD_BITS
