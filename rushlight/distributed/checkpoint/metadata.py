"""What a checkpoint's `.metadata` says: for each name a tensor in parts, or an object; and where the bytes are.

The file is JSON: tensors' parts have a file, an offset there, a size in bytes, and their place in the whole tensor.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

FORMAT = "rushlight.distributed.checkpoint"
VERSION = 1


class CheckpointException(RuntimeError):
    """A checkpoint cannot be written, or what is there is not a whole one."""


@dataclass
class Place:
    """Bytes in one of a checkpoint's files."""

    file: str
    offset: int
    nbytes: int


@dataclass
class Chunk:
    """A part of a tensor: where it begins in the whole, its sizes, and its bytes."""

    start: list[int]
    sizes: list[int]
    place: Place


@dataclass
class TensorEntry:
    """A tensor: dtype and shape of the whole, and its parts."""

    dtype: str
    shape: list[int]
    chunks: list[Chunk]


@dataclass
class Metadata:
    """The names of a checkpoint: tensors, and where the bytes of other objects are."""

    tensors: dict[str, TensorEntry] = field(default_factory=dict)
    objects: dict[str, Place] = field(default_factory=dict)

    def merged(self, other: Metadata) -> None:
        """Add what another rank wrote."""
        for name, entry in other.tensors.items():
            if name in self.tensors:
                self.tensors[name].chunks += entry.chunks
            else:
                self.tensors[name] = entry
        self.objects.update(other.objects)

    def files(self) -> dict[str, int]:
        """Return the files and how long each must be."""
        places = [chunk.place for entry in self.tensors.values() for chunk in entry.chunks] + list(self.objects.values())
        found: dict[str, int] = {}
        for place in places:
            found[place.file] = max(found.get(place.file, 0), place.offset + place.nbytes)
        return found

    def to_json(self) -> str:
        """Return the text of the file."""
        return json.dumps({"format": FORMAT, "version": VERSION, **asdict(self)})

    @staticmethod
    def from_json(text: str) -> Metadata:
        """Return what a file says. CheckpointException for another format."""
        try:
            found = json.loads(text)
            if found["format"] != FORMAT or found["version"] != VERSION:
                raise ValueError(f"format {found['format']!r}, version {found['version']}")
            tensors = {name: _entry(value) for name, value in found["tensors"].items()}
            return Metadata(tensors, {name: Place(**value) for name, value in found["objects"].items()})
        except (ValueError, KeyError, TypeError) as error:
            raise CheckpointException(f"the checkpoint's .metadata is not one of this library: {error}") from error


def _entry(value: dict) -> TensorEntry:
    chunks = [Chunk(each["start"], each["sizes"], Place(**each["place"])) for each in value["chunks"]]
    return TensorEntry(value["dtype"], value["shape"], chunks)
