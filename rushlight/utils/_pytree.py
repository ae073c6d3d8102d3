"""`torch.utils._pytree`: trees of containers, with paths, predicates, and user-registered classes."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from rushlight.core.pytree import (
    LEAF,
    REGISTERED,
    Container,
    TreeSpec,
    _one_level,
    tree_flatten,
    tree_map,
    tree_unflatten,
)
from rushlight.utils.treespec_json import treespec_dumps as treespec_dumps
from rushlight.utils.treespec_json import treespec_loads as treespec_loads

PyTree = Any
Context = Any
FlattenFunc = Callable[[Any], tuple[list, Any]]
UnflattenFunc = Callable[[Iterable, Any], Any]
IsLeaf = Callable[[Any], bool] | None


# Paths


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """The index of a child in a list or a tuple."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence):
        """Return the child."""
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey:
    """The key of a child in a dict."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping):
        """Return the child."""
        return mapping[self.key]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """The name of the attribute that holds a child."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj):
        """Return the child."""
        return getattr(obj, self.name)


KeyEntry = SequenceKey | MappingKey | GetAttrKey
KeyPath = tuple[KeyEntry, ...]


def keystr(kp: KeyPath) -> str:
    """Return a path as text: `[0].weight['a']`."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """Return the object at a path."""
    for key in kp:
        obj = key.get(obj)
    return obj


# Registration

# PyTorch's flags for a pytree implementation in C++.
_cxx_pytree_exists = _cxx_pytree_dynamo_traceable = False


class NodeDef(NamedTuple):
    """The registration of a class of containers."""

    type: type
    flatten_fn: FlattenFunc
    unflatten_fn: UnflattenFunc
    flatten_with_keys_fn: Callable[[Any], tuple[list, Any]] | None


def _list_flatten(d: list) -> tuple[list, None]:
    return d, None


def _list_unflatten(values: Iterable, context: None) -> list:
    return list(values)


def _list_flatten_with_keys(d: list) -> tuple[list, None]:
    return [(SequenceKey(index), value) for index, value in enumerate(d)], None


def _tuple_flatten(d: tuple) -> tuple[list, None]:
    return list(d), None


def _tuple_unflatten(values: Iterable, context: None) -> tuple:
    return tuple(values)


def _tuple_flatten_with_keys(d: tuple) -> tuple[list, None]:
    return _list_flatten_with_keys(list(d))


def _dict_flatten(d: Mapping) -> tuple[list, list]:
    return list(d.values()), list(d)


def _dict_unflatten(values: Iterable, context: list) -> dict:
    return dict(zip(context, values, strict=True))


def _dict_flatten_with_keys(d: Mapping) -> tuple[list, list]:
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _ordereddict_flatten(d: OrderedDict) -> tuple[list, list]:
    return _dict_flatten(d)


def _ordereddict_unflatten(values: Iterable, context: list) -> OrderedDict:
    return OrderedDict(zip(context, values, strict=True))


def _namedtuple_flatten(d: tuple) -> tuple[list, type]:
    return list(d), type(d)


def _namedtuple_unflatten(values: Iterable, context: type) -> tuple:
    return context(*values)


def _namedtuple_flatten_with_keys(d: tuple) -> tuple[list, type]:
    return [(GetAttrKey(name), getattr(d, name)) for name in d._fields], type(d)


def _defaultdict_flatten_with_keys(d: defaultdict) -> tuple[list, Any]:
    return _dict_flatten_with_keys(d)[0], REGISTERED[defaultdict].flatten(d)[1]


def _deque_flatten_with_keys(d: deque) -> tuple[list, Any]:
    return _list_flatten_with_keys(list(d))[0], d.maxlen


SUPPORTED_NODES: dict[type, NodeDef] = {
    list: NodeDef(list, _list_flatten, _list_unflatten, _list_flatten_with_keys),
    tuple: NodeDef(tuple, _tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys),
    dict: NodeDef(dict, _dict_flatten, _dict_unflatten, _dict_flatten_with_keys),
    OrderedDict: NodeDef(OrderedDict, _ordereddict_flatten, _ordereddict_unflatten, _dict_flatten_with_keys),
    namedtuple: NodeDef(namedtuple, _namedtuple_flatten, _namedtuple_unflatten, _namedtuple_flatten_with_keys),
    defaultdict: NodeDef(defaultdict, *REGISTERED[defaultdict], _defaultdict_flatten_with_keys),
    deque: NodeDef(deque, *REGISTERED[deque], _deque_flatten_with_keys),
}
"""The classes that are containers. Register one more by `register_pytree_node`; a change of this dict alone has no effect."""
BUILTIN_TYPES = frozenset(SUPPORTED_NODES)
SUPPORTED_SERIALIZED_TYPES: dict[type, str] = {}
"""The names of registered classes in text."""


def register_pytree_node(
    cls: type,
    flatten_fn: FlattenFunc,
    unflatten_fn: UnflattenFunc,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable | None = None,
    from_dumpable_context: Callable | None = None,
    flatten_with_keys_fn: Callable | None = None,
) -> None:
    """Make instances of `cls` containers: `flatten_fn(x)` returns the children and a context, `unflatten_fn(children, context)`
    an instance, and `flatten_with_keys_fn(x)` pairs of a key and a child, with the context.

    ValueError if the class is already registered.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered.")
    _register_pytree_node(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn=flatten_with_keys_fn)
    SUPPORTED_SERIALIZED_TYPES[cls] = serialized_type_name or f"{cls.__module__}.{cls.__qualname__}"


