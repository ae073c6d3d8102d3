"""Whose a class or function is, told by its `__module__`.

Under the alias (`rushlight.as_torch`) the library's classes say `torch.nn.modules.linear`, as PyTorch's do; functions do not.
"""

from __future__ import annotations


def own_module(value: object) -> str:
    """The module that a class or function says it is from; a class of the library's gives `rushlight.nn.modules.linear`."""
    name = getattr(value, "__module__", None) or ""
    if isinstance(value, type) and (name == "torch" or name.startswith("torch.")):
        return "rushlight" + name.removeprefix("torch")
    return name
