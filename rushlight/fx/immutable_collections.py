"""Lists and dicts that refuse changes, and the mapping functions over nested arguments.

In: the raw args and kwargs of a node. Out: the same values with every list and dict replaced by a read-only
copy. A node must see every change of its arguments to keep `users` right, hence no change in place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from rushlight.core.pytree import REGISTERED, Container

# The containers in which a node's arguments may be nested.
CONTAINERS = (tuple, list, dict, slice)
_ADVICE = (
    "'{0}' object does not support mutation. To change the args or kwargs of a node, make a new copy and assign it: "
    "node.args = (new_value, *node.args[1:])"
)


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError(_ADVICE.format(type(self).__name__))


class immutable_list(list):  # noqa: N801 - the name that torch users know
    """A hashable list whose changing methods raise TypeError."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = extend = insert = pop = remove = clear = reverse = sort = _refuse

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __reduce__(self):
        return immutable_list, (list(self),)


class immutable_dict(dict):  # noqa: N801 - the name that torch users know
    """A hashable dict whose changing methods raise TypeError."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:
        return hash(frozenset(self.items()))

    def __reduce__(self):
        return immutable_dict, (dict(self),)


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """Apply `fn` to every leaf of the nested tuples, lists, dicts and slices of `a`.

    Lists and dicts come back immutable; a named tuple keeps its type.
    """
    if not isinstance(a, CONTAINERS):
        return fn(a)
    if isinstance(a, tuple):
        return map_tuple(a, [map_aggregate(item, fn) for item in a])
    if isinstance(a, list):
        return immutable_list([map_aggregate(item, fn) for item in a])
    if isinstance(a, dict):
        return immutable_dict({key: map_aggregate(item, fn) for key, item in a.items()})
    return slice(*(map_aggregate(item, fn) for item in (a.start, a.stop, a.step)))


def map_tuple(original: tuple, items: list) -> tuple:
    """Return the items as a tuple of the same type, if that type may hold them."""
    if type(original) is tuple:
        return tuple(items)
    # A tuple subclass such as Size keeps its type only while its elements stay what they were.
    if all(new is old for new, old in zip(items, original, strict=True)):
        return original
    return type(original)(*items) if hasattr(original, "_fields") else tuple(items)


REGISTERED[immutable_list] = Container(lambda tree: (list(tree), None), lambda children, context: immutable_list(children))
REGISTERED[immutable_dict] = Container(
    lambda tree: (list(tree.values()), list(tree)),
    lambda children, context: immutable_dict(zip(context, children, strict=True)),
)
