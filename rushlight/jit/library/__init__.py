"""Scripted forms of the library's own modules, functions and context managers, which are written for eager.

In: a class or a function of the library. Out: Python in TorchScript's language, with the same meaning. What has no entry here is
compiled from its own source.
"""

from __future__ import annotations

from collections.abc import Callable

from rushlight.autograd import grad_mode
from rushlight.jit.library import contexts, functional, modules

METHODS: dict[type, dict[str, Callable]] = modules.METHODS
"""The scripted methods of module classes. A class has those of its bases, too."""
REPLACEMENTS: dict[Callable, Callable] = {
    grad_mode.no_grad: contexts.no_grad, grad_mode.enable_grad: contexts.enable_grad, **functional.REPLACEMENTS,
}  # fmt: skip
"""Functions and classes of the library, with what is compiled in their place."""
NAMES: dict[Callable, str] = {
    contexts.no_grad: "__torch__.torch.autograd.grad_mode.no_grad",
    contexts.enable_grad: "__torch__.torch.autograd.grad_mode.enable_grad",
}
"""The names that these have in graphs and archives."""


def script_methods(kind: type) -> dict[str, Callable]:
    """The scripted methods of a class. One that the user's class overrides is not among them."""
    found: dict[str, Callable] = {}
    for each in reversed(kind.__mro__):
        for name in list(found):
            if name in vars(each):
                del found[name]
        found.update(METHODS.get(each, {}))
    return found
