"""From its import on, `import torch` gives Rushlight: `import rushlight.as_torch` at the top of a program or a notebook.

`torch.x.y` is then the same module as `rushlight.x.y`, and `importlib.metadata` knows a distribution `torch` of the version
that `rushlight.as_torch.claimed_version()` says. `rushlight exec program.py` runs a program so, and the processes that it
starts.

ImportError: another package `torch` has been imported before.
"""

from __future__ import annotations

import sys

import rushlight
from rushlight.as_torch import adjustments, finder, metadata
from rushlight.as_torch.metadata import claimed_version
from rushlight.as_torch.names import name_as_torch
from rushlight.torch_version import TorchVersion

__all__ = ["claimed_version"]


def _activate() -> None:
    there = sys.modules.get(finder.ALIAS)
    if there is not None and there is not rushlight:
        place = getattr(there, "__file__", None) or "a package without a file"
        raise ImportError(
            f"another package torch is imported already ({place}), so that `torch` can't become Rushlight in this process; "
            "import rushlight.as_torch before it, or run the program by `rushlight exec`"
        )
    sys.meta_path[:0] = [finder.Finder(), metadata.Finder(), adjustments.Finder()]
    sys.path.insert(1, finder.FOLDER)  # processes that multiprocessing spawns get this path
    sys.modules[finder.ALIAS] = rushlight
    rushlight.__name__ = finder.ALIAS
    rushlight.__version__ = rushlight.version.__version__ = TorchVersion(claimed_version())
    name_as_torch()


_activate()
