"""What a layer wants of a higher one, which it must not import: modules by the name of what they provide.

In: names of modules, as the facade lists them. Out: nothing; a module that is imported makes itself known to the layer below.
"""

from __future__ import annotations

import threading
from importlib import import_module

_lock = threading.Lock()
_modules: dict[str, str] = {}


def set_provider(service: str, module: str) -> None:
    """Name the module that provides a service when it is imported."""
    with _lock:
        _modules[service] = module


def import_provider(service: str) -> None:
    """Import the module of a service, if there is one; later calls find it imported."""
    module = _modules.get(service)
    if module is not None:
        import_module(module)
