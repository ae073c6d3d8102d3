"""Analysis of packages: the origin of an object, the dependencies of a call, the modules that break a package."""

from __future__ import annotations

from rushlight.package.analyze.find_first_use_of_broken_modules import find_first_use_of_broken_modules
from rushlight.package.analyze.trace_dependencies import trace_dependencies

__all__ = ["find_first_use_of_broken_modules", "trace_dependencies"]
