"""Patched methods of tensors and modules during a trace: sizes are recorded, values that leave the graph cause a warning.

In: the methods of Tensor, and Module.__call__. Out: the same methods, replaced while any thread traces. A thread that does not
trace, or is inside an operator, goes straight to the original method.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rushlight.core.size import Size
from rushlight.core.tensor import Tensor
from rushlight.jit.tracing.calls import LAST
from rushlight.jit.tracing.frames import is_library
from rushlight.jit.tracing.in_place_calls import IN_PLACE, in_place_call
from rushlight.jit.tracing.numbers import number_to_tensor, traced_item, traced_size
from rushlight.jit.tracing.numbers import plain as without_values
from rushlight.jit.tracing.record import argument_value
from rushlight.jit.tracing.state import complete_type, tracing_state
from rushlight.jit.tracing.warning import ITERATION, LENGTH, warn, warn_constant
from rushlight.jit.types.kinds import INT
from rushlight.nn.modules.module_hooks import ModuleHooks
from rushlight.ops.packet import find_packet
from rushlight.ops.recording import suspended

_lock = threading.Lock()
_users = 0
_saved: dict[tuple[type, str], object] = {}
_plain_shape = Tensor.__dict__["shape"].fget
_plain_size, _plain_length, _plain_count = Tensor.size, Tensor.__len__, Tensor.numel
_FULL = slice(None)
_RECORDED = slice(0, LAST, 1)
"""The form in which a full slice is recorded: graphs have no special case for it."""


def _is_recorded(self: Tensor) -> bool:
    tracing = tracing_state()
    return tracing is not None and tracing.is_traced(self)


def _shape(self: Tensor) -> Size:
    plain = _plain_shape(self)
    if not _is_recorded(self):
        return plain
    return Size([traced_size(self, dim, number) for dim, number in enumerate(plain)])


def _size(self: Tensor, dim: int | None = None) -> Size | int:
    if not _is_recorded(self):
        return _plain_size(self, dim)
    return _shape(self) if dim is None else traced_size(self, dim, _plain_size(self, dim))


def _length(self: Tensor) -> int:
    number = _plain_length(self)
    if _is_recorded(self) and not is_library(sys._getframe(1)):
        warn(LENGTH)
    return number


def _count(self: Tensor) -> int:
    number = _plain_count(self)
    if not _is_recorded(self):
        return number
    tracing = tracing_state()
    tracing.locate()
    value = tracing.graph.insert("aten::numel", [tracing.value_of(self)]).output.set_type(INT)
    return number_to_tensor(number, value)


def _hook_leaving(name: str, what: str) -> Callable:
    """Return a method that returns a Python value: it warns, and the value becomes a constant."""
    plain = Tensor.__dict__[name]

    def method(self: Tensor, *args: object, **kwargs: object) -> object:
        tracing = tracing_state()
        if tracing is None:
            return plain(self, *args, **kwargs)
        if tracing.is_traced(self):
            if name == "item" and is_library(sys._getframe(1)):
                with suspended():
                    number = plain(self)
                return traced_item(self, number)
            warn_constant(what)
        with suspended():
            return plain(self, *args, **kwargs)

    return method


def _hook_iterate(plain: Callable) -> Callable:
    def method(self: Tensor) -> Iterator[Tensor]:
        if _is_recorded(self) and not is_library(sys._getframe(1)):
            warn(ITERATION)
        return plain(self)

    return method


def _hook_indexing(plain: Callable) -> Callable:
    """Wrap indexing: full slices are recorded as slices."""

    def method(self: Tensor, index: object, *value: object) -> object:
        if tracing_state() is None:
            return plain(self, index, *value)
        if isinstance(index, slice) and index == _FULL:
            index = _RECORDED
        elif isinstance(index, tuple):
            index = tuple([_RECORDED if isinstance(item, slice) and item == _FULL else item for item in index])
        return plain(self, index, *value)

    return method


def _hook_changing_shape(name: str, plain: Callable) -> Callable:
    """Return a method that changes a tensor's shape or memory in place, without an operator of the dispatcher: recorded as a
    node."""

    def method(self: Tensor, *args: object, **kwargs: object) -> Tensor:
        tracing = tracing_state()
        if tracing is None:
            return plain(self, *args, **kwargs)
        call = in_place_call(name, self, args, kwargs)
        tracing.locate()
        inputs = [argument_value(tracing, value, kind) for value, kind in call.arguments]
        with suspended():
            plain(self, *map(without_values, args), **{key: without_values(value) for key, value in kwargs.items()})
        value = tracing.graph.insert(call.name, inputs).output.set_type(complete_type(self))
        tracing.set_value(self, value)
        return self

    return method


def _hook_reflected_difference(plain: Callable) -> Callable:
    def method(self: Tensor, other: object) -> object:
        if tracing_state() is None or not isinstance(other, int | float | complex):
            return plain(self, other)
        return find_packet("aten::rsub").Tensor(self, other)

    return method


def _hook_module_call(plain: Callable) -> Callable:
    """Wrap the call of a module: it is recorded as a call of a method."""

    def method(self: object, *args: object, **kwargs: object) -> object:
        tracing = tracing_state()
        path = None if tracing is None else tracing.module_paths.get(self)
        if path is None or getattr(self, "_c", None) is not None:
            return plain(self, *args, **kwargs)
        with tracing.module_call(path, tracing.objects[path]):
            return plain(self, *args, **kwargs)

    return method


def _replacements() -> dict[tuple[type, str], object]:
    methods: dict[tuple[type, str], object] = {
        (Tensor, "shape"): property(_shape, doc="The sizes."), (Tensor, "size"): _size, (Tensor, "__len__"): _length,
        (Tensor, "numel"): _count, (Tensor, "nelement"): _count,
    }  # fmt: skip
    for name, what in (
        ("__bool__", "Python boolean"), ("__int__", "Python integer"), ("__float__", "Python float"),
        ("__index__", "Python index"), ("__complex__", "Python complex number"), ("item", "Python number"),
        ("tolist", "Python list"), ("numpy", "NumPy array"),
    ):  # fmt: skip
        methods[Tensor, name] = _hook_leaving(name, what)
    for name in IN_PLACE:
        methods[Tensor, name] = _hook_changing_shape(name, Tensor.__dict__[name])
    methods[Tensor, "__iter__"] = _hook_iterate(Tensor.__iter__)
    methods[Tensor, "__getitem__"] = _hook_indexing(Tensor.__getitem__)
    methods[Tensor, "__setitem__"] = _hook_indexing(Tensor.__setitem__)
    methods[Tensor, "__rsub__"] = _hook_reflected_difference(Tensor.__rsub__)
    methods[ModuleHooks, "__call__"] = _hook_module_call(ModuleHooks.__call__)
    return methods


@contextmanager
def tracing_hooks() -> Iterator[None]:
    """Return a context manager that replaces the methods for all threads; threads that do not trace are unaffected."""
    global _users
    with _lock:
        _users += 1
        if _users == 1:
            for (kind, name), method in _replacements().items():
                _saved[kind, name] = kind.__dict__[name]
                setattr(kind, name, method)
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                for (kind, name), method in _saved.items():
                    setattr(kind, name, method)
                _saved.clear()
