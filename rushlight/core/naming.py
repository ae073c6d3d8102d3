"""Which module a class or function belongs to, by its `__module__`."""

from __future__ import annotations


def own_module(value: object) -> str:
    """Return the module of a class or function by its own account; `rushlight.nn.modules.linear` for a class of this
    library.
    """
    name = getattr(value, "__module__", None) or ""
    if isinstance(value, type) and (name == "torch" or name.startswith("torch.")):
        return "rushlight" + name.removeprefix("torch")
    return name
