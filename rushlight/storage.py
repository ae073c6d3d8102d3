"""`torch.storage`: the memory behind tensors, untyped and typed, and the classes by dtype of torch's first years."""

from __future__ import annotations

import io
import warnings
from typing import Any

from rushlight.core.dtype import dtype
from rushlight.core.storage import UntypedStorage
from rushlight.core.typed_storage import LEGACY_STORAGES, TypedStorage
from rushlight.serialization.loading import load

globals().update(LEGACY_STORAGES)
_StorageBase = UntypedStorage
_LegacyStorage = TypedStorage

__all__ = ["TypedStorage", "UntypedStorage", *LEGACY_STORAGES]


def _load_from_bytes(content: bytes) -> Any:
    """Return the object in a checkpoint's bytes; only weights, as nobody vouches for them."""
    return load(io.BytesIO(content))


def _warn_typed_storage_removal(stacklevel: int = 2) -> None:
    """Warn that torch is going to drop TypedStorage."""
    warnings.warn("TypedStorage is deprecated: use tensor.untyped_storage()", UserWarning, stacklevel=stacklevel + 1)


def _dtype_to_storage_type_map() -> dict[dtype, str]:
    """Return the names of the classes by dtype."""
    return {kind._kind: name for name, kind in LEGACY_STORAGES.items()}


def _get_dtype_from_pickle_storage_type(pickle_storage_type: str) -> dtype:
    """Return the dtype of a class by its name; KeyError for one that is unknown."""
    if pickle_storage_type not in LEGACY_STORAGES:
        raise KeyError(f'pickle storage type "{pickle_storage_type}" is not recognized')
    return LEGACY_STORAGES[pickle_storage_type]._kind
