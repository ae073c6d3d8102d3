"""Tensor methods that are more than one operator call: conversions, numbers out of tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from rushlight.core import dtype as dtypes
from rushlight.core.device import device
from rushlight.core.dtype import dtype
from rushlight.core.layout import memory_format
from rushlight.core.overrides import call_override, is_overriding
from rushlight.core.size import Size
from rushlight.core.storage import UntypedStorage
from rushlight.core.tensor import Tensor, tensor_from_array
from rushlight.core.typed_storage import TypedStorage
from rushlight.ops.construct import PYTHON_TYPES, tensor, tensor_of_storage
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")
_CONVERSIONS = {
    "float": dtypes.float32, "double": dtypes.float64, "half": dtypes.float16, "bfloat16": dtypes.bfloat16,
    "long": dtypes.int64, "int": dtypes.int32, "short": dtypes.int16, "char": dtypes.int8, "byte": dtypes.uint8,
    "bool": dtypes.bool_, "cfloat": dtypes.complex64, "cdouble": dtypes.complex128, "chalf": dtypes.complex32,
}  # fmt: skip


def item(self: Tensor) -> bool | int | float | complex:
    """Return the value of a one-element tensor as a Python number; RuntimeError for more or fewer elements."""
    return aten._local_scalar_dense.default(self)


def _single_value(self: Tensor) -> bool | int | float | complex:
    """Return the value for `int()`, `float()` and `complex()`; ValueError unless there is exactly one element."""
    if self.numel() != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    return item(self)


def _real_number(self: Tensor, kind: str) -> bool | int | float:
    """Return the value as a real number; RuntimeError if it has an imaginary part."""
    value = _single_value(self)
    if isinstance(value, complex):
        if value.imag:
            raise RuntimeError(f"value cannot be converted to type {kind} without overflow")
        return value.real
    return value


def _bool(self: Tensor) -> bool:
    if self.numel() != 1:
        what = "more than one value" if self.numel() else "no values"
        raise RuntimeError(f"Boolean value of Tensor with {what} is ambiguous")
    return bool(item(self))


def _index(self: Tensor) -> int:
    if self.numel() != 1 or not self.dtype.is_integral:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(item(self))


def _iterate(self: Tensor) -> Iterator[Tensor]:
    if self.dim() == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(aten.unbind(self, 0))


def _reverse(self: Tensor) -> Tensor:
    """Return a copy with the first dimension reversed, for `reversed`; a 0-dim tensor as it is."""
    return aten.flip.default(self, (0,)) if self._impl.sizes else self


def _contains(self: Tensor, element: object) -> bool:
    if not isinstance(element, Tensor | bool | int | float | complex | np.number | np.bool_):
        raise RuntimeError(
            f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}."
        )
    return bool((self == element).any().item())


def _wrap_array(self: Tensor, array: np.ndarray, context: object = None, return_scalar: bool = False) -> Tensor:
    """Wrap the result of a NumPy function that was given a tensor. NumPy calls this."""
    return tensor_from_array(np.asarray(array))


def to(self: Tensor, *args: object, **kwargs: object) -> Tensor:
    """Return a tensor of another dtype or device: `to(dtype)`, `to(device, dtype)`, `to(other)`; itself when nothing
    changes."""
    if type(self) is not Tensor and is_overriding(type(self)):
        return call_override(to, [self], (self, *args), kwargs)
    wanted = dict(kwargs)
    positional = [*args, *([wanted.pop("other")] if "other" in wanted else [])]
    flags = iter(("non_blocking", "copy"))
    for argument in positional:
        if isinstance(argument, bool):
            wanted[next(flags)] = argument
        elif argument is not None:
            wanted.update(_target_of(argument))
    kind = wanted.get("dtype")
    if isinstance(kind, type) and kind in PYTHON_TYPES:
        wanted["dtype"] = PYTHON_TYPES[kind]
    return aten.to.dtype_layout(self, **wanted)


def _target_of(argument: object) -> dict:
    """Return the dtype, device or tensor that one positional argument of `to` stands for."""
    if isinstance(argument, Tensor):
        return {"dtype": argument.dtype, "device": argument.device}
    if isinstance(argument, dtype | type):
        return {"dtype": argument}
    if isinstance(argument, str | device | int):
        return {"device": argument}
    if isinstance(argument, memory_format):
        return {"memory_format": argument}
    raise TypeError(f"to() received an invalid combination of arguments - got ({type(argument).__name__})")


def _converter(name: str, kind: dtype) -> Callable:
    def convert(self: Tensor, memory_format: memory_format | None = None) -> Tensor:
        return aten.to.dtype_layout(self, dtype=kind, memory_format=memory_format)

    convert.__name__ = convert.__qualname__ = name
    convert.__doc__ = f"This tensor as {kind}."
    return convert


def type_(self: Tensor, dtype: object = None) -> str | Tensor:
    """Return the type's name, as "torch.FloatTensor", or the tensor converted to `dtype` (a dtype or such a name)."""
    if dtype is None:
        return f"torch.{'cuda.' if self.is_cuda else ''}{self.dtype.scalar_name}Tensor"
    if isinstance(dtype, str):
        kind, place = _type_named(dtype)
        return _to_type(self, kind, place)
    if dtype is Tensor:
        return to(self, dtypes.get_default_dtype())
    # A legacy type such as FloatTensor carries its dtype, and the type of its devices.
    return _to_type(self, dtype.dtype, dtype.place) if hasattr(dtype, "place") else to(self, getattr(dtype, "dtype", dtype))


