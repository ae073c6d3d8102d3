"""Signatures: what a compiled entry assumed, as a hashable tuple that is made anew at every call.

In: the arguments' leaves, the function, its module. Out: tuples that are equal for two calls that one entry may serve.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator

from rushlight.core.dtype import dtype, get_default_dtype
from rushlight.core.layout import layout, memory_format
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.nn.modules.module import Module

_PLAIN = (bool, int, str, bytes, type(None), range)
# Compared by identity, and the same for good.
_CONSTANT = (dtype, layout, memory_format, type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType)


class NotComparable(TypeError):
    """An argument whose changes could not be noticed."""


def describe(leaf: object) -> tuple:
    """What an entry assumes of one argument. NotComparable for an object that may change unseen."""
    if isinstance(leaf, Tensor):
        impl = leaf._impl
        return (impl.sizes, impl.strides, impl.dtype, impl.device)
    kind = type(leaf)
    if kind in _PLAIN:
        return (kind, leaf)
    if kind in (float, complex):
        return (kind, repr(leaf))  # tells -0.0 from 0.0, and lets NaN be equal to itself
    if kind.__hash__ is None or (kind.__hash__ is object.__hash__ and not isinstance(leaf, _CONSTANT)):
        raise NotComparable(f"an argument of type {kind.__name__} could change without being noticed")
    return (kind, leaf)


def sharing(tensors: list[Tensor]) -> tuple[int, ...]:
    """For each tensor, the position of the first one that is the same."""
    first: dict[int, int] = {}
    return tuple([first.setdefault(id(tensor._impl), position) for position, tensor in enumerate(tensors)])


def distinct(tensors: list[Tensor]) -> list[Tensor]:
    """Each tensor once, in order: a captured graph has one input per distinct tensor."""
    if len(tensors) < 2:
        return tensors
    return list({id(tensor._impl): tensor for tensor in tensors}.values())


def placement(tensors: list[Tensor]) -> tuple:
    """Which tensors share memory, and where in it each begins: for graphs that write, or view memory by absolute offsets."""
    first: dict[int, int] = {}
    return tuple([
        (first.setdefault(id(tensor._impl.storage), position), tensor._impl.storage_offset)
        for position, tensor in enumerate(tensors)
    ])  # fmt: skip


def ambient() -> tuple:
    """The thread's state that decides what operators do."""
    casts = state.autocast
    precision = (casts.enabled, casts.dtype) if casts is not None else None
    return (state.grad_enabled, get_default_dtype(), precision)


class ModuleState:
    """A module's mode, and which tensors and submodules it holds."""

    def __init__(self, module: Module):
        self.module = module
        self._parts: list[Module] = []
        self._tree: tuple | None = None

    def __call__(self) -> tuple:
        """The state now."""
        if tuple([id(child) for part in self._parts for child in part._modules.values()]) != self._tree:
            self._parts = list(self.module.modules())
            self._tree = tuple([id(child) for part in self._parts for child in part._modules.values()])
        held: list = [self._tree]
        for part in self._parts:
            held.append(part.training)
            held.extend(map(id, part._parameters.values()))
            held.extend(map(id, part._buffers.values()))
        return tuple(held)

    def tensors(self) -> Iterator[Tensor]:
        """The parameters."""
        return self.module.parameters()


class Surroundings:
    """What a function finds outside its arguments: closure cells, globals that it names, attributes of its object.

    Only the function itself is looked at, not what it calls. Tensors count by identity, plain values by value.
    """

    def __init__(self, function: Callable):
        while isinstance(function, functools.partial):
            function = function.func
        owner = getattr(function, "__self__", None)
        if owner is None and not isinstance(function, types.FunctionType | types.BuiltinFunctionType | type):
            owner = function
        self._attributes = getattr(owner, "__dict__", None) if not isinstance(owner, types.ModuleType) else None
        function = getattr(function, "__func__", function)
        self._cells = getattr(function, "__closure__", None) or ()
        self._globals = getattr(function, "__globals__", {})
        code = getattr(function, "__code__", None)
        names = code.co_names if code is not None else ()
        self._names = [name for name in names if isinstance(self._globals.get(name), Tensor | int | float | str)]

    def __call__(self) -> tuple:
        """The values now."""
        if not (self._cells or self._names or self._attributes):
            return ()
        return tuple(map(_outside_value, self._values()))

    def tensors(self) -> Iterator[Tensor]:
        """The tensors among them."""
        return (value for value in self._values() if isinstance(value, Tensor))

    def _values(self) -> list:
        found = [_content(cell) for cell in self._cells]
        found += [self._globals.get(name) for name in self._names]
        return found + list(self._attributes.values()) if self._attributes else found


def _content(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None


def _outside_value(value: object) -> tuple:
    if type(value) in _PLAIN:
        return (type(value), value)
    return (float, repr(value)) if type(value) is float else (None, id(value))
