"""Attributes of Tensor for batched tensors: autograd's attributes come from the value, and memory is inaccessible."""

from __future__ import annotations

import functools
from collections.abc import Callable

from rushlight.core.tensor import Tensor
from rushlight.ops.batching.kernel import is_nonzero
from rushlight.ops.batching.layout import is_batched, levels_of, make_batched, value_of


def _replace(name: str, *accessors: Callable | None) -> None:
    """Replace the accessors of a property of Tensor. The object stays the same, because programs use `Tensor.grad.__get__` as a
    key."""
    plain: property = vars(Tensor)[name]
    plain.__init__(*accessors, doc=plain.__doc__)  # type: ignore[misc]


def _take_from_value(name: str) -> None:
    """Make a property of batched tensors return that of their value."""
    plain: property = vars(Tensor)[name]
    _replace(name, *(function and _call_on_value(function) for function in (plain.fget, plain.fset, plain.fdel)))


def _call_on_value(function: Callable) -> Callable:
    @functools.wraps(function)
    def call(self: Tensor, *args: object) -> object:
        return function(value_of(self), *args)

    return call


def _refuse_storage(name: str) -> Callable:
    plain = getattr(Tensor, name)

    @functools.wraps(plain)
    def checked(self: Tensor, *args: object, **kwargs: object) -> object:
        if is_batched(self):
            raise RuntimeError(f"Cannot access data pointer of Tensor that doesn't have storage: {name}() inside a vmap")
        return plain(self, *args, **kwargs)

    return checked


def _install() -> None:
    plain_repr, plain_bool, plain_requires_grad = Tensor.__repr__, Tensor.__bool__, Tensor.requires_grad_
    plain_data, set_data = vars(Tensor)["data"].fget, vars(Tensor)["data"].fset

    @functools.wraps(plain_repr)
    def shown(self: Tensor, *, tensor_contents: object = None) -> str:
        if not is_batched(self):
            return plain_repr(self, tensor_contents=tensor_contents)
        value = repr(value_of(self)).replace("\n", "\n    ")
        return f"BatchedTensor(levels={levels_of(self)}, value=\n    {value}\n)"

    @functools.wraps(plain_bool)
    def truth(self: Tensor) -> bool:
        if is_batched(self):
            is_nonzero(self)
        return plain_bool(self)

    @functools.wraps(plain_requires_grad)
    def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
        plain_requires_grad(value_of(self), requires_grad)
        return self

    @functools.wraps(plain_data)
    def data(self: Tensor) -> Tensor:
        return make_batched(plain_data(value_of(self)), levels_of(self))

    Tensor.__repr__, Tensor.__bool__, Tensor.requires_grad_ = shown, truth, requires_grad_
    _replace("data", data, set_data)
    for name in ("requires_grad", "grad_fn", "grad", "is_leaf"):
        _take_from_value(name)
    for name in ("numpy", "tolist", "data_ptr", "untyped_storage", "storage"):
        setattr(Tensor, name, _refuse_storage(name))


_install()
