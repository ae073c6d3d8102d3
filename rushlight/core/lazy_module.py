"""Modules that are imported when they are first used, because their import takes long and few programs need them."""

from __future__ import annotations

from importlib import import_module


class LazyModule:
    """Stands for the module `name`; its attributes are the module's, and the first use of one imports it."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, attribute: str):
        return getattr(import_module(self._name), attribute)

    def __repr__(self) -> str:
        return f"<LazyModule {self._name!r}>"
