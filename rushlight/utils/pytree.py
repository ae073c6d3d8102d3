"""Trees of containers: flatten lists, tuples, dicts and namedtuples to their leaves, and build them again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable


class TreeSpec:
    """The shape of a tree: the container's type, its keys where it has them, and the specs of its children.

    A leaf has type None. Specs do not change; they are equal where all of that is.
    """

    __slots__ = ("kind", "keys", "children")

    def __init__(self, kind: type | None, keys: tuple | None = None, children: tuple[TreeSpec, ...] = ()) -> None:
        self.kind = kind
        self.keys = keys
        self.children = children

    def _facts(self) -> tuple:
        return self.kind, self.keys, self.children

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeSpec) and self._facts() == other._facts()

    def __hash__(self) -> int:
        return hash(self._facts())

    def __repr__(self) -> str:
        return f"TreeSpec(kind={self.kind!r}, keys={self.keys!r}, children={self.children!r})"

    @property
    def num_leaves(self) -> int:
        """How many leaves the tree has."""
        return 1 if self.kind is None else sum(child.num_leaves for child in self.children)


LEAF = TreeSpec(None)


def tree_flatten(tree: object) -> tuple[list, TreeSpec]:
    """The leaves of `tree`, left to right, and its shape."""
    leaves: list = []
    return leaves, _flatten(tree, leaves)


def _flatten(tree: object, leaves: list) -> TreeSpec:
    kind = type(tree)
    if kind in (dict, OrderedDict):
        return TreeSpec(kind, tuple(tree), tuple(_flatten(value, leaves) for value in tree.values()))
    if kind in (list, tuple) or (isinstance(tree, tuple) and hasattr(tree, "_fields")):
        return TreeSpec(kind, None, tuple(_flatten(value, leaves) for value in tree))
    leaves.append(tree)
    return LEAF


def tree_unflatten(leaves: list | tuple, spec: TreeSpec) -> object:
    """The tree of shape `spec` with these leaves; ValueError when their number differs."""
    if len(leaves) != spec.num_leaves:
        raise ValueError(f"tree_unflatten: the tree has {spec.num_leaves} leaves, but {len(leaves)} were given")
    return _build(iter(leaves), spec)


def _build(leaves, spec: TreeSpec):
    if spec.kind is None:
        return next(leaves)
    parts = [_build(leaves, child) for child in spec.children]
    if spec.keys is not None:
        return spec.kind(zip(spec.keys, parts, strict=True))
    return spec.kind(*parts) if hasattr(spec.kind, "_fields") else spec.kind(parts)


def tree_map(function: Callable, tree: object) -> object:
    """The tree with `function` applied to each leaf."""
    leaves, spec = tree_flatten(tree)
    return tree_unflatten([function(leaf) for leaf in leaves], spec)
