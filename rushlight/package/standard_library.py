"""The modules of Python itself: they exist in every environment, so packages never copy them."""

from __future__ import annotations

import sys

from rushlight.package.torch_modules import is_library

_ASKED_FOR = ("sys", "io")
"""Modules that reach beyond a package's code; whoever packages code that uses them is to say so."""


def is_standard(name: str) -> bool:
    """Return whether a module is of Python's standard library."""
    top = name.partition(".")[0]
    return top in sys.stdlib_module_names or top in sys.builtin_module_names


def is_always_external(name: str) -> bool:
    """Return whether a module is external without a matching pattern."""
    return is_library(name) or (is_standard(name) and name.partition(".")[0] not in _ASKED_FOR)
