"""Tensor subclasses with `__torch_dispatch__`, which see operators.

In: a class, and sizes or a tensor. Out: a tensor of that class whose key set has the key Python, so that each operator below
autograd goes to the class. A wrapper (`make_wrapper_subclass`) has sizes and a dtype but no memory of its own: its values are
in other tensors, which the class keeps as attributes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rushlight.core.device import as_device, device
from rushlight.core.dispatch_key import META_KEYS, DispatchKey, bit
from rushlight.core.dtype import dtype, get_default_dtype
from rushlight.core.layout import layout, memory_format, strided
from rushlight.core.storage import without_data
from rushlight.core.strides import contiguous_strides
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import UNKNOWN_NBYTES, AutogradMeta, TensorImpl

PYTHON_BIT = bit(DispatchKey.Python)


def disabled_torch_dispatch(func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
    """Return the `__torch_dispatch__` of classes that don't override operators."""
    return func(*args, **(kwargs or {}))


Tensor.__torch_dispatch__ = staticmethod(disabled_torch_dispatch)


def dispatches(kind: type) -> bool:
    """Return whether a class overrides `__torch_dispatch__`."""
    return getattr(kind, "__torch_dispatch__", disabled_torch_dispatch) is not disabled_torch_dispatch


def is_constant_of_graphs(kind: type) -> bool:
    """Return whether captured graphs may hold tensors of a class as constants. It says so by `__constant_of_graphs__`: its
    functions run as operators on inner tensors, which never change. `dequantize` gives a plain tensor."""
    return getattr(kind, "__constant_of_graphs__", False)


def constants_of_graphs(values: Iterable[Any]) -> tuple[type, ...]:
    """Return the classes among an operator's arguments that captured graphs may hold as constants."""
    found: list[type] = []
    for value in values:
        if isinstance(value, list | tuple):
            found += constants_of_graphs(value)
        elif is_constant_of_graphs(type(value)):
            found.append(type(value))
    return tuple(found)


def make_wrapper_subclass(
    cls: type,
    size: Sequence[int],
    strides: Sequence[int] | None = None,
    storage_offset: int | None = None,
    memory_format: memory_format | None = None,
    dtype: dtype | None = None,
    layout: layout = strided,
    device: device | str | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    dispatch_sizes_strides_policy: str | None = None,
    dispatch_device: bool = False,
    dispatch_layout: bool = False,
    **unused: Any,
) -> Any:
    """Return a tensor of class `cls` with these sizes and no memory. TypeError unless the class defines
    `__torch_dispatch__`.
    """
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(f"cls must be a type derived from Tensor (got {cls!r})")
    if not dispatches(cls):
        raise TypeError(f"{cls.__name__} must define __torch_dispatch__")
    sizes = tuple(size)
    steps = contiguous_strides(sizes) if strides is None else tuple(strides)
    kind = dtype or get_default_dtype()
    where = as_device("cpu" if device is None else device)
    nbytes = math.prod(sizes) * kind.itemsize
    storage = without_data(nbytes if type(nbytes) is int else UNKNOWN_NBYTES)
    impl = TensorImpl(storage, sizes, steps, storage_offset or 0, kind, where, META_KEYS | PYTHON_BIT)
    if requires_grad:
        impl.autograd = AutogradMeta(True)
    return of_class(cls, impl)


def make_subclass(cls: type, data: Tensor, require_grad: bool = False, *unused: Any, **more: Any) -> Any:
    """Return a tensor of class `cls` over the memory of `data`, without its history."""
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(f"cls must be a type derived from Tensor (got {cls!r})")
    impl = data._impl
    alias = impl.alias(impl.sizes, impl.strides, impl.storage_offset)
    if dispatches(cls):
        alias.key_set |= PYTHON_BIT
    if require_grad:
        alias.autograd = AutogradMeta(True)
    return of_class(cls, alias)


def with_history_as(cls: type, tensor: Tensor) -> Any:
    """Return `tensor` as a tensor of class `cls`, which sees operators, with the same memory and history."""
    made = make_subclass(cls, tensor)
    made._impl.autograd, made._impl.view = tensor._impl.autograd, tensor._impl.view
    return made


def of_class(cls: type, impl: TensorImpl) -> Any:
    """Return a tensor of class `cls` over `impl`; its constructor is not called."""
    made = object.__new__(cls)
    made._impl = impl
    return made


def like(tensor: Tensor, impl: TensorImpl) -> Any:
    """Return a tensor over `impl` of the class of `tensor`, with its attributes."""
    made = of_class(type(tensor), impl)
    _copy_attributes(tensor, made)
    return made


def _copy_attributes(source: Tensor, target: Any) -> None:
    target.__dict__.update(source.__dict__)
    for kind in type(source).__mro__:
        names = kind.__dict__.get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if name != "_impl" and hasattr(source, name):
                setattr(target, name, getattr(source, name))


def is_wrapper(tensor: Tensor) -> bool:
    """Return whether a tensor has no memory of its own, but attributes that have."""
    return sees_operators(tensor) and tensor._impl.key_set & META_KEYS == META_KEYS


def take_contents(wrapper: Tensor, other: Tensor) -> None:
    """Give a wrapper the sizes, dtype and attributes of another, as an assignment to `data` does for tensors with memory."""
    wrapper.data = other
    _copy_attributes(other, wrapper)


def sees_operators(tensor: Tensor) -> bool:
    """Return whether operators on a tensor go to its `__torch_dispatch__`."""
    return type(tensor) is not Tensor and bool(tensor._impl.key_set & PYTHON_BIT)


Tensor._make_wrapper_subclass = staticmethod(make_wrapper_subclass)
Tensor._make_subclass = staticmethod(make_subclass)
