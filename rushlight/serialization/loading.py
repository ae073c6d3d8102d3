"""`load`: read the object in a checkpoint file. The entry of this package's reading half."""

from __future__ import annotations

import os
import pickle
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, BinaryIO

from rushlight.core.providers import import_provider
from rushlight.serialization.allowlist import find_global
from rushlight.serialization.errors import CheckpointError, ScriptArchiveError, UnpicklingError
from rushlight.serialization.legacy_format import load_legacy
from rushlight.serialization.source import ByteSource
from rushlight.serialization.storages import MapLocation
from rushlight.serialization.trust import trusted_globals
from rushlight.serialization.unpickler import PersistentLoad, ReadPickle, Unpickler
from rushlight.serialization.whole import WholeUnpickler
from rushlight.serialization.zip_format import load_zip
from rushlight.serialization.zip_reader import LOCAL_SIGNATURE

_VARIABLES = "TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"
SCRIPT_ARCHIVES = "loading of TorchScript archives"
_script_loader: list[Callable[..., Any]] = []
"""The loader of TorchScript archives, registered when the provider of `SCRIPT_ARCHIVES` is imported."""


def load(
    f: str | os.PathLike | BinaryIO,
    map_location: MapLocation = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read an object that `torch.save` or `rushlight.save` wrote, in the zip format or the one from before torch 1.6.

    `f` is a path or a binary file that can seek. `map_location` places storages: a device, a dict from saved to wanted device
    strings, or a function (storage, location) -> storage or None. With `mmap=True`, which needs a path and the zip format,
    storages are pages of the file, copied when written to.

    Only weights are read, unless `weights_only=False`: tensors, parameters, plain containers, numbers, strings, dtypes, devices
    and sizes, and what `add_safe_globals` was given; nothing else in the file is executed. With `weights_only=False` the file
    may hold any object, and runs any code: load only files that you trust. Raises UnpicklingError for a file that holds
    anything else than allowed and RuntimeError for one that is truncated, damaged, or no checkpoint; both name the file.
    `pickle_module.Unpickler` reads the pickle, with `pickle_load_args`; of these `encoding`, that of text which Python 2 wrote,
    holds for weights, too ("bytes" leaves it as it is). `jit.load` loads TorchScript archives, with a warning, where
    `weights_only=False`. The environment variable TORCH_FORCE_WEIGHTS_ONLY_LOAD=1 overrides `weights_only=False` in calls;
    TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1 changes the default.
    """
    weights_only = _choose_weights_only(weights_only, pickle_module)
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if weights_only and pickle_load_args.keys() - {"encoding"}:
        raise TypeError(f"load(weights_only=True) takes no {', '.join(sorted(pickle_load_args.keys() - {'encoding'}))}")
    if weights_only:
        read = partial(_read_weights, pickle_load_args.get("encoding", "utf-8"))
    else:
        read = partial(_read_anything, _unpickler_of(pickle_module), pickle_load_args)
    source = ByteSource(f)
    try:
        return _load(source, map_location, bool(mmap), read)
    except ScriptArchiveError:
        return _load_script_archive(f, source, map_location, weights_only)
    except (CheckpointError, UnpicklingError) as error:
        raise type(error)(f"{source.name}: {error}") from error
    finally:
        source.close()


def _choose_weights_only(weights_only: bool | None, pickle_module: Any) -> bool:
    """Return whether to read only weights: by the call, else by the environment, else True."""
    demanded, unwanted = (os.environ.get(name, "0").lower() in ("1", "y", "yes", "true") for name in _VARIABLES)
    if demanded and unwanted:
        raise RuntimeError(f"Only one of {_VARIABLES[0]} and {_VARIABLES[1]} should be set, but both were set")
    if demanded:
        return True
    if weights_only is None and unwanted:
        warnings.warn(
            f"Environment variable {_VARIABLES[1]} detected, since the `weights_only` argument was not explicitly passed to "
            "`torch.load`, forcing weights_only=False.", UserWarning, stacklevel=3,
        )  # fmt: skip
        return False
    return pickle_module is None if weights_only is None else weights_only


def set_script_loader(load_archive: Callable[..., Any]) -> None:
    """Register the loader of TorchScript archives: called with the file and `map_location`."""
    _script_loader[:] = [load_archive]


def _load_script_archive(
    f: str | os.PathLike | BinaryIO, source: ByteSource, map_location: MapLocation, weights_only: bool
) -> Any:
    """Load an archive by `jit.load`. RuntimeError if only weights may be read: an archive contains code."""
    if weights_only:
        raise RuntimeError(
            f"{source.name}: Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``: load it with "
            "torch.jit.load, or pass weights_only=False"
        )
    warnings.warn(
        "'torch.load' received a zip file that looks like a TorchScript archive dispatching to 'torch.jit.load' (call "
        "'torch.jit.load' directly to silence this warning)", UserWarning, stacklevel=3,
    )  # fmt: skip
    if not source.is_path:
        source.file.seek(source.start)
    import_provider(SCRIPT_ARCHIVES)
    return _script_loader[0](f, map_location)


def _load(source: ByteSource, map_location: MapLocation, mapped: bool, read: ReadPickle) -> Any:
    if not source.size:
        raise CheckpointError("is empty")
    if source.read_at(0, min(4, source.size)) == LOCAL_SIGNATURE:
        return load_zip(source, map_location, mapped, read)
    if mapped:
        raise CheckpointError("is not a zip checkpoint, and only those can be mapped; load it without mmap=True")
    return load_legacy(source, map_location, read)


def _read_weights(encoding: str, stream: BinaryIO, end: int, persistent_load: PersistentLoad) -> Any:
    return Unpickler(stream, end, find_global, persistent_load, trusted_globals(), encoding).load()


def _unpickler_of(pickle_module: Any) -> type:
    """Return the unpickler class: Python's, or that of another module, with storages from the checkpoint."""
    if pickle_module is None or pickle_module is pickle:
        return WholeUnpickler
    return type("WholeUnpickler", (WholeUnpickler, pickle_module.Unpickler), {})


def _read_anything(
    kind: type, arguments: dict[str, Any], stream: BinaryIO, end: int, persistent_load: PersistentLoad
) -> Any:
    return kind(stream, persistent_load, **arguments).load()
