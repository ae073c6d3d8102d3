"""`torch.fx._pytree`: helpers that the generated code of graphs with nested arguments imports."""

from __future__ import annotations

from typing import Any

from rushlight.utils._pytree import TreeSpec, tree_flatten

__all__ = ["tree_flatten_spec"]


def tree_flatten_spec(pytree: Any, spec: TreeSpec) -> list[Any]:
    """Flatten nested containers that must have the structure `spec`; ValueError if they have another."""
    leaves, found = tree_flatten(pytree)
    if found != spec:
        raise ValueError(f"the arguments are nested as {found}, and the graph expects {spec}")
    return leaves
