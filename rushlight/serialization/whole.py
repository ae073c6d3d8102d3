"""`load` with `weights_only=False`: any pickle, which may run arbitrary code. Names of torch's classes resolve to this
library's.

In: the pickle of a checkpoint and the table of its storages. Out: the object.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from importlib import import_module
from typing import Any, BinaryIO

from rushlight.core.layout import LAYOUTS, layout
from rushlight.serialization.allowlist import StorageKind, find_inert
from rushlight.serialization.trust import OWN, TORCH

# PyTorch's module -> the module that has the same functions here, for names in pickles.
_MOVED = {"torch._tensor": "rushlight._utils", "torch.nn.parameter": "rushlight.nn"}


class WholeUnpickler(pickle.Unpickler):
    """Python's unpickler, which reads storages from the checkpoint."""

    def __init__(self, stream: BinaryIO, persistent_load: Callable[[Any], Any], **arguments: Any):
        super().__init__(stream, **{"encoding": "utf-8", **arguments})
        self._storage_of = persistent_load

    def persistent_load(self, identity: Any) -> Any:
        """Return a storage of the checkpoint, or a class, which the format before torch 1.6 saves with its source."""
        if isinstance(identity, tuple) and identity and identity[0] in ("module", b"module"):
            return identity[1]
        return self._storage_of(identity)

    def find_class(self, module: str, name: str) -> Any:
        """Return a class or function by name; AttributeError or ModuleNotFoundError if there is none."""
        inert = find_inert(module, name)
        if isinstance(inert, StorageKind):
            return inert
        if module != TORCH and not module.startswith(f"{TORCH}."):
            return super().find_class(module, name)
        return find_own(module, name)


def find_own(module: str, name: str) -> Any:
    """Return the counterpart of a torch class or function: in the same module, or public in a package above."""
    places = [_MOVED.get(module, OWN + module.removeprefix(TORCH))]
    while "." in places[-1]:
        places.append(places[-1].rpartition(".")[0])
    for place in places:
        try:
            found: Any = import_module(place)
            for part in name.split("."):
                found = getattr(found, part)
        except (ModuleNotFoundError, AttributeError):
            continue
        return found
    raise AttributeError(f"the checkpoint names {module}.{name}, which does not exist here")


def _get_layout(name: str) -> layout:
    """Return the layout with this name in pickles: "torch.strided"."""
    return {str(each): each for each in LAYOUTS}[name]
