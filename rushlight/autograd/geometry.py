"""Tensor methods that change sizes, strides or memory in place: resize_, set_, and the in-place forms of views (`t_`)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rushlight.autograd.inplace import check_inplace
from rushlight.autograd.node import set_history
from rushlight.core.determinism import DETERMINISM
from rushlight.core.dispatch_key import BATCHED_BIT
from rushlight.core.dtype import QUANTIZED
from rushlight.core.layout import memory_format, preserve_format, strided
from rushlight.core.storage import StorageImpl, UntypedStorage, grow
from rushlight.core.strides import contiguous_strides, storage_extent
from rushlight.core.tensor import Tensor, check_geometry
from rushlight.core.tensor_impl import TensorImpl
from rushlight.core.thread_state import state
from rushlight.core.typed_storage import TypedStorage
from rushlight.ops.batching.layout import BatchParts, is_batched
from rushlight.ops.meta.creation import check_sizes, format_strides
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


def resize_(self: Tensor, *sizes: object, memory_format: memory_format | None = None) -> Tensor:
    """Change the sizes in place, to row-major strides or those of `memory_format`. Elements beyond the old are uninitialised.

    A storage that is too small grows, for every tensor that shares it. RuntimeError for tensors that require grad.
    """
    if self.requires_grad and not state.inference:
        raise RuntimeError("cannot resize variables that require grad")
    _refuse_outside_inference(self._impl)
    _refuse_in_recordings("resize_")
    wanted = check_sizes(sizes[0] if len(sizes) == 1 and isinstance(sizes[0], list | tuple) else sizes)
    if self._impl.dtype.category == QUANTIZED:
        DETERMINISM.alert("quantized_resize_cpu_")
    if wanted != self._impl.sizes or memory_format is not None:
        before = self._impl.storage.nbytes
        strides = format_strides(wanted, None, memory_format)
        _set_geometry(self._impl, self._impl.storage, wanted, strides, self._impl.storage_offset)
        if DETERMINISM.asked and self._impl.storage.nbytes > before:
            _fill_grown_part(self._impl, before)
    return self


def _refuse_outside_inference(impl: TensorImpl) -> None:
    if impl.inference and not state.inference:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a normal "
            "tensor before doing inplace update."
        )


def _refuse_in_recordings(name: str) -> None:
    if any(mode.is_recording for mode in state.modes):
        raise RuntimeError(
            f"{name} changes which memory a tensor shows, and a graph of operators cannot say that; use a view or a new tensor"
        )


def _fill_grown_part(impl: TensorImpl, begin: int) -> None:
    """Under deterministic algorithms, fill the new part of a grown storage."""
    count = (impl.storage.nbytes - begin) // impl.dtype.itemsize
    if DETERMINISM.fills and impl.storage.buffer is not None:
        behind = UntypedStorage(impl.storage)[begin:]
        whole = aten.empty.memory_format([count], dtype=impl.dtype)  # `empty` fills itself under deterministic algorithms
        behind.copy_(whole.untyped_storage())


def resize_as_(self: Tensor, the_template: Tensor, *, memory_format: memory_format | None = None) -> Tensor:
    """Change the sizes in place to those of another tensor, and with preserve_format to its strides; see `resize_`."""
    if memory_format is not preserve_format:
        return resize_(self, the_template.shape, memory_format=memory_format)
    resize_(self, the_template.shape)
    strides = format_strides(the_template._impl.sizes, the_template._impl.strides, preserve_format)
    _set_geometry(self._impl, self._impl.storage, self._impl.sizes, strides, self._impl.storage_offset)
    return self


def set_(
    self: Tensor, source: object = None, storage_offset: int = 0, size: tuple | None = None, stride: tuple = ()
) -> Tensor:
    """Make this tensor view another tensor's elements, or a storage with the given geometry (in elements), in place.

    Without a source it becomes empty. A storage that is too small grows. RuntimeError for a tensor of another dtype, and for
    tensors that require grad.
    """
    impl = self._impl
    _refuse_outside_inference(impl)
    _refuse_in_recordings("set_")
    if state.grad_enabled and (self.requires_grad or (isinstance(source, Tensor) and source.requires_grad)):
        check_inplace(self)
        raise RuntimeError("set_: the derivative is not implemented; use it on detached tensors")
    if isinstance(source, Tensor):
        _check_same_dtype(self, source)
        other = source._impl
        if size is None:
            _set_geometry(impl, other.storage, other.sizes, other.strides, other.storage_offset)
            return self
        storage = other.storage
    else:
        if isinstance(source, TypedStorage) and source.dtype is not impl.dtype:
            raise RuntimeError(
                f"Expected a Storage of type {impl.dtype.scalar_name} or an UntypedStorage, but got type "
                f"{source.dtype.scalar_name} for argument 1 'storage'"
            )
        storage = (source.untyped() if isinstance(source, TypedStorage) else source or UntypedStorage(0))._impl
    sizes = (storage.nbytes // impl.dtype.itemsize,) if size is None else check_sizes(size)
    strides = tuple(stride) if stride else contiguous_strides(sizes)
    extent = storage_extent(sizes, strides, storage_offset) * impl.dtype.itemsize
    if not (math.prod(sizes) and extent > storage.nbytes and 0 <= storage_offset and all(step >= 0 for step in strides)):
        check_geometry(storage, impl.dtype, sizes, strides, storage_offset)
    _set_geometry(impl, storage, sizes, strides, storage_offset)
    return self


def _check_same_dtype(self: Tensor, source: Tensor) -> None:
    if source.dtype is not self.dtype:
        raise RuntimeError(f"Could not set tensor of type {source.dtype.name} to a tensor of type {self.dtype.name}")


def _set_geometry(impl: TensorImpl, storage: StorageImpl, sizes: tuple, strides: tuple, offset: int) -> None:
    """Point `impl` at part of a storage, which grows where it is too small; counts as a write."""
    if (impl.key_set & BATCHED_BIT) or isinstance(storage.buffer, BatchParts):
        raise RuntimeError("vmap: a tensor that is mapped over has no storage to resize or to set: make a new tensor")
    needed = storage_extent(sizes, strides, offset) * impl.dtype.itemsize
    if math.prod(sizes) and needed > storage.nbytes:
        _grow(storage, needed)
    impl.replace_geometry(storage, sizes, strides, offset)
    impl.version.value += 1
    if impl.autograd is not None:
        impl.autograd.accumulator = None  # the old one makes gradients of the old sizes


def _grow(storage: StorageImpl, nbytes: int) -> None:
    """Move a storage to a larger block of memory, for every tensor that shares it."""
    if storage.buffer is not None:
        if isinstance(storage.buffer, np.ndarray):
            raise RuntimeError(
                f"Trying to resize storage that is not resizable: its {storage.nbytes} bytes belong to a NumPy array or "
                "another library. Copy the tensor with .clone() first."
            )
        grow(storage, nbytes)
    storage.nbytes = nbytes


def _define_view_in_place(name: str) -> Callable:
    def view_in_place(self: Tensor, *args: object, **kwargs: object) -> Tensor:
        impl = self._impl
        if is_batched(self):
            self._impl = getattr(aten, name[:-1])(self, *args, **kwargs)._impl
            return self
        if impl.fake or state.modes:
            raise NotImplementedError(f"{name} is not supported while a program is captured; use {name[:-1]} instead")
        _refuse_outside_inference(impl)
        recorded = state.grad_enabled and impl.requires_grad
        if recorded:
            check_inplace(self)
        made = getattr(aten, name[:-1])(self, *args, **kwargs)
        node, output_nr = made.grad_fn, made.output_nr
        if made.layout is not self.layout:
            raise RuntimeError(f"{name}: in-place transposition is not supported for the layout {self.layout}")
        # A strided tensor keeps its storage. A sparse one takes the result's new index tensors, which replace a storage.
        storage = impl.storage if self.layout is strided else made._impl.storage
        impl.replace_geometry(storage, made._impl.sizes, made._impl.strides, made._impl.storage_offset)
        impl.version.value += 1
        if recorded:
            set_history(impl, node, output_nr)
            if impl.view is not None:
                impl.view.version = impl.version.value
        return self

    view_in_place.__name__ = view_in_place.__qualname__ = name
    view_in_place.__doc__ = f"`{name[:-1]}` of this tensor, in place: the memory stays, sizes and strides change."
    return view_in_place


_VIEWS = "as_strided_ squeeze_ swapaxes_ swapdims_ t_ transpose_ unsqueeze_".split()
METHODS = {
    "resize_": resize_,
    "resize_as_": resize_as_,
    "set_": set_,
    **{name: _define_view_in_place(name) for name in _VIEWS},
}


def install() -> None:
    """Attach the methods to Tensor."""
    for name, method in METHODS.items():
        setattr(Tensor, name, method)


install()
