"""Resolve persistent ids: the storages of a checkpoint, each read once, on the device that the caller chose.

In: the persistent ids of the pickle and `map_location`. Out: TypedStorage and UntypedStorage objects whose bytes come
from a reader.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import IO, Any, NamedTuple

import numpy as np

from rushlight.core.device import device, gpus, present_device
from rushlight.core.dtype import dtype
from rushlight.core.storage import UntypedStorage
from rushlight.core.typed_storage import TypedStorage
from rushlight.serialization.allowlist import StorageKind
from rushlight.serialization.errors import CheckpointError, UnpicklingError

MapLocation = Callable[[UntypedStorage, str], Any] | device | str | Mapping[str, str] | None
MAP_LOCATION = MapLocation
FileLike = str | os.PathLike | IO[bytes]
_MAX_COUNT = 1 << 60


class StorageClaim(NamedTuple):
    """A persistent id's claim about a storage. `element_type` is None for an untyped one, which counts bytes."""

    key: str
    element_type: dtype | None
    location: str
    count: int
    view: tuple[int, int] | None = None

    @property
    def nbytes(self) -> int:
        """Return the bytes that the storage must have."""
        return self.count * (1 if self.element_type is None else self.element_type.itemsize)


def parse_persistent_id(identity: Any) -> StorageClaim:
    """Return the claim in ("storage", class, key, location, count, ...); UnpicklingError when it has another form."""
    if type(identity) is tuple:  # Python 2's text may have been read as bytes
        identity = tuple(part.decode("latin-1") if type(part) is bytes else part for part in identity)
    if type(identity) is not tuple or not identity or identity[0] != "storage":
        raise UnpicklingError("the pickle refers to an external object that is no storage; is it a whole module?")
    kinds = (str, StorageKind, str, str, int)
    if len(identity) not in (5, 6) or not all(type(v) is k for v, k in zip(identity, kinds, strict=False)):
        raise UnpicklingError("the pickle refers to a storage in an unknown form")
    _, kind, key, location, count = identity[:5]
    if not 0 <= count < _MAX_COUNT or len(key) > 200 or len(location) > 200:
        raise UnpicklingError(f"the pickle refers to a storage of {count} elements, or by a key that is too long")
    return StorageClaim(key, kind.dtype, location, count, _check_view(identity[5:], count))


def _check_view(more: tuple, count: int) -> tuple[int, int] | None:
    """Return the start and length of a part of a storage, as in files of torch 0.4; None for the whole storage."""
    if not more or more[0] is None:
        return None
    view = more[0]
    if type(view) is not tuple or len(view) != 3 or not all(type(each) is int for each in view[1:]):
        raise UnpicklingError("the pickle refers to a part of a storage in an unknown form")
    _, begin, length = view
    if not (0 <= begin and 0 <= length and begin + length <= count):
        raise UnpicklingError(f"the pickle refers to elements {begin} to {begin + length} of a storage of {count}")
    return begin, length


class StorageTable:
    """The storages of one checkpoint by key. `read(claim, where)` makes one on the device type "cpu" or "meta"."""

    def __init__(self, read: Callable[[StorageClaim, str], UntypedStorage], map_location: MapLocation):
        self.read = read
        self.map_location = _check_map_location(map_location)
        self.loaded: dict[str, tuple[UntypedStorage, StorageClaim]] = {}

    def persistent_load(self, identity: Any) -> TypedStorage | UntypedStorage:
        """Return the storage of a persistent id."""
        claim = parse_persistent_id(identity)
        if claim.key not in self.loaded:
            self.loaded[claim.key] = (self._map_storage(claim), claim)
        storage, first = self.loaded[claim.key]
        if claim.nbytes != first.nbytes:
            raise UnpicklingError(f"storage '{claim.key}' is declared with {first.nbytes} and {claim.nbytes} bytes")
        if claim.view is not None:
            width = 1 if claim.element_type is None else claim.element_type.itemsize
            begin, length = claim.view
            storage = storage[begin * width : (begin + length) * width]
        return storage if claim.element_type is None else TypedStorage(storage, claim.element_type)

    def _map_storage(self, claim: StorageClaim) -> UntypedStorage:
        if callable(self.map_location):
            storage = self.read(claim, "cpu")
            return self._check_mapped(self.map_location(storage, claim.location), storage, claim)
        location = self._target(claim.location)
        if location.startswith("cuda"):
            return self.read(claim, "cpu").to(device(location))
        return self.read(claim, location)

    def _check_mapped(self, chosen: Any, storage: UntypedStorage, claim: StorageClaim) -> UntypedStorage:
        if chosen is None:
            _require_local(claim.location)
            return storage
        chosen = chosen.untyped() if isinstance(chosen, TypedStorage) else chosen
        if not isinstance(chosen, UntypedStorage) or chosen.nbytes() != claim.nbytes:
            raise TypeError("map_location must return the storage that it was given, moved, or None")
        return chosen

    def _target(self, location: str) -> str:
        if isinstance(self.map_location, str):
            location = self.map_location
        elif self.map_location is not None:
            location = str(self.map_location.get(location, location))
        _require_local(location)
        return location


def _check_map_location(map_location: MapLocation) -> MapLocation:
    if isinstance(map_location, device):
        return str(map_location) if map_location.type != "cpu" else "cpu"
    if map_location is None or isinstance(map_location, str | Mapping) or callable(map_location):
        return map_location
    raise TypeError(f"map_location must be a device, string, dict or function, but is a {type(map_location).__name__}")


def _require_local(location: str) -> None:
    """Raise RuntimeError, in torch's words, for a storage on a device that does not exist here."""
    if location in ("cpu", "meta"):
        return
    name, place = location.partition(":")[0], location[:50]
    if name == "cuda" and gpus.count():
        present_device(location)
        return
    hint = (
        "If you are running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your "
        "storages to the CPU."
    )
    if name in ("cuda", "xpu"):
        raise CheckpointError(
            f"Attempting to deserialize object on a {name.upper()} device but torch.{name}.is_available() is False. {hint}"
        )
    if name == "hpu":
        raise CheckpointError(f"The HPU device module is not registered. {hint}")
    if name == "mps":
        raise CheckpointError(f"torch.UntypedStorage(): Storage device not recognized: {name}. {hint}")
    known = f"don't know how to restore data location of torch.storage.UntypedStorage (tagged with {place})"
    raise CheckpointError(f"{known}. {hint}")


def location_tag(storage: Any) -> str:
    """Return the location of a storage in checkpoints: the type of its device."""
    return str(storage.device)


def default_restore_location(storage: UntypedStorage, location: str) -> UntypedStorage:
    """Move a storage to its saved location; RuntimeError for a device that does not exist here."""
    _require_local(location)
    return UntypedStorage(storage.nbytes(), device="meta") if location == "meta" else storage.to(device(location))


def swap_bytes(storage: UntypedStorage, element_type: dtype | None, order: str) -> None:
    """Convert a storage from byte order `order` ("little" or "big") to this machine's, in place."""
    if order == sys.byteorder:
        return
    if element_type is None:
        raise CheckpointError("holds untyped storages in the other byte order, and no dtype to turn them round by")
    width = element_type.itemsize // (2 if element_type.is_complex else 1)
    if width > 1:
        storage.numpy().view(np.dtype(f"u{width}")).byteswap(inplace=True)
