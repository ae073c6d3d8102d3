"""Scripted forms of the library's own modules and functions, which are written for eager.

In: a module class or a function of `rushlight.nn`. Out: Python functions in TorchScript's language, with the same meaning.
"""

from __future__ import annotations

from collections.abc import Callable

METHODS: dict[type, dict[str, Callable]] = {}
"""The scripted methods of module classes. A class has those of its bases, too."""


def script_methods(kind: type) -> dict[str, Callable]:
    """The scripted methods of a class. One that the user's class overrides is not among them."""
    found: dict[str, Callable] = {}
    for each in reversed(kind.__mro__):
        for name in list(found):
            if name in vars(each):
                del found[name]
        found.update(METHODS.get(each, {}))
    return found
