"""Map PyTorch's modules in packages to Rushlight: code that imports `torch` gets Rushlight.

In: the name of a module. Out: the name of the module that stands for it here.
"""

from __future__ import annotations

OWN, TORCH = "rushlight", "torch"


def own_name(name: str) -> str:
    """Return the module of Rushlight for one of PyTorch; other names are unchanged."""
    return OWN + name[len(TORCH) :] if name.partition(".")[0] == TORCH else name


def is_library(name: str) -> bool:
    """Return whether a module is one of PyTorch's or of this library."""
    return name.partition(".")[0] in (OWN, TORCH)