def _to_type(self: Tensor, kind: dtype, place: str) -> Tensor:
    """Return a tensor in a dtype, on a device of a type, which is its own if that is of the type."""
    return to(self, kind) if self._impl.device.type == place else to(self, place, kind)


def _type_named(name: str) -> tuple[dtype, str]:
    for kind in (*dtypes.ALL, *dtypes.STORED_TYPES):
        for prefix, place in (("torch.", "cpu"), ("torch.cuda.", "cuda")):
            if name == f"{prefix}{kind.scalar_name}Tensor":
                return kind, place
    raise ValueError(f"invalid type: {name!r}; expected a name like 'torch.FloatTensor'")


def where(self: Tensor, condition: Tensor, other: Tensor | float) -> Tensor:
    """Return this tensor's elements where `condition` is true, those of `other` elsewhere; all broadcast together."""
    return aten.where(condition, self, other)


def cpu(self: Tensor) -> Tensor:
    """Return this tensor on the CPU."""
    return to(self, "cpu")


def new_tensor(
    self: Tensor, data: object, *, dtype: dtype | None = None, device: object = None, requires_grad: bool = False
) -> Tensor:
    """Return a tensor that copies `data`, with this tensor's dtype and device unless others are given."""
    where = self.device if device is None else device
    return tensor(data, dtype=dtype or self.dtype, device=where, requires_grad=requires_grad)


def new(self: Tensor, *arguments: Any, size: Sequence[int] | None = None, device: object = None) -> Tensor:
    """Return a tensor of this one's dtype and device: uninitialised, of the given sizes; with the elements of a sequence; or
    sharing the memory of a tensor of the same dtype.

    `new_empty` and `new_tensor` are less ambiguous. TypeError for anything else.
    """
    where = self.device if device is None else device
    arguments = arguments if size is None else (*arguments, Size(size))
    given = arguments[0] if len(arguments) == 1 else None
    if isinstance(given, TypedStorage | UntypedStorage):
        return tensor_of_storage(given, self.dtype)
    if isinstance(given, Tensor):
        if given.dtype is not self.dtype:
            raise TypeError(f"new(): expected a tensor of {self.dtype}, got one of {given.dtype}")
        return given.detach()
    if isinstance(given, Size):
        return aten.empty(list(given), dtype=self.dtype, device=where)
    if all(isinstance(size, int) for size in arguments):
        return aten.empty(list(arguments) or [0], dtype=self.dtype, device=where)
    if isinstance(given, Sequence) or hasattr(given, "__array__"):
        return tensor(given, dtype=self.dtype, device=where)
    raise TypeError(f"new(): data must be a sequence (got {', '.join(type(each).__name__ for each in arguments)})")


def install() -> None:
    """Attach the methods to Tensor."""
    for method in (item, to, where, cpu, new, new_tensor):
        setattr(Tensor, method.__name__, method)
    for name, kind in _CONVERSIONS.items():
        setattr(Tensor, name, _converter(name, kind))
    Tensor.type = type_
    Tensor.T = property(lambda self: aten.numpy_T(self), doc="The dimensions in reverse order.")
    Tensor.mT = property(lambda self: aten.mT(self), doc="The last two dimensions exchanged.")
    Tensor.mH = property(lambda self: aten.mH.default(self), doc="The last two dimensions exchanged, and conjugated.")
    Tensor.H = property(lambda self: aten.matrix_H.default(self), doc="A matrix transposed and conjugated.")
    Tensor.__bool__, Tensor.__index__, Tensor.__iter__, Tensor.__contains__ = _bool, _index, _iterate, _contains
    Tensor.__reversed__ = _reverse
    Tensor.__int__ = lambda self: int(_real_number(self, "int64_t"))
    Tensor.__float__ = lambda self: float(_real_number(self, "double"))
    Tensor.__complex__ = lambda self: complex(_single_value(self))
    Tensor.__array_wrap__ = _wrap_array
