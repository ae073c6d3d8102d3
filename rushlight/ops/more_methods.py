"""Less common methods of Tensor: conversion to a subclass, Python functions applied elementwise, and questions about memory
that have a fixed answer on the CPU.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from rushlight.core.device import as_device, gpus, present_device, raise_absent
from rushlight.core.device import device as torch_device
from rushlight.core.layout import memory_format, preserve_format
from rushlight.core.tensor import Tensor, wrap
from rushlight.core.tensor_impl import in_current_mode
from rushlight.core.wrapper_subclasses import of_class
from rushlight.ops.construct import tensor
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


def as_subclass(self: Tensor, cls: type) -> Any:
    """Return an alias of this tensor as an instance of `cls`, through which gradients flow; TypeError if `cls` is no tensor
    class."""
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. "
            f"Make sure your class inherits from Tensor: got {cls!r}."
        )
    return of_class(cls, aten.alias.default(self)._impl)


def apply_(self: Tensor, callable: Callable) -> Tensor:
    """Replace each element by `callable(element)`; slow. RuntimeError if this tensor requires grad."""
    return _fill_from_list(self, "apply_", map(callable, self.detach().flatten().tolist()))


def map_(self: Tensor, tensor: Tensor, callable: Callable) -> Tensor:
    """Replace each element by `callable(own, other)`, `tensor` broadcast; slow. RuntimeError if this tensor requires grad."""
    other = tensor.detach().expand(self.shape)
    return _fill_from_list(self, "map_", map(callable, self.detach().flatten().tolist(), other.flatten().tolist()))


def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable) -> Tensor:
    """Replace each element by `callable(own, of x, of y)`, both broadcast; slow. RuntimeError where one requires grad."""
    if x.requires_grad or y.requires_grad:
        raise RuntimeError("Can't call map2_() on Variable that requires grad. Use var.detach().map2_() instead.")
    others = [other.expand(self.shape).flatten().tolist() for other in (x, y)]
    return _fill_from_list(self, "map2_", map(callable, self.detach().flatten().tolist(), *others))


def _fill_from_list(self: Tensor, name: str, values: Any) -> Tensor:
    if self.requires_grad:
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
    return self.copy_(tensor(list(values), dtype=self.dtype).view(self.shape))


def is_nonzero(self: Tensor) -> bool:
    """Return whether the only element is nonzero; RuntimeError if there is not exactly one."""
    return bool(self)


def is_same_size(self: Tensor, other: Tensor) -> bool:
    """Return whether both have the same shape."""
    return self.shape == other.shape


def dim_order(self: Tensor, *, ambiguity_check: bool | list = False) -> tuple[int, ...]:
    """Return the dimensions from the one with the largest stride to the one with the smallest.

    With `ambiguity_check`, RuntimeError where the order is ambiguous: dimensions of size 1 or with equal strides. With a list
    of memory formats, an ambiguous order is allowed if the tensor is in exactly one of them. TypeError for other values.
    """
    formats = [] if isinstance(ambiguity_check, bool) else ambiguity_check
    if not isinstance(formats, list) or not all(isinstance(each, memory_format) for each in formats):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    if ambiguity_check and _has_several_orders(self):
        if sum(self.is_contiguous(memory_format=each) for each in formats) != 1:
            raise RuntimeError("The tensor does not have unique dim order.")
    return tuple(sorted(range(self.dim()), key=lambda dim: -self.stride(dim)))


def _has_several_orders(self: Tensor) -> bool:
    strides = sorted(zip(self.stride(), self.shape, strict=True), reverse=True)
    return any(size == 1 for size in self.shape) or any(one[0] == other[0] for one, other in itertools.pairwise(strides))


def is_pinned(self: Tensor) -> bool:
    """Return whether the memory is page-locked for a GPU."""
    return gpus.is_pinned is not None and gpus.is_pinned(self._impl.storage)


def pin_memory(self: Tensor) -> Tensor:
    """Return this CPU tensor, or a copy, in memory that is page-locked for a GPU; RuntimeError if there is none."""
    if not gpus.count():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    if self._impl.device.type != "cpu":
        raise RuntimeError(f"cannot pin '{self.type()}' only dense CPU tensors can be pinned")
    if is_pinned(self):
        return self
    return wrap(in_current_mode(gpus.pinned_like(self._impl))).copy_(self.detach())


def cuda(
    self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: memory_format = preserve_format
) -> Tensor:
    """Return this tensor on a GPU, by default the current one; AssertionError if there is no GPU."""
    where = torch_device("cuda") if device is None else as_device(device)
    if where.type != "cuda":
        raise ValueError(f"cuda(): expected a device of type cuda, got {where}")
    return aten.to.dtype_layout(self, device=present_device(where), non_blocking=non_blocking, memory_format=memory_format)


def record_stream(self: Tensor, stream: Any) -> None:
    """Keep this tensor's memory from being used again before the present work of a stream is done; RuntimeError on the CPU."""
    if self._impl.device.type != "cuda":
        raise RuntimeError(f"record_stream: expected a tensor on a GPU, got one on {self._impl.device}")
    memory = self._impl.storage.buffer
    if hasattr(memory, "record_stream"):
        memory.record_stream(stream.cuda_stream)


def xpu(
    self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: memory_format = preserve_format
) -> Tensor:
    """Raise AssertionError: there is no such GPU."""
    raise_absent("xpu")


def mtia(
    self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: memory_format = preserve_format
) -> Tensor:
    """Raise AssertionError: there is no such accelerator."""
    raise_absent("mtia")


def ipu(
    self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: memory_format = preserve_format
) -> Tensor:
    """Raise RuntimeError: there is no such accelerator."""
    raise_absent("ipu")


def install() -> None:
    """Attach the methods to Tensor."""
    methods = (as_subclass, apply_, map_, map2_, is_nonzero, is_same_size, dim_order, is_pinned, pin_memory)
    for method in (*methods, cuda, record_stream, xpu, mtia, ipu):
        setattr(Tensor, method.__name__, method)
    for absent in ("is_mps", "is_xpu", "is_xla", "is_ipu", "is_mtia", "is_maia", "is_vulkan", "is_mkldnn"):
        setattr(Tensor, absent, False)
