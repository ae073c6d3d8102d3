"""Methods of the library's modules in TorchScript's language, where their own source is not."""

from __future__ import annotations

from collections.abc import Callable

METHODS: dict[type, dict[str, Callable]] = {}
