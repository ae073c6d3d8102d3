"""`torch.autograd.Variable`, the predecessor of tensors that require gradients."""

from __future__ import annotations

from typing import Any

from rushlight.core.tensor import Tensor


class _VariableType(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, Tensor)

    def __subclasscheck__(cls, kind: type) -> bool:
        return kind is cls or issubclass(kind, Tensor)


class Variable(metaclass=_VariableType):
    """A tensor: `Variable(tensor, requires_grad)` is one that shares the tensor's memory. Every tensor is an instance."""

    def __new__(cls, data: Tensor, requires_grad: bool = False, volatile: bool = False) -> Any:
        """Raise TypeError for anything but a tensor; ValueError with `volatile`, which `no_grad` has replaced."""
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        if volatile:
            raise ValueError("Variable: volatile was removed; use `with torch.no_grad():` instead")
        return data.detach().requires_grad_(requires_grad)
