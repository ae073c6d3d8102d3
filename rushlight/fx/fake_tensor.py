"""Fake tensors: tensors with sizes, strides, dtype and device but no data.

`FakeTensorMode` redirects every operator call to its Meta kernel, so that a program can be traced without computing. A fake
tensor is an ordinary handle whose TensorImpl reports device CPU and dispatches to Meta.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rushlight.core.device import CPU, META, device, present_device
from rushlight.core.dispatch_key import AUTOGRAD_BITS, META_KEYS, DispatchKey
from rushlight.core.dtype import bool_, uint8
from rushlight.core.storage import StorageImpl, without_data
from rushlight.core.tensor import Tensor, wrap
from rushlight.core.tensor_impl import UNKNOWN_NBYTES, DataDependentError, TensorImpl
from rushlight.core.thread_state import ExcludeKeys, state
from rushlight.ops.devices import common_device, tensors_in
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.modes import DispatchMode

__all__ = ["DataDependentError", "FakeTensorMode", "is_fake", "needs_values"]

_HOST = {CPU, META}


class FakeTensorMode(DispatchMode):
    """Under this mode operators compute shapes only. Real tensor arguments become fakes; if they share memory, so do the
    fakes."""

    def __init__(self):
        self._fakes: dict[TensorImpl, Tensor] = {}
        self._storages: dict[StorageImpl, StorageImpl] = {}
        self.random_calls = 0  # number of calls of operators that draw random numbers
        self.of_values: Callable | None = None  # a function that computes fake results of operators that depend on values
        self.new_size: Callable | None = None  # a function that makes a symbolic size that depends on values, given its limits

    def from_tensor(self, tensor: Tensor, geometry: tuple[tuple, tuple] | None = None) -> Tensor:
        """Return the fake of a real tensor, the same at each call; a fake tensor is returned unchanged.

        `geometry` are symbolic sizes and strides to give the fake in place of the tensor's own.
        """
        impl = tensor._impl
        if impl.fake:
            return tensor
        found = self._fakes.get(impl)
        if found is None:
            found = self._fakes[impl] = self._make(impl, geometry)
        return found

    def _make(self, impl: TensorImpl, geometry: tuple[tuple, tuple] | None) -> Tensor:
        storage = self._storages.get(impl.storage)
        if storage is None:
            nbytes = impl.storage.nbytes if geometry is None else UNKNOWN_NBYTES
            storage = self._storages[impl.storage] = without_data(nbytes)
        sizes, strides = geometry or (impl.sizes, impl.strides)
        fake = TensorImpl(storage, sizes, strides, impl.storage_offset, impl.dtype, impl.device, META_KEYS)
        fake.fake = True
        return wrap(fake)

    def __torch_dispatch__(self, op: OpOverload, types: tuple, args: tuple, kwargs: dict):
        self.random_calls += "nondeterministic_seeded" in op.tags
        args = [
            value if type(value) is Tensor and value._impl.fake else _map_tensors(self.from_tensor, value) for value in args
        ]
        kwargs = {name: _map_tensors(self.from_tensor, value) for name, value in kwargs.items()}
        if self.of_values is not None and needs_values(op, args):
            with self:
                return self.of_values(op, args, kwargs)
        if needs_values(op, args) and op._opname not in _META_KERNEL_EXPLAINS:
            raise DataDependentError(
                f"{op} needs the values of a tensor, which are not known while a program is captured. "
                "Keep the value in a tensor, or leave this part out of the compiled function."
            )
        foreign = op.kernels.get(DispatchKey.Meta) if op.namespace != "aten" else None
        if foreign is not None:
            return self._by_rule(foreign.bind(op, META_KEYS), args, kwargs)
        place = device_of_result(op, args, kwargs)
        if op._names_device:
            kwargs["device"] = META
        with ExcludeKeys(AUTOGRAD_BITS):
            return _map_tensors(lambda tensor: _claim(tensor, place), op(*args, **kwargs))

    def _by_rule(self, rule: Callable, args: list, kwargs: dict):
        """Run a custom operator's Meta kernel, which may call any operators."""
        outer, state.fakes = state.fakes, self
        try:
            with ExcludeKeys(AUTOGRAD_BITS), self:
                return _map_tensors(self._as_fake, rule(*args, **kwargs))
        finally:
            state.fakes = outer

    def _as_fake(self, tensor: Tensor) -> Tensor:
        return _claim(tensor, CPU) if tensor._impl.device == META else self.from_tensor(tensor)


def device_of_result(op: OpOverload, args: Sequence, kwargs: dict) -> device:
    """Return the device on which an operator makes its results: the one that it names, else that of its tensors. RuntimeError
    where these are on several."""
    wanted = kwargs.get("device") if op._names_device else None
    if wanted is not None:
        found = present_device(wanted)
        return CPU if found == META else found
    places = {tensor._impl.device for tensor in tensors_in((*args, *kwargs.values()))}
    return CPU if places <= _HOST else common_device(op, (*args, *kwargs.values()))


def needs_values(op: OpOverload, args: Sequence) -> bool:
    """Return whether an operator's result, or its size, depends on the values of its arguments."""
    if op._opname == "index":
        return any(isinstance(index, Tensor) and index.dtype in (bool_, uint8) for index in args[1])
    return op._opname in _NEEDS_VALUES


# The Meta kernels of these operators raise errors that explain why values are needed.
_META_KERNEL_EXPLAINS = frozenset({"_unique2", "unique_dim", "unique_consecutive", "nms"})
_NEEDS_VALUES = _META_KERNEL_EXPLAINS | {"_local_scalar_dense", "equal", "nonzero"}


def _map_tensors(function, value):
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, (tuple, list)):
        return type(value)([_map_tensors(function, item) for item in value])
    return value


def _claim(tensor: Tensor, place: device) -> Tensor:
    impl = tensor._impl
    impl.device = place
    impl.fake = True
    return tensor


def is_fake(value: object) -> bool:
    """Return whether `value` is a fake tensor."""
    return isinstance(value, Tensor) and value._impl.fake
