"""`torch._subclasses.fake_tensor`: tensors without data, with which a program is followed."""

from __future__ import annotations

from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import DataDependentError
from rushlight.fx.fake_tensor import FakeTensorMode, is_fake

__all__ = ["DataDependentOutputException", "FakeTensor", "FakeTensorMode", "is_fake"]
DataDependentOutputException = DataDependentError


class _OfFakes(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, Tensor) and is_fake(value)


class FakeTensor(metaclass=_OfFakes):
    """Tensors without data, which a FakeTensorMode makes, are its instances; they are of class Tensor."""

    def __new__(cls, *args: object, **kwargs: object) -> FakeTensor:
        raise TypeError("fake tensors are made by FakeTensorMode().from_tensor(x), and by factories under the mode")
