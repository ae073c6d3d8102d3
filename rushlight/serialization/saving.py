"""`save`: write an object to a checkpoint file that torch reads. The entry of this package's writing half."""

from __future__ import annotations

import os
import pickle
import secrets
import stat
import sys
import warnings
from collections.abc import Callable
from pathlib import PurePath
from typing import Any, BinaryIO

from rushlight.core.storage import StorageImpl, UntypedStorage
from rushlight.serialization.legacy_writer import write_legacy
from rushlight.serialization.options import get_crc32_options, skips_data
from rushlight.serialization.pickler import Pickler
from rushlight.serialization.zip_writer import ZipWriter

_FORMAT_VERSION = b"3\n"

DEFAULT_PROTOCOL = 2


def save(
    obj: Any,
    f: str | os.PathLike | BinaryIO,
    pickle_module: Any = None,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write an object in torch's zip format, or the one from before torch 1.6, which torch.load reads.

    Objects consisting of tensors, parameters, dicts, lists, tuples, sets, numbers, strings, bytes, None, dtypes, devices and
    sizes load with `weights_only=True`; other classes, such as whole modules, need `weights_only=False`. Tensors that share a
    storage still do after loading. A path is replaced only when the file is complete. Raises PicklingError, and writes nothing,
    for objects that cannot be pickled. The pickle always has protocol 2 and is written by the library's own pickler: another
    `pickle_module` or `pickle_protocol` causes a warning. `_use_new_zipfile_serialization=False` writes the older format;
    `_disable_byteorder_record` omits the record of the byte order.
    """
    _warn_of_other_pickles(pickle_module, pickle_protocol)
    pickler = Pickler()
    pickler.has_views = not _use_new_zipfile_serialization
    pickled = pickler.dump(obj)
    is_path = isinstance(f, str | os.PathLike)
    root = (PurePath(os.fspath(f)).stem if is_path else "") or "archive"

    def write(stream: BinaryIO) -> None:
        if _use_new_zipfile_serialization:
            _write_archive(stream, root, pickled, pickler.storages, not _disable_byteorder_record)
        else:
            write_legacy(stream, pickled, pickler)

    if is_path:
        replace_file(f, write)
    elif hasattr(f, "write"):
        write(f)
    else:
        raise AttributeError(
            f"expected 'f' to be string, path, or a file-like object with a 'write' attribute, but got {type(f).__name__}"
        )


def _warn_of_other_pickles(pickle_module: Any, protocol: int) -> None:
    asked = {"pickle_module": pickle_module not in (None, pickle), "pickle_protocol": protocol != DEFAULT_PROTOCOL}
    for name, other in asked.items():
        if other:
            warnings.warn(f"save writes a pickle of protocol 2; {name} changes nothing", stacklevel=3)


def _write_archive(stream: BinaryIO, root: str, pickled: bytes, storages: list[StorageImpl], names_order: bool) -> None:
    writer = ZipWriter(stream, root, get_crc32_options())
    writer.write("data.pkl", pickled)
    writer.write(".format_version", b"1")
    writer.write(".storage_alignment", b"64")
    if names_order:
        writer.write("byteorder", sys.byteorder.encode())
    for key, storage in enumerate(storages):
        if skips_data():
            writer.write_zeros(f"data/{key}", storage.nbytes)
        else:
            writer.write(f"data/{key}", UntypedStorage(storage).cpu().numpy().data)
    writer.write("version", _FORMAT_VERSION)
    names, contents = writer.fingerprint()
    writer.write(".data/serialization_id", f"{names:020d}{contents:020d}".encode())
    writer.close()


def replace_file(path: str | os.PathLike, write: Callable[[BinaryIO], None]) -> None:
    """Let `write` fill a temporary file beside `path`, then rename it, so that readers never see a half-written file.

    A path that is no regular file (a device, a pipe) is written directly. An existing file's permissions are kept.
    """
    target = os.path.realpath(path)
    if os.path.exists(target) and not os.path.isfile(target):
        with open(target, "wb") as stream:
            write(stream)
        return
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name[:100]}.{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        if os.path.exists(target):
            os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
        os.replace(temporary, target)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise
