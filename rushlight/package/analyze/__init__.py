"""Questions about packages: where an object is from, what a call needs, which modules spoil a package."""

from __future__ import annotations

from rushlight.package.analyze.find_first_use_of_broken_modules import find_first_use_of_broken_modules
from rushlight.package.analyze.trace_dependencies import trace_dependencies

__all__ = ["find_first_use_of_broken_modules", "trace_dependencies"]
