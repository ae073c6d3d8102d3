"""Containers of modules: Sequential, ModuleList, ModuleDict. Containers of parameters are in `parameter_container`."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from rushlight.core.lazy_module import lazy_names
from rushlight.nn.modules.module import Module, indent_after_first


class _ModuleSequence(Module):
    """The base of Sequential and ModuleList: submodules named "0", "1", ..., with most of a list's interface."""

    def _name_at(self, index: Any) -> str:
        """Return the name of the submodule at an integer index; IndexError if there is none."""
        position = operator.index(index)
        count = len(self)
        if not -count <= position < count:
            raise IndexError(f"index {position} is out of range")
        return list(self._modules)[position]

    def _renumber(self, modules: Iterable[Module]) -> None:
        self._modules = {str(index): module for index, module in enumerate(modules)}

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._name_at(index), _require_module(module))

    def __delitem__(self, index: int | slice) -> None:
        names = list(self._modules)
        doomed = set(names[index]) if isinstance(index, slice) else {self._name_at(index)}
        self._renumber(module for name, module in self._modules.items() if name not in doomed)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, module: Module) -> _ModuleSequence:
        """Add a module at the end and return this container."""
        self.add_module(str(len(self)), _require_module(module))
        return self

    def insert(self, index: int, module: Module) -> _ModuleSequence:
        """Put a module before the one at `index` and return this container."""
        count = len(self)
        if not -count <= index <= count:
            raise IndexError(f"Index out of range: {index}")
        modules = list(self)
        modules.insert(index, _require_module(module))
        self._renumber(modules)
        return self

    def extend(self, modules: Iterable[Module]) -> _ModuleSequence:
        """Add modules at the end and return this container; TypeError if `modules` cannot be iterated."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"{type(self).__name__}.extend should be called with an iterable, but got {type(modules).__name__}"
            )
        for module in list(modules):
            self.append(module)
        return self

    def pop(self, index: int = -1) -> Module:
        """Remove the module at `index` and return it."""
        module = self[index]
        del self[index]
        return module

    def _from_slice(self, index: slice) -> list[tuple[str, Module]]:
        return list(self._modules.items())[index]


class Sequential(_ModuleSequence):
    """Modules called one after another: `Sequential(a, b)(x)` is `b(a(x))`.

    Takes modules, or one dict from names to modules.

    Args:
        *args (Any): the modules, or one dict from names to modules.

    Example:
        >>> torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())(torch.ones(1, 3)).shape
        torch.Size([1, 2])
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        named = args[0].items() if len(args) == 1 and isinstance(args[0], dict) else enumerate(args)
        for name, module in named:
            self.add_module(str(name), module)

    def forward(self, input: Any) -> Any:
        """Pass `input` through all modules in order."""
        for module in self._modules.values():
            input = module(input)
        return input

    def insert(self, index: int, module: Module) -> Sequential:
        """Put a module before the one at `index` and return this container; AssertionError for anything but a module."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        return super().insert(index, module)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(dict(self._from_slice(index)))
        return self._modules[self._name_at(index)]

    def __add__(self, other: Sequential) -> Sequential:
        _require_sequential("add", other)
        return Sequential(*self, *other)

    def __iadd__(self, other: Sequential) -> Sequential:
        _require_sequential("add", other)
        return self.extend(other)

    def __mul__(self, other: int) -> Sequential:
        _require_factor(other)
        return Sequential(*list(self) * other)

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Sequential:
        _require_factor(other)
        return self.extend(list(self) * (other - 1))


class ModuleList(_ModuleSequence):
    """A list of modules. It registers them and leaves calling them to you.

    Args:
        modules (Iterable[Module] | None): the modules.

    Example:
        >>> len(torch.nn.ModuleList([torch.nn.Linear(3, 2), torch.nn.ReLU()]))
        2
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(module for _, module in self._from_slice(index))
        return self._modules[self._name_at(index)]

    def __iadd__(self, modules: Iterable[Module]) -> ModuleList:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __repr__(self) -> str:
        """Equal neighbours are printed once: `(0-5): 6 x Linear(...)`."""
        lines, start = [], 0
        for text, group in groupby(map(repr, self)):
            count = len(list(group))
            label = f"({start}): " if count == 1 else f"({start}-{start + count - 1}): {count} x "
            lines.append(label + indent_after_first(text, 2))
            start += count
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)" if lines else f"{self._get_name()}()"


class ModuleDict(Module):
    """A dict of modules, in the order of insertion. It registers them and leaves calling them to you.

    Args:
        modules (Mapping[str, Module] | Iterable[tuple[str, Module]] | None): the modules.

    Example:
        >>> list(torch.nn.ModuleDict({'first': torch.nn.ReLU()}))
        ['first']
    """

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Remove the module called `key` and return it; KeyError if there is none."""
        return self._modules.pop(key)

    def keys(self) -> Iterable[str]:
        """Return the names."""
        return self._modules.keys()

    def items(self) -> Iterable[tuple[str, Module]]:
        """Pairs of name and module."""
        return self._modules.items()

    def values(self) -> Iterable[Module]:
        """Return the modules."""
        return self._modules.values()

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add modules from a mapping or from pairs; existing names are overwritten."""
        for key, module in key_value_pairs("ModuleDict", modules):
            self[key] = module


def key_value_pairs(owner: str, pairs: Any) -> list[tuple[str, Any]]:
    """Return the items of a mapping or of an iterable of pairs; TypeError or ValueError for anything else."""
    if isinstance(pairs, (Mapping, ModuleDict)) or hasattr(pairs, "items"):
        return list(pairs.items())
    if not isinstance(pairs, Iterable):
        raise TypeError(
            f"{owner}.update should be called with an iterable of key/value pairs, but got {type(pairs).__name__}"
        )
    checked = []
    for position, pair in enumerate(pairs):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{owner} update sequence element #{position} should be Iterable; is {type(pair).__name__}")
        pair = tuple(pair)
        if len(pair) != 2:
            raise ValueError(f"{owner} update sequence element #{position} has length {len(pair)}; 2 is required")
        checked.append(pair)
    return checked


def _require_module(module: Any) -> Module | None:
    """Raise TypeError for anything but a module or None; None leaves a list entry empty."""
    if module is not None and not isinstance(module, Module):
        raise TypeError(f"{type(module).__name__} is not a Module subclass")
    return module


def _require_sequential(verb: str, other: Any) -> None:
    if not isinstance(other, Sequential):
        raise ValueError(f"{verb} operator supports only objects of Sequential class, but {type(other)} is given.")


def _require_factor(factor: Any) -> None:
    if not isinstance(factor, int):
        raise TypeError(f"unsupported operand type(s) for *: Sequential and {type(factor).__name__}")
    if factor <= 0:
        raise ValueError(f"Non-positive multiplication factor {factor} for Sequential")


# PyTorch's module of this name also has these classes; they are imported lazily.
__getattr__, __dir__ = lazy_names(globals(), {
    "rushlight.nn.modules.parameter_container": ("ParameterDict", "ParameterList"),
})  # fmt: skip
