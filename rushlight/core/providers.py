"""Services of higher layers that a lower layer needs but must not import: a table from service to module name.

In: names of modules, as the facade lists them. Out: nothing; a module registers itself with the lower layer when it is
imported.
"""

from __future__ import annotations

import threading
from importlib import import_module

_lock = threading.Lock()
_modules: dict[str, str] = {}


def set_provider(service: str, module: str) -> None:
    """Name the module that provides a service once it is imported."""
    with _lock:
        _modules[service] = module


def import_provider(service: str) -> None:
    """Import the module of a service, if there is one. Later calls do nothing."""
    module = _modules.get(service)
    if module is not None:
        import_module(module)
