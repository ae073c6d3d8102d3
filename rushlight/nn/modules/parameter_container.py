"""Containers of parameters: ParameterList and ParameterDict.

Tensors given to them become parameters; other values stay what they are.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.nn.modules.container import key_value_pairs
from rushlight.nn.modules.module import Module, indent_after_first
from rushlight.nn.parameter import Parameter


class _ParameterCollection(Module):
    """The base of both: values by key, in order. Parameters are registered with the module, other values only stored."""

    def __init__(self) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        self._other_values: dict[str, Any] = {}

    def _set_entry(self, key: str, value: Any) -> None:
        if isinstance(value, Tensor):  # a parameter that takes another's place keeps its position: optimizers go by it
            self._other_values.pop(key, None)
            self.register_parameter(key, value if isinstance(value, Parameter) else Parameter(value))
        else:
            self._parameters.pop(key, None)
            self._other_values[key] = value
        self._keys[key] = None

    def _forget(self, key: str) -> None:
        self._parameters.pop(key, None)
        self._other_values.pop(key, None)

    def _value(self, key: str) -> Any:
        return self._parameters[key] if key in self._parameters else self._other_values[key]

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a state. A state pickled by torch stores values that are no parameters as attributes named by their keys."""
        if "_other_values" not in state:
            known = (*state.get("_keys", ()), *map(str, range(state.get("_size", 0))))
            others = {key: state[key] for key in known if key in state}
            kept = {key: value for key, value in state.items() if key not in others and key != "_size"}
            state = {**kept, "_keys": dict.fromkeys(known), "_other_values": others}
        super().__setstate__(state)

    def __len__(self) -> int:
        return len(self._keys)

    def __repr__(self) -> str:
        lines = [f"  ({key}): {self._describe(self._value(key))}" for key in self._keys]
        inside = "\n  " + "\n  ".join(lines) + "\n" if len(lines) > 1 else "".join(lines)
        return f"{self._get_name()}({inside})"

    def _describe(self, value: Any) -> str:
        if isinstance(value, Tensor):
            kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
            return f"{kind} containing: [{self._element_kind(value)} of size {'x'.join(map(str, value.shape))}]"
        return indent_after_first(f"Object of type: {type(value).__name__}", 2)

    @staticmethod
    def _element_kind(value: Tensor) -> str:
        return str(value.dtype)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"{self._get_name()} should not be called.")


class ParameterList(_ParameterCollection):
    """A list of parameters.

    Args:
        values (Iterable[Any] | None): the parameters.

    Example:
        >>> len(torch.nn.ParameterList([torch.nn.Parameter(torch.ones(2))]))
        1
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        if values is not None:
            self.extend(values)

    def _key_at(self, index: Any) -> str:
        position = operator.index(index)
        if not -len(self) <= position < len(self):
            raise IndexError(f"index {position} is out of range")
        return str(position % len(self))

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return self._value(self._key_at(index))

    def __setitem__(self, index: int, value: Any) -> None:
        self._set_entry(self._key_at(index), value)

    def __iter__(self) -> Iterator[Any]:
        return iter([self._value(key) for key in self._keys])

    def __iadd__(self, values: Iterable[Any]) -> ParameterList:
        return self.extend(values)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, value: Any) -> ParameterList:
        """Add a value at the end and return this list."""
        self._set_entry(str(len(self)), value)
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add values at the end and return this list; TypeError if `values` cannot be iterated."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self


class ParameterDict(_ParameterCollection):
    """A dict of parameters, in the order of insertion.

    Args:
        parameters (Mapping[str, Any] | Iterable[tuple[str, Any]] | None): the parameters.

    Example:
        >>> list(torch.nn.ParameterDict({'weight': torch.nn.Parameter(torch.ones(2))}))
        ['weight']
    """

    def __init__(self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None) -> None:
        super().__init__()
        if parameters is not None:
            self.update(parameters)

    @staticmethod
    def _element_kind(value: Tensor) -> str:
        return value.type()

    def __getitem__(self, key: str) -> Any:
        return self._value(self._require(key))

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise TypeError(f"ParameterDict needs a str as key, got {type(key).__name__}")
        self._set_entry(key, value)

    def __delitem__(self, key: str) -> None:
        self._forget(self._require(key))
        del self._keys[key]

    def _require(self, key: str) -> str:
        if key not in self._keys:
            raise KeyError(key)
        return key

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __or__(self, other: ParameterDict) -> ParameterDict:
        merged = self.copy()
        merged.update(other)
        return merged

    def __ior__(self, other: ParameterDict) -> ParameterDict:
        self.update(other)
        return self

    def copy(self) -> ParameterDict:
        """Return a new ParameterDict with the same values."""
        return ParameterDict(self.items())

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the value of `key`; if there is none, it is set to `default` first."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Remove all values."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Remove `key` and return its value; KeyError if there is none."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove the pair added last and return it; KeyError if there is none."""
        if not self._keys:
            raise KeyError("popitem(): ParameterDict is empty")
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of `key`, or `default`."""
        return self[key] if key in self else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Return a new ParameterDict with `default` for every key."""
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> Iterable[str]:
        """Return the keys."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Pairs of key and value."""
        return [(key, self._value(key)) for key in self._keys]

    def values(self) -> Iterable[Any]:
        """Return the values."""
        return [self._value(key) for key in self._keys]

    def update(self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Add values from a mapping or from pairs."""
        for key, value in key_value_pairs("ParameterDict", parameters):
            self[key] = value
