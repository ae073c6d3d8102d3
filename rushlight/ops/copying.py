"""Copying and pickling of tensors: tensors that share a storage still share one afterwards."""

from __future__ import annotations

import copy
import copyreg
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rushlight.core.device import META, device
from rushlight.core.dtype import dtype
from rushlight.core.storage import StorageImpl, UntypedStorage, without_data
from rushlight.core.tensor import Tensor, tensor_from_storage, wrap
from rushlight.core.tensor_impl import TensorImpl, empty_meta_impl
from rushlight.core.thread_state import state
from rushlight.core.wrapper_subclasses import dispatches, make_wrapper_subclass, of_class, sees_operators
from rushlight.ops.lazy_views import lazy_bits, metadata_of, with_metadata


def _deepcopy(self: Tensor, memo: dict) -> Tensor:
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment. If you "
            "were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage."
        )
    if id(self) in memo:
        return memo[id(self)]
    made = _clone_subclass(self) if _clones_itself(type(self)) else _deepcopy_tensor(self, memo)
    memo[id(self)] = made
    made.requires_grad_(self.requires_grad)
    if self.grad is not None:
        made.grad = copy.deepcopy(self.grad, memo)
    for name in copyreg._slotnames(type(self)):
        if hasattr(self, name):
            setattr(made, name, copy.deepcopy(getattr(self, name), memo))
    made.__dict__ = copy.deepcopy(self.__dict__, memo)
    return made


def _clones_itself(kind: type) -> bool:
    """Return whether the class defines its own copying, because its values may be in other tensors."""
    return dispatches(kind) or kind.clone is not Tensor.clone


def _clone_subclass(self: Tensor) -> Tensor:
    before, state.grad_enabled = state.grad_enabled, False
    try:
        made = self.clone()
    finally:
        state.grad_enabled = before
    if type(made) is not type(self):
        raise RuntimeError(
            "The default implementation of __deepcopy__() for wrapper subclasses only works for subclass types that implement "
            f"clone() and for which cloning returns an instance of the same class: got {type(made).__name__} from "
            f"{type(self).__name__}. Implement clone(), or __deepcopy__()"
        )
    return made


def _deepcopy_tensor(self: Tensor, memo: dict) -> Tensor:
    impl = self._impl
    if lazy_bits(self):
        return of_class(type(self), self.detach().clone()._impl)
    storage = _copied_storage(impl.storage, memo)
    copied = TensorImpl(storage, impl.sizes, impl.strides, impl.storage_offset, impl.dtype, impl.device, impl.key_set)
    return of_class(type(self), copied)


def _copied_storage(storage: StorageImpl, memo: dict) -> StorageImpl:
    found = memo.get(id(storage))
    if found is None:
        if storage.buffer is None:
            found = without_data(storage.nbytes)
        elif type(storage) is not StorageImpl:
            found = storage.copied()
        else:
            found = UntypedStorage(storage).clone()._impl
        memo[id(storage)] = found
    return found


def _copy(self: Tensor) -> Tensor:
    impl = self._impl
    made = of_class(type(self), impl.alias(impl.sizes, impl.strides, impl.storage_offset))
    saved = self.__getstate__()
    return (with_state(made, saved) if saved else made).requires_grad_(self.requires_grad)


def _rebuild(
    data: bytes, kind: dtype, sizes: tuple, strides: tuple, requires_grad: bool, metadata: Mapping[str, bool] | None = None
) -> Tensor:
    made = tensor_from_storage(UntypedStorage.from_buffer(data), kind, sizes, strides)
    return with_metadata(made, metadata or {}).requires_grad_(requires_grad)


def _rebuild_on(where: device, function: Callable, args: tuple) -> Tensor:
    made = function(*args)
    return made.detach().to(where).requires_grad_(made.requires_grad)


def _rebuild_meta(kind: dtype, sizes: tuple, strides: tuple, requires_grad: bool) -> Tensor:
    return wrap(empty_meta_impl(sizes, kind, META, strides)).requires_grad_(requires_grad)


def _rebuild_wrapper(kind: type, size: tuple, strides: tuple, offset: int, options: dict) -> Tensor:
    return make_wrapper_subclass(kind, size, strides, offset, **options)


def rebuild_subclass(function: Callable, kind: type, args: tuple, saved: Any) -> Tensor:
    """Rebuild a tensor with `function(*args)`, as an instance of class `kind` with the saved state."""
    made = function(*args)
    return with_state(made if type(made) is kind else made.as_subclass(kind), saved)


def with_state(made: Any, saved: Any) -> Any:
    """Restore a state as pickle does: by `__setstate__`, or from a dict of attributes, or a pair of that and slots."""
    if hasattr(made, "__setstate__"):
        made.__setstate__(saved)
        return made
    own, slots = saved if isinstance(saved, tuple) else (saved, None)
    for name, value in {**(own or {}), **(slots or {})}.items():
        setattr(made, name, value)
    return made


def is_wrapper(tensor: Tensor) -> bool:
    """Return whether a tensor has `__torch_dispatch__` and no memory of its own."""
    return sees_operators(tensor) and tensor._impl.storage.buffer is None


def _reduce(self: Tensor, protocol: int) -> tuple:
    function, args = _rebuild_recipe(self)
    saved = self.__getstate__()
    return (rebuild_subclass, (function, type(self), args, saved)) if saved or type(self) is not Tensor else (function, args)


def _rebuild_recipe(self: Tensor) -> tuple:
    """Return the function and arguments that rebuild a tensor of these values, without its class and attributes."""
    if is_wrapper(self):
        options = {name: getattr(self, name) for name in ("dtype", "layout", "device", "requires_grad")}
        return _rebuild_wrapper, (type(self), tuple(self.shape), self.stride(), self.storage_offset(), options)
    if not self.is_leaf:
        raise RuntimeError("a non-leaf tensor that requires grad cannot be pickled: use detach()")
    if self.is_meta:
        return (_rebuild_meta, (self.dtype, tuple(self.shape), tuple(self.stride()), self.requires_grad))
    if type(self._impl.storage) is not StorageImpl:
        return self._impl.storage.reduced(self)
    if self.is_cuda:
        return _rebuild_on, (self.device, *_rebuild_recipe(self.detach().cpu().requires_grad_(self.requires_grad)))
    dense = self.detach() if self.is_non_overlapping_and_dense() else self.detach().contiguous()
    impl = dense._impl
    flat = np.ndarray((impl.numel,), impl.dtype.numpy, impl.storage.bytes(), impl.storage_offset * impl.dtype.itemsize)
    metadata = metadata_of(dense)
    about = (metadata,) if metadata else ()
    return (_rebuild, (flat.tobytes(), impl.dtype, impl.sizes, impl.strides, self.requires_grad, *about))


def install() -> None:
    """Attach the protocols to Tensor."""
    Tensor.__deepcopy__, Tensor.__copy__, Tensor.__reduce_ex__ = _deepcopy, _copy, _reduce
