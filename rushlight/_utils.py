"""`torch._utils`: helpers that packages for torch import: rebuilding tensors of pickles, flattening lists of tensors."""

from __future__ import annotations

import sys
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any

from rushlight.core.device import as_device, device
from rushlight.core.dtype import dtype
from rushlight.core.layout import layout
from rushlight.core.storage import UntypedStorage
from rushlight.core.tensor import Tensor, tensor_from_storage
from rushlight.core.typed_storage import TypedStorage
from rushlight.nn.parameter import Parameter
from rushlight.ops.copying import rebuild_subclass, with_state
from rushlight.ops.lazy_views import with_metadata
from rushlight.ops.packet import namespaces
from rushlight.serialization.quantized import rebuild_quantized
from rushlight.serialization.rebuild import make_meta_tensor, make_tensor, make_wrapper
from rushlight.serialization.sparse import rebuild_sparse

aten = namespaces.namespace("aten")


# Functions that torch's pickles name


def _rebuild_tensor(storage: TypedStorage, storage_offset: int, size: Sequence[int], stride: Sequence[int]) -> Tensor:
    """Return a tensor over part of a storage; RuntimeError where it leaves the storage."""
    return _over_storage(storage, storage.dtype, storage_offset, size, stride)


def _over_storage(
    storage: TypedStorage | UntypedStorage, element_type: dtype, offset: int, size: Sequence[int], stride: Sequence[int]
) -> Tensor:
    if storage.device.type == "meta":
        return make_tensor(storage.untyped(), element_type, offset, size, stride)
    return tensor_from_storage(storage.untyped(), element_type, tuple(size), tuple(stride), offset)


def _rebuild_tensor_v2(
    storage: TypedStorage, storage_offset: int, size: Sequence[int], stride: Sequence[int], requires_grad: bool,
    backward_hooks: Any, metadata: Any = None,
) -> Tensor:  # fmt: skip
    """Return a tensor over part of a storage, which may require a gradient."""
    made = _rebuild_tensor(storage, storage_offset, size, stride)
    return with_metadata(made, metadata or {}).requires_grad_(requires_grad)


def _rebuild_tensor_v3(
    storage: TypedStorage | UntypedStorage, storage_offset: int, size: Sequence[int], stride: Sequence[int],
    requires_grad: bool, backward_hooks: Any, dtype: dtype, metadata: Any = None,
) -> Tensor:  # fmt: skip
    """Return a tensor over part of a storage, of a dtype that has no storage class."""
    made = _over_storage(storage, dtype, storage_offset, size, stride)
    return with_metadata(made, metadata or {}).requires_grad_(requires_grad)


def _rebuild_qtensor(
    storage: TypedStorage, storage_offset: int, size: Sequence[int], stride: Sequence[int], quantizer_params: tuple,
    requires_grad: bool, backward_hooks: Any,
) -> Tensor:  # fmt: skip
    """Return a quantized tensor of its parts; UnpicklingError where they do not fit one another."""
    return rebuild_quantized(storage, storage_offset, size, stride, quantizer_params).requires_grad_(requires_grad)


def _rebuild_sparse_tensor(layout: layout, data: tuple) -> Tensor:
    """Return a sparse tensor of its parts; UnpicklingError where they do not fit one another."""
    return rebuild_sparse(layout, data)


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Parameter:
    """Return a parameter over a tensor's data."""
    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data: Tensor, requires_grad: bool, backward_hooks: Any, state: Any) -> Parameter:
    """Return a parameter over a tensor's data, with attributes that a user added."""
    return _set_obj_state(Parameter(data, requires_grad), state)


def _rebuild_meta_tensor_no_storage(dtype: dtype, size: tuple, stride: tuple, requires_grad: bool) -> Tensor:
    """Return a tensor without data."""
    return make_meta_tensor(dtype, size, stride, requires_grad)


def _rebuild_from_type_v2(function: Callable, kind: type, args: tuple, state: Any) -> Any:
    """Return a tensor of a subclass, with attributes that a user added."""
    return rebuild_subclass(function, kind, args, state)


def _rebuild_wrapper_subclass(
    cls: type, dtype: dtype, size: tuple, stride: tuple, storage_offset: int, layout: layout, device: device,
    requires_grad: bool,
) -> Any:  # fmt: skip
    """Return a tensor of a class that keeps its values in other tensors, which are among its attributes."""
    return make_wrapper(cls, dtype, size, stride, storage_offset, layout, device, requires_grad)


