"""`torch.fx._pytree`: what the code of graphs imports whose arguments are nested."""

from __future__ import annotations

from typing import Any

from rushlight.utils._pytree import TreeSpec, tree_flatten

__all__ = ["tree_flatten_spec"]


def tree_flatten_spec(pytree: Any, spec: TreeSpec) -> list[Any]:
    """The leaves of nested containers of a structure. ValueError: they are of another one."""
    leaves, found = tree_flatten(pytree)
    if found != spec:
        raise ValueError(f"the arguments are nested as {found}, and the graph expects {spec}")
    return leaves
