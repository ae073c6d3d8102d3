"""Copying and pickling of tensors: tensors that shared a storage before share one afterwards."""

from __future__ import annotations

import copy
from collections.abc import Mapping

import numpy as np

from rushlight.core.device import META
from rushlight.core.dtype import dtype
from rushlight.core.storage import StorageImpl, UntypedStorage, without_data
from rushlight.core.tensor import Tensor, tensor_from_storage, wrap
from rushlight.core.tensor_impl import TensorImpl, empty_meta_impl
from rushlight.ops.lazy_views import lazy_bits, metadata_of, with_metadata


def _deepcopy(self: Tensor, memo: dict) -> Tensor:
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment. If you "
            "were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage."
        )
    if id(self) in memo:
        return memo[id(self)]
    impl = self._impl
    if lazy_bits(self):
        made = self.detach().clone()
    else:
        storage = _copied_storage(impl.storage, memo)
        made = wrap(TensorImpl(storage, impl.sizes, impl.strides, impl.storage_offset, impl.dtype, impl.device, impl.key_set))
    memo[id(self)] = made
    made.requires_grad_(self.requires_grad)
    if self.grad is not None:
        made.grad = copy.deepcopy(self.grad, memo)
    made.__dict__ = copy.deepcopy(self.__dict__, memo)
    return made


def _copied_storage(storage: StorageImpl, memo: dict) -> StorageImpl:
    found = memo.get(id(storage))
    if found is None:
        if storage.buffer is None:
            found = without_data(storage.nbytes)
        elif type(storage) is not StorageImpl:
            found = storage.copied()
        else:
            found = UntypedStorage.from_buffer(storage.bytes())._impl
        memo[id(storage)] = found
    return found


def _copy(self: Tensor) -> Tensor:
    impl = self._impl
    made = wrap(impl.alias(impl.sizes, impl.strides, impl.storage_offset))
    if type(self) is not Tensor:
        made = made.as_subclass(type(self))
    made.__dict__.update(self.__dict__)
    return made.requires_grad_(self.requires_grad)


def _rebuild(
    data: bytes, kind: dtype, sizes: tuple, strides: tuple, requires_grad: bool, metadata: Mapping[str, bool] | None = None
) -> Tensor:
    made = tensor_from_storage(UntypedStorage.from_buffer(data), kind, sizes, strides)
    return with_metadata(made, metadata or {}).requires_grad_(requires_grad)


def _rebuild_meta(kind: dtype, sizes: tuple, strides: tuple, requires_grad: bool) -> Tensor:
    return wrap(empty_meta_impl(sizes, kind, META, strides)).requires_grad_(requires_grad)


def _reduce(self: Tensor, protocol: int) -> tuple:
    if not self.is_leaf:
        raise RuntimeError("a non-leaf tensor that requires grad cannot be pickled: use detach()")
    if self.is_meta:
        return (_rebuild_meta, (self.dtype, tuple(self.shape), tuple(self.stride()), self.requires_grad))
    if type(self._impl.storage) is not StorageImpl:
        return self._impl.storage.reduced(self)
    dense = self.detach() if self.is_non_overlapping_and_dense() else self.detach().contiguous()
    impl = dense._impl
    flat = np.ndarray((impl.numel,), impl.dtype.numpy, impl.storage.bytes(), impl.storage_offset * impl.dtype.itemsize)
    metadata = metadata_of(dense)
    about = (metadata,) if metadata else ()
    return (_rebuild, (flat.tobytes(), impl.dtype, impl.sizes, impl.strides, self.requires_grad, *about))


def install() -> None:
    """Attach the protocols to Tensor."""
    Tensor.__deepcopy__, Tensor.__copy__, Tensor.__reduce_ex__ = _deepcopy, _copy, _reduce
