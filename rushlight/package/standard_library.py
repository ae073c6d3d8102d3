"""Which modules are Python's own: packages find them in every environment, so that they are never copied."""

from __future__ import annotations

import sys

from rushlight.package.torch_modules import is_library

_ASKED_FOR = ("sys", "io")
"""Modules that reach beyond a package's code; whoever packages code that uses them is to say so."""


def is_standard(name: str) -> bool:
    """Whether a module is of Python's standard library."""
    top = name.partition(".")[0]
    return top in sys.stdlib_module_names or top in sys.builtin_module_names


def is_always_external(name: str) -> bool:
    """Whether a module comes from the environment without a pattern that says so."""
    return is_library(name) or (is_standard(name) and name.partition(".")[0] not in _ASKED_FOR)
