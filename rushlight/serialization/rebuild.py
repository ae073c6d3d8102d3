"""Rebuild tensors from a checkpoint's claims: the only module here that depends on the tensor core.

In: storages, and sizes, strides and offsets that a file claims. Out: tensors and parameters, after every claim was
checked against the bytes that the storage has.
"""

from __future__ import annotations

import math
from typing import Any

from rushlight.core.device import CPU, META, device
from rushlight.core.dtype import dtype
from rushlight.core.layout import layout
from rushlight.core.storage import UntypedStorage
from rushlight.core.tensor import Tensor, tensor_from_storage, wrap
from rushlight.core.tensor_impl import empty_meta_impl
from rushlight.core.wrapper_subclasses import make_wrapper_subclass
from rushlight.nn.parameter import Parameter
from rushlight.serialization.errors import UnpicklingError

_MAX_DIMENSIONS = 64
_SIZE_LIMIT = 1 << 63


def make_tensor(
    storage: UntypedStorage, element_type: dtype, offset: Any, sizes: Any, strides: Any, requires_grad: Any = False
) -> Tensor:
    """Return a tensor over `storage`; sizes, strides and offset count elements. UnpicklingError where they leave the storage.
    """
    check_geometry(storage.nbytes(), element_type, offset, sizes, strides)
    if storage.device.type == "meta":
        tensor = wrap(empty_meta_impl(tuple(sizes), element_type, META, tuple(strides)))
    else:
        tensor = tensor_from_storage(storage, element_type, tuple(sizes), tuple(strides), offset)
    return _with_grad_flag(tensor, requires_grad)


def make_meta_tensor(element_type: dtype, sizes: Any, strides: Any, requires_grad: Any) -> Tensor:
    """Return a tensor of the meta device, which has a geometry and no bytes."""
    _check_numbers(sizes, strides, 0)
    _check_reach(element_type, 0, sizes, strides)
    return _with_grad_flag(wrap(empty_meta_impl(tuple(sizes), element_type, META, tuple(strides))), requires_grad)


def make_parameter(data: Any, requires_grad: Any) -> Parameter:
    """Return a Parameter over the data of a tensor."""
    if not isinstance(data, Tensor):
        raise UnpicklingError(f"a parameter is made of a {type(data).__name__}, and needs a tensor")
    _check_grad_flag(data.dtype, requires_grad)
    return Parameter(data, requires_grad)


def make_wrapper(
    kind: type, element_type: dtype, sizes: Any, strides: Any, offset: Any, form: layout, place: device, requires_grad: Any
) -> Tensor:  # fmt: skip
    """Return a tensor of a class that stores its values in other tensors. It is on the CPU if `place` is a device that does not
    exist here."""
    _check_numbers(sizes, strides, offset)
    _check_grad_flag(element_type, requires_grad)
    local = place if place.type == "meta" else CPU
    return make_wrapper_subclass(
        kind, tuple(sizes), tuple(strides), offset, dtype=element_type, layout=form, device=local, requires_grad=requires_grad
    )


def set_attributes(tensor: Tensor, attributes: dict[str, Any]) -> Tensor:
    """Restore a tensor's user-defined attributes; those that would hide a method are rejected."""
    for name, value in attributes.items():
        if type(name) is not str or hasattr(type(tensor), name):
            raise UnpicklingError("the pickle sets an attribute of a tensor that would hide its methods")
        tensor.__dict__[name] = value
    return tensor


def check_geometry(nbytes: int, element_type: dtype, offset: Any, sizes: Any, strides: Any) -> None:
    """Raise UnpicklingError unless every element of the view lies within a storage of `nbytes` bytes."""
    _check_numbers(sizes, strides, offset)
    reach = _check_reach(element_type, offset, sizes, strides)
    if reach * element_type.itemsize > nbytes:
        raise UnpicklingError(
            f"a tensor of size {list(sizes)}, strides {list(strides)}, offset {offset} and dtype {element_type} needs "
            f"{reach * element_type.itemsize} bytes, and its storage has {nbytes}"
        )


def _check_numbers(sizes: Any, strides: Any, offset: Any) -> None:
    for numbers in (sizes, strides):
        if not isinstance(numbers, tuple | list) or len(numbers) > _MAX_DIMENSIONS:
            raise UnpicklingError(f"a tensor's sizes and strides must be tuples of at most {_MAX_DIMENSIONS} integers")
    if len(sizes) != len(strides):
        raise UnpicklingError(f"a tensor has {len(sizes)} sizes and {len(strides)} strides")
    for number in (*sizes, *strides, offset):
        if type(number) is not int or not 0 <= number < _SIZE_LIMIT:
            raise UnpicklingError("a tensor's sizes, strides and offset must be non-negative 64-bit integers")


def _check_reach(element_type: dtype, offset: int, sizes: Any, strides: Any) -> int:
    """Return the number of storage elements that the view spans; 0 if it is empty. Rejects spans beyond 64 bits."""
    itemsize = element_type.itemsize
    spans = [(max(size, 1) - 1) * stride for size, stride in zip(sizes, strides, strict=True)]
    largest = max(math.prod(max(size, 1) for size in sizes), offset + sum(spans) + 1, *strides, 1)
    if largest * itemsize >= _SIZE_LIMIT:
        raise UnpicklingError("a tensor's sizes and strides do not fit in 64 bits")
    return 0 if 0 in sizes else offset + sum(spans) + 1


def _check_grad_flag(element_type: dtype, requires_grad: Any) -> None:
    if type(requires_grad) is not bool:
        raise UnpicklingError(f"requires_grad must be a bool, but is a {type(requires_grad).__name__}")
    if requires_grad and not (element_type.is_floating_point or element_type.is_complex):
        raise UnpicklingError(f"a tensor of dtype {element_type} requires grad, and only floating and complex ones can")


def _with_grad_flag(tensor: Tensor, requires_grad: Any) -> Tensor:
    _check_grad_flag(tensor.dtype, requires_grad)
    return tensor.requires_grad_(True) if requires_grad else tensor
