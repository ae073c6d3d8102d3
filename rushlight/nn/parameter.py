"""Parameter and Buffer: tensors that a Module registers by itself when they are assigned to an attribute."""

from __future__ import annotations

from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import AutogradMeta


class Parameter(Tensor):
    """A tensor that a module learns: a leaf over the memory of `data`.

    Raises TypeError if `data` is no tensor, RuntimeError if `requires_grad` is asked for an integer or bool dtype.
    """

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        made = _over_memory_of(cls, data)
        element_type = made._impl.dtype
        if requires_grad and not (element_type.is_floating_point or element_type.is_complex):
            raise RuntimeError(
                f"Only Tensors of floating point and complex dtype can require gradients, got {element_type}; "
                "pass requires_grad=False"
            )
        made._impl.autograd = AutogradMeta(requires_grad)
        return made

    def __deepcopy__(self, memo: dict) -> Parameter:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.data.clone(), self.requires_grad)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return Parameter, (self.data, self.requires_grad)


class Buffer(Tensor):
    """A tensor that belongs to a module's state but is not learned; in its state dict only if `persistent`."""

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        made = _over_memory_of(cls, data)
        made.persistent = persistent
        return made

    # `Tensor` accepts any arguments; this one takes a keyword.
    def __init__(self, data: Tensor | None = None, *, persistent: bool = True) -> None:
        pass

    def __deepcopy__(self, memo: dict) -> Buffer:
        if id(self) not in memo:
            memo[id(self)] = Buffer(self.data.clone(), persistent=self.persistent)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return _rebuild_buffer, (self.data, self.persistent)


def _over_memory_of(cls: type, data: Tensor | None) -> Any:
    if data is None:
        data = Tensor(0)
    if not isinstance(data, Tensor):
        raise TypeError(f"{cls.__name__} needs a Tensor, got {type(data).__name__}; make one with torch.tensor(...)")
    impl = data._impl
    made = object.__new__(cls)
    made._impl = impl.alias(impl.sizes, impl.strides, impl.storage_offset)
    return made


def _rebuild_buffer(data: Tensor, persistent: bool) -> Buffer:
    return Buffer(data, persistent=persistent)
