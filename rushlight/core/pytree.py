"""Trees of containers: flatten them to their leaves, and build them again.

Containers are lists, tuples, dicts, ordered dicts, namedtuples, and instances of the classes in `REGISTERED`; subclasses are
leaves. `torch.utils._pytree` has the functions with paths, predicates and registration.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from typing import Any, NamedTuple


class Container(NamedTuple):
    """How instances of a class are flattened and rebuilt."""

    flatten: Callable[[Any], tuple[list, Any]]
    """instance -> (children, context). The context is whatever else rebuilds the instance."""
    unflatten: Callable[[list, Any], Any]
    """(children, context) -> instance."""


REGISTERED: dict[type, Container] = {
    defaultdict: Container(
        lambda tree: (list(tree.values()), (tree.default_factory, list(tree))),
        lambda children, context: defaultdict(context[0], zip(context[1], children, strict=True)),
    ),
    deque: Container(lambda tree: (list(tree), tree.maxlen), deque),
}
"""Further classes of containers."""


class TreeSpec:
    """The shape of a tree: the container's type, its keys or its context, and the specs of its children.

    A leaf has type None. `keys` are a dict's; `own` is the context of a registered class. Specs do not change; they are equal
    where all of that is.
    """

    __slots__ = ("kind", "keys", "children", "own")

    def __init__(
        self, kind: type | None, keys: tuple | None = None, children: tuple[TreeSpec, ...] = (), own: object = None
    ) -> None:
        self.kind = kind
        self.keys = keys
        self.children = children
        self.own = own

    def _facts(self) -> tuple:
        return self.kind, self.keys, self.children, self.own

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeSpec) and self._facts() == other._facts()

    def __hash__(self) -> int:
        return hash((self.kind, self.keys, self.children))  # the context may be unhashable

    def __repr__(self) -> str:
        if self.kind is None:
            return "*"
        return f"TreeSpec({self.kind.__name__}, {self.context!r}, {list(self.children)!r})"

    @property
    def num_leaves(self) -> int:
        """Return how many leaves the tree has."""
        return 1 if self.kind is None else sum(child.num_leaves for child in self.children)

    @property
    def num_nodes(self) -> int:
        """Return how many leaves and containers the tree has."""
        return 1 + sum(child.num_nodes for child in self.children)

    @property
    def num_children(self) -> int:
        """Return how many children its root has."""
        return len(self.children)

    @property
    def type(self) -> type | None:
        """Return the class of the root; None for a leaf. `collections.namedtuple` stands for all namedtuples."""
        return namedtuple if _is_namedtuple(self.kind) else self.kind

    @property
    def context(self) -> object:
        """Return the root's context, which rebuilds it from its children: a dict's keys, a namedtuple's class."""
        if self.keys is not None:
            return list(self.keys)
        return self.kind if _is_namedtuple(self.kind) else self.own

    @property
    def children_specs(self) -> list[TreeSpec]:
        """Return the specs of the root's children."""
        return list(self.children)

    def children_of(self, tree: object) -> list:
        """Return the children of `tree`, whose root must match this spec's; ValueError otherwise."""
        own = _one_level(tree)
        are_dicts = own is not None and own[1].keys is not None and self.keys is not None  # their classes may differ
        if own is None or own[1].type is not self.type and not are_dicts or len(own[0]) != len(self.children):
            raise ValueError(f"expected a {getattr(self.kind, '__name__', 'leaf')} of {len(self.children)}, got {tree!r}")
        if self.keys is not None:
            if set(own[1].keys) != set(self.keys):
                raise ValueError(f"expected the keys {list(self.keys)}, got {list(own[1].keys)}")
            return [tree[key] for key in self.keys]
        return own[0]

    def is_leaf(self) -> bool:
        """Return whether the tree is a single leaf."""
        return self.kind is None

    def flatten_up_to(self, tree: object) -> list:
        """Return the subtrees of `tree` at the places of this spec's leaves; ValueError where its containers differ."""
        if self.kind is None:
            return [tree]
        return [
            part for child, own in zip(self.children, self.children_of(tree), strict=True) for part in child.flatten_up_to(own)
        ]

    def unflatten(self, leaves: list | tuple) -> object:
        """Return the tree of this shape with these leaves."""
        return tree_unflatten(leaves, self)


def _is_namedtuple(kind: type | None) -> bool:
    return kind is not None and issubclass(kind, tuple) and hasattr(kind, "_fields")


LEAF = TreeSpec(None)


def tree_flatten(tree: object, is_leaf: Callable[[object], bool] | None = None) -> tuple[list, TreeSpec]:
    """Return the leaves of `tree`, left to right, and its spec. Anything for which `is_leaf` is true is a leaf."""
    leaves: list = []
    return leaves, _flatten_into(tree, leaves, is_leaf)


def _one_level(tree: object) -> tuple[list, TreeSpec] | None:
    """Return the children of a container, and its spec without the children's specs; None for a leaf."""
    kind = type(tree)
    if kind in (dict, OrderedDict):
        return list(tree.values()), TreeSpec(kind, tuple(tree))
    if kind in (list, tuple) or (isinstance(tree, tuple) and hasattr(tree, "_fields")):
        return list(tree), TreeSpec(kind)
    if kind in REGISTERED:
        children, context = REGISTERED[kind].flatten(tree)
        return list(children), TreeSpec(kind, None, (), context)
    return None


def _flatten_into(tree: object, leaves: list, is_leaf: Callable[[object], bool] | None) -> TreeSpec:
    level = None if is_leaf is not None and is_leaf(tree) else _one_level(tree)
    if level is None:
        leaves.append(tree)
        return LEAF
    children, spec = level
    spec.children = tuple(_flatten_into(child, leaves, is_leaf) for child in children)
    return spec


def tree_unflatten(leaves: list | tuple, spec: TreeSpec) -> object:
    """Return the tree of shape `spec` with these leaves; ValueError when their number differs."""
    leaves = list(leaves)
    if len(leaves) != spec.num_leaves:
        raise ValueError(f"tree_unflatten: the tree has {spec.num_leaves} leaves, but {len(leaves)} were given")
    return _build(iter(leaves), spec)


def _build(leaves, spec: TreeSpec):
    if spec.kind is None:
        return next(leaves)
    parts = [_build(leaves, child) for child in spec.children]
    if spec.keys is not None:
        return spec.kind(zip(spec.keys, parts, strict=True))
    if spec.kind in REGISTERED:
        return REGISTERED[spec.kind].unflatten(parts, spec.own)
    return spec.kind(*parts) if hasattr(spec.kind, "_fields") else spec.kind(parts)


def tree_map(function: Callable, tree: object, *others: object, is_leaf: Callable[[object], bool] | None = None) -> object:
    """Return the tree with `function` applied to each leaf, along with the subtrees of the other trees at its place."""
    leaves, spec = tree_flatten(tree, is_leaf)
    rest = [spec.flatten_up_to(other) for other in others]
    return tree_unflatten([function(*parts) for parts in zip(leaves, *rest, strict=True)], spec)