def _register_pytree_node(cls, flatten_fn, unflatten_fn, to_str_fn=None, maybe_from_str_fn=None, **options) -> None:
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, options.get("flatten_with_keys_fn"))
    REGISTERED[cls] = Container(flatten_fn, unflatten_fn)


def _deregister_pytree_node(cls: type) -> None:
    """Unregister a class, whose instances become leaves again. ValueError if it is not registered."""
    if cls not in REGISTERED or cls in BUILTIN_TYPES:
        raise ValueError(f"{cls} is not registered as pytree node.")
    del SUPPORTED_NODES[cls], REGISTERED[cls]
    SUPPORTED_SERIALIZED_TYPES.pop(cls, None)


def register_dataclass(
    cls: type,
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Register a dataclass as a container of its fields, except those in `drop_field_names`."""
    if field_names is None:
        if not dataclasses.is_dataclass(cls):
            raise ValueError(f"field_names must be specified for non-dataclass {cls}.")
        field_names = [field.name for field in dataclasses.fields(cls) if field.init]
    names = [name for name in field_names if name not in (drop_field_names or ())]

    def flatten(obj):
        shown = [name for name in names if getattr(obj, name) is not None]
        absent = [name for name in names if getattr(obj, name) is None]
        return [getattr(obj, name) for name in shown], [shown, absent]

    def unflatten(values, context):
        shown, absent = context
        return cls(**dict(zip(shown, values, strict=True)), **dict.fromkeys(absent))

    def flatten_with_keys(obj):
        values, context = flatten(obj)
        return [(GetAttrKey(name), value) for name, value in zip(context[0], values, strict=True)], context

    options = {"flatten_with_keys_fn": flatten_with_keys, "serialized_type_name": serialized_type_name}
    register_pytree_node(cls, flatten, unflatten, **options)


class _Constant:
    """The context of a constant; contexts are equal if the constants are."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Constant) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


def register_constant(cls: type[Any]) -> None:
    """Register a class whose instances are part of a tree's spec: containers without children, compared by `==`."""
    if cls.__eq__ is object.__eq__:
        raise TypeError(f"register_constant(cls) expects `cls` to have a non-default `__eq__` implementation. Got: {cls}")
    options = {"flatten_with_keys_fn": lambda x: ([], _Constant(x))}
    register_pytree_node(cls, lambda x: ([], _Constant(x)), lambda _, context: context.value, **options)


def is_constant_class(cls: type[Any]) -> bool:
    """Return whether the class was registered by `register_constant`."""
    return isinstance(cls, type) and cls in REGISTERED and cls not in BUILTIN_TYPES and cls.__eq__ is not object.__eq__


def is_namedtuple_instance(tree: object) -> bool:
    """Return whether a value is an instance of a `namedtuple` class."""
    return is_namedtuple_class(type(tree))


def is_namedtuple_class(cls: object) -> bool:
    """Return whether a class was made by `namedtuple`."""
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields") and hasattr(cls, "_make")


is_namedtuple = is_namedtuple_instance
_is_namedtuple_instance = is_namedtuple_instance


def is_structseq_instance(tree: object) -> bool:
    """Return whether an object is a structseq, such as `time.struct_time`: a C tuple with named fields."""
    return isinstance(tree, tuple) and all(isinstance(getattr(type(tree), name, None), int) for name in _COUNTS)


_COUNTS = ("n_fields", "n_sequence_fields", "n_unnamed_fields")


def _is_leaf(tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    return (is_leaf is not None and is_leaf(tree)) or _one_level(tree) is None


def tree_is_leaf(tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Return whether a tree is a leaf: no container, or a leaf according to `is_leaf`."""
    return _is_leaf(tree, is_leaf)


def _get_node_type(tree: Any) -> Any:
    return namedtuple if is_namedtuple_instance(tree) else type(tree)


class LeafSpec(TreeSpec):
    """The spec of a leaf; all of them are equal."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None)


def treespec_leaf() -> TreeSpec:
    """Return the spec of a leaf."""
    return LEAF


def treespec_tuple(iterable: Iterable[TreeSpec] = ()) -> TreeSpec:
    """Return the spec of a tuple of trees."""
    return TreeSpec(tuple, None, tuple(iterable))


# Leaves


def tree_leaves(tree: PyTree, is_leaf: IsLeaf = None) -> list[Any]:
    """Return the leaves, left to right."""
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree: PyTree, is_leaf: IsLeaf = None) -> Iterable[Any]:
    """Return the leaves, one after the other."""
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree: PyTree, is_leaf: IsLeaf = None) -> TreeSpec:
    """Return the spec of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map_(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Call `func` on each leaf for its side effects; return the tree itself."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def map_only(type_or_types_or_pred: Any, /) -> Callable:
    """Return a decorator: apply the function to leaves of the given types (or that satisfy a predicate), and keep other
    leaves."""
    kinds = type_or_types_or_pred
    is_type = isinstance(kinds, (type, tuple)) or not callable(kinds)
    holds = (lambda x: isinstance(x, kinds)) if is_type else kinds

    def wrapper(func: Callable) -> Callable:
        return lambda x: func(x) if holds(x) else x

    return wrapper


def tree_map_only(type_or_types_or_pred: Any, /, func: Callable, tree: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Return the tree with `func` applied to the leaves of the given types, or that satisfy a predicate."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred: Any, /, func: Callable, tree: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Call `func` on the leaves of the given types; return the tree itself."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Return whether `pred` holds for each leaf."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Return whether `pred` holds for a leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Return whether `pred` holds for each leaf of the given types."""
    return all(pred(x) for x in tree_leaves(tree, is_leaf) if isinstance(x, type_or_types))


def tree_any_only(type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Return whether `pred` holds for a leaf of the given types."""
    return any(pred(x) for x in tree_leaves(tree, is_leaf) if isinstance(x, type_or_types))


# With paths


def _with_keys(tree: Any) -> list[tuple[KeyEntry, Any]]:
    kind = _get_node_type(tree)
    with_keys = SUPPORTED_NODES[kind].flatten_with_keys_fn
    if with_keys is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {kind}. "
            "Please pass a flatten_with_keys_fn argument to register_pytree_node."
        )
    return list(with_keys(tree)[0])


def _walk(path: KeyPath, tree: PyTree, is_leaf: IsLeaf) -> Iterable[tuple[KeyPath, Any]]:
    if _is_leaf(tree, is_leaf):
        yield path, tree
        return
    for key, child in _with_keys(tree):
        yield from _walk((*path, key), child, is_leaf)


def tree_flatten_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """Return pairs of a path and a leaf, and the spec."""
    return list(_walk((), tree, is_leaf)), tree_structure(tree, is_leaf)


def tree_leaves_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """Return pairs of a path and a leaf."""
    return list(_walk((), tree, is_leaf))


def tree_map_with_path(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Return the tree with each leaf replaced by `func(path, leaf, *others)`."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return tree_unflatten([func(path, leaf, *more) for (path, leaf), *more in zip(pairs, *others, strict=True)], spec)


# Broadcasting, and specs as text


def _broadcast_to_and_flatten(tree: PyTree, treespec: TreeSpec, is_leaf: IsLeaf = None) -> list[Any] | None:
    """Return the leaves of `tree`, each repeated for the leaves of `treespec` at its place; None if the containers differ."""
    if _is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    if treespec.is_leaf():
        return None
    try:
        children = treespec.children_of(tree)
    except ValueError:
        return None
    found: list[Any] = []
    for child, spec in zip(children, treespec.children, strict=True):
        part = _broadcast_to_and_flatten(child, spec, is_leaf)
        if part is None:
            return None
        found += part
    return found


def treespec_pprint(treespec: TreeSpec) -> str:
    """Return a spec as text: a tree with stars for leaves."""
    return repr(tree_unflatten([_Star()] * treespec.num_leaves, treespec))


class _Star:
    def __repr__(self) -> str:
        return "*"


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list[Any]:
    """Return the leaves of a call's arguments."""
    return tree_leaves((args, kwargs))


def pytree_to_str(treespec: TreeSpec) -> str:
    """Return a spec as text."""
    return repr(treespec)
