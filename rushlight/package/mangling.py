"""The names of modules in a package while they are imported: `<torch_package_0>.name`, so that two packages' modules differ.

In: the name that a module has in its package. Out: its `__name__`, and back.
"""

from __future__ import annotations

import itertools
import re

_numbers = itertools.count()
_PREFIX = re.compile(r"(<torch_package_\d+>)(?:\.|$)")


class PackageMangler:
    """The prefix of one importer, unique in this process."""

    def __init__(self) -> None:
        self.prefix = f"<torch_package_{next(_numbers)}>"

    def mangle(self, name: str) -> str:
        """Return the name with this prefix."""
        return f"{self.prefix}.{name}"

    def demangle(self, name: str) -> str:
        """Return the name without this prefix; other names are unchanged."""
        return name.removeprefix(f"{self.prefix}.")


def is_mangled(name: str) -> bool:
    """Return whether a name has a package's prefix."""
    return _PREFIX.match(name) is not None


def demangle(name: str) -> str:
    """Return the name without any package's prefix."""
    found = _PREFIX.match(name)
    return name if found is None else name[found.end() :]


def mangle_prefix(name: str) -> str:
    """Return the package's prefix of a name; "" if it has none."""
    found = _PREFIX.match(name)
    return "" if found is None else found[1]