def _set_obj_state(obj: Any, state: Any) -> Any:
    """Set the attributes of a dict, or of a pair of a dict and one for slots."""
    return with_state(obj, state)


def _get_obj_state(obj: Any) -> Any:
    """Return the attributes of an object."""
    return obj.__getstate__() if hasattr(obj, "__getstate__") else obj.__dict__


# Lists of tensors


def _flatten_dense_tensors(tensors: Iterable[Tensor]) -> Tensor:
    """Return all elements one after the other, in one 1-D tensor."""
    return aten.cat.default([tensor.contiguous().view(-1) for tensor in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """Return views of a flat tensor with the shapes of `tensors`."""
    made, offset = [], 0
    for tensor in tensors:
        made.append(flat.narrow(0, offset, tensor.numel()).view(tensor.shape))
        offset += tensor.numel()
    return tuple(made)


def _take_tensors(tensors: Iterable[Tensor], size_limit: int) -> Iterator[list[Tensor]]:
    """Groups of tensors of one type, each of about `size_limit` bytes."""
    groups: dict[str, list[Tensor]] = defaultdict(list)
    sizes: dict[str, int] = defaultdict(int)
    for tensor in tensors:
        kind = tensor.type()
        if groups[kind] and sizes[kind] + tensor.nbytes > size_limit:
            yield groups.pop(kind)
            sizes[kind] = 0
        groups[kind].append(tensor)
        sizes[kind] += tensor.nbytes
    yield from (group for group in groups.values() if group)


def _reorder_tensors_as(tensors: Iterable[Tensor], ordered_tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """`tensors`, which are grouped by type, in the order of `ordered_tensors`."""
    groups: dict[str, list[Tensor]] = defaultdict(list)
    for tensor in tensors:
        groups[tensor.type()].append(tensor)
    by_type = {kind: iter(group) for kind, group in groups.items()}
    return tuple(next(by_type[tensor.type()]) for tensor in ordered_tensors)


# Devices and dtypes


def _get_available_device_type() -> str | None:
    """Return the kind of accelerator that is there: none."""
    return None


def _get_current_device_index() -> int:
    """Return the index of the current accelerator: -1, as there is none."""
    return -1


def _get_all_device_indices() -> list[int] | None:
    """Return the indices of all accelerators: there are none."""
    return None


def _get_device_index(where: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """Return the index of a device; -1 for the CPU where it is allowed. ValueError for other devices without an index."""
    if isinstance(where, int) and not isinstance(where, bool):
        return where
    found = as_device(where) if isinstance(where, str | device) else None
    if found is not None and found.type == "cpu" and not allow_cpu:
        raise ValueError(f"Expected a non cpu device, but got: {where}")
    if found is not None and found.type == "cpu":
        return -1 if found.index is None else found.index
    if found is not None and found.index is not None:
        return found.index
    if optional:
        return _get_current_device_index()
    raise ValueError(f"Expected a torch.device with a specified index or an integer, but got: {where}")


def _element_size(dtype: dtype) -> int:
    """Return the bytes of an element."""
    return dtype.itemsize


def is_compiling() -> bool:
    """False; in a compiled function, True."""
    return import_module("rushlight.compiler").is_compiling()


# Others


class KeyErrorMessage(str):
    """The text of a KeyError that prints as it is."""

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """An exception with its traceback as text, which may pass from one thread or process to another."""

    def __init__(self, exc_info: tuple | None = None, where: str = "in background"):
        self.exc_type, value, trace = sys.exc_info() if exc_info is None else exc_info
        self.exc_msg = "".join(traceback.format_exception(self.exc_type, value, trace)) if self.exc_type else ""
        self.where = where

    def reraise(self) -> None:
        """Raise an exception of the same type, with the traceback in its message."""
        message = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            message = KeyErrorMessage(message)
        try:
            error = self.exc_type(message)
        except Exception:
            raise RuntimeError(message) from None
        raise error


class classproperty:  # noqa: N801 (the name that packages import)
    """A property of a class."""

    def __init__(self, func: Callable):
        self.func = func

    def __get__(self, instance: Any, owner: type) -> Any:
        return self.func(owner)


def _import_dotted_name(name: str) -> Any:
    """Import the module of a dotted name, and return the attribute that the rest of the name stands for."""
    first, *rest = name.split(".")
    found: Any = import_module(first)
    for part in rest:
        found = getattr(found, part)
    return found
