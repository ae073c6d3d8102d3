"""`torch.utils.weak`: weak references compared by identity, and dictionaries with such keys.

Tensors compare element by element, so that `weakref.WeakKeyDictionary` cannot hold them.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

from rushlight.core.tensor import Tensor

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]


class WeakIdRef(weakref.ref):
    """A weak reference that equals another one while both refer to the same object."""

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Callable | None = None):
        super().__init__(key, callback)
        self._id = id(key)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        mine = self()
        if mine is not None and isinstance(other, weakref.ref) and (theirs := other()) is not None:
            return mine is theirs
        return self is other

    def __ne__(self, other: object) -> bool:  # weakref's own compares objects
        return not self == other


class WeakIdKeyDictionary(MutableMapping):
    """A dictionary with weak keys, which are found by identity; an entry ends with its key.

    `ref_type` is the class of the references to keys.
    """

    def __init__(self, dict: Mapping | None = None, ref_type: type[weakref.ref] = WeakIdRef):
        self.data: dict = {}
        self.ref_type = ref_type
        own = weakref.ref(self)

        def remove(reference: weakref.ref) -> None:
            dictionary = own()
            if dictionary is not None:
                dictionary.data.pop(reference, None)

        self._remove = remove
        if dict is not None:
            self.update(dict)

    def _keys(self) -> Iterator[tuple[weakref.ref, Any]]:
        for reference in list(self.data):
            key = reference()
            if key is not None:
                yield reference, key

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._remove)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # the key does not support weak references
            return False

    def __iter__(self) -> Iterator:
        return (key for _, key in self._keys())

    def __len__(self) -> int:
        return sum(1 for _ in self._keys())

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"

    def __or__(self, other: Mapping) -> WeakIdKeyDictionary:
        made = self.copy()
        made.update(other)
        return made

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        return {id(key): value for key, value in self.items()} == {id(key): value for key, value in other.items()}

    __hash__ = None  # type: ignore[assignment]

    def copy(self) -> WeakIdKeyDictionary:
        """Return another dictionary of the same entries."""
        return type(self)(self, ref_type=self.ref_type)

    __copy__ = copy

    def keyrefs(self) -> list[weakref.ref]:
        """Return the references to the keys."""
        return list(self.data)


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor. AssertionError for anything else."""

    def __init__(self, tensor: Tensor):
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}.")
        self.ref = weakref.ref(tensor)

    def __call__(self) -> Tensor | None:
        return self.ref()
