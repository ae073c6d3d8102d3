"""Known results: a cache of fake results within one capture, because a model's layers repeat the same calls.

In: a node whose call is to be followed. Out: a fake like the result of an equal call before, or nothing. Only new, history-free
tensors are cached; the key is the arguments' sizes, strides and types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rushlight.core.device import CPU, device
from rushlight.core.dtype import dtype, get_default_dtype
from rushlight.core.naming import own_module
from rushlight.core.storage import without_data
from rushlight.core.tensor import Tensor, wrap
from rushlight.core.tensor_impl import TensorImpl
from rushlight.core.thread_state import state
from rushlight.fx.node import Node

_CONSTANTS = (type(None), bool, int, str, dtype, device)


class _Unknown(Exception):
    """No cache key can be made from an argument."""


class KnownResults:
    """A cache of the results of library calls."""

    def __init__(self) -> None:
        self._found: dict[tuple, tuple] = {}
        self._others: set[Callable] = set()  # functions that once returned a result that cannot be cached

    def key_of(self, node: Node) -> tuple | None:
        """Return the cache key of a call; None if its result is not cached."""
        target = node.target
        if node.op != "call_function" or target in self._others or not _is_own(target) or state.grad_enabled:
            return None
        if state.autocast is not None:
            return None
        try:
            keywords = tuple([(name, _describe(value)) for name, value in node.kwargs.items()])
            arguments = tuple(map(_describe, node.args)), keywords
        except _Unknown:
            return None
        return target, arguments, state.inference, state.include, state.exclude, get_default_dtype()

    def find(self, key: tuple | None) -> Tensor | None:
        """Return a new fake like the cached one."""
        found = self._found.get(key)
        if found is None:
            return None
        nbytes, *fields, inference = found
        impl = TensorImpl(without_data(nbytes), *fields)
        impl.inference = inference
        impl.fake = True
        return wrap(impl)

    def keep(self, key: tuple, result: Any, inputs: Iterable[Tensor]) -> None:
        """Cache the result of a call that wrote to nothing and drew no random numbers."""
        if type(result) is Tensor and _is_plain(result._impl, inputs):
            impl = result._impl
            self._found[key] = (
                impl.storage.nbytes, impl.sizes, impl.strides, impl.storage_offset, impl.dtype, impl.device, impl.key_set,
                impl.inference,
            )  # fmt: skip
        else:
            self._others.add(key[0])


def _is_own(target: Callable) -> bool:
    """Return whether a function belongs to the library or is a Python operator."""
    return own_module(target).partition(".")[0] in ("rushlight", "_operator")


def _is_plain(impl: TensorImpl, inputs: Iterable[Tensor]) -> bool:
    is_new = all(impl.storage is not tensor._impl.storage for tensor in inputs)
    return is_new and impl.fake and impl.autograd is None and impl.view is None and not impl.version.value


def _describe(value: Any) -> Any:
    """Return the properties of an argument that its call's result depends on. Raises _Unknown if these are not known."""
    kind = type(value)
    if kind is Node:
        return _describe_tensor(value.meta["example_value"])
    if kind in _CONSTANTS:
        return kind, value
    if kind is float:
        return kind, repr(value)  # repr tells -0.0 from 0.0
    if isinstance(value, (tuple, list)):
        return kind, *map(_describe, value)
    raise _Unknown


def _describe_tensor(value: Any) -> tuple:
    """Return the properties of a tensor that the result of a call depends on."""
    if type(value) is not Tensor:
        raise _Unknown
    impl = value._impl
    if impl.device is not CPU:
        raise _Unknown
    return impl.sizes, impl.strides, impl.storage_offset, impl.dtype, impl.key_set, impl.inference, impl.requires_grad
