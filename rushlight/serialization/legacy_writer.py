"""Write torch's checkpoints from before 1.6: see `legacy_format`."""

from __future__ import annotations

import struct
import sys
from typing import Any, BinaryIO

from rushlight.core.storage import UntypedStorage
from rushlight.serialization.legacy_format import MAGIC_NUMBER, PROTOCOL_VERSION
from rushlight.serialization.pickler import Pickler

_SYSTEM = {
    "protocol_version": PROTOCOL_VERSION, "little_endian": True,
    "type_sizes": {"short": 2, "int": 4, "long": 4},
}  # fmt: skip


def write_legacy(stream: BinaryIO, pickled: bytes, pickler: Pickler) -> None:
    """Write the pickle of an object, and the storages that it refers to, behind the header."""
    for header in (MAGIC_NUMBER, PROTOCOL_VERSION, _SYSTEM):
        stream.write(Pickler().dump(header))
    stream.write(pickled)
    stream.write(Pickler().dump([str(key) for key in range(len(pickler.storages))]))
    for storage, element_type in zip(pickler.storages, pickler.element_types(), strict=True):
        width = 1 if element_type is None else element_type.itemsize
        stream.write(struct.pack("<q", storage.nbytes // width))
        stream.write(_little_endian(storage, 1 if element_type is None else width // (2 if element_type.is_complex else 1)))
    if hasattr(stream, "flush"):
        stream.flush()


def _little_endian(storage: Any, width: int) -> Any:
    data = UntypedStorage(storage).cpu().numpy()
    return data.data if sys.byteorder == "little" or width == 1 else data.view(f"u{width}").byteswap().data
