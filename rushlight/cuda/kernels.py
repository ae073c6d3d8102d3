"""Kernels of the dispatch key CUDA: how an operator runs on a device.

An operator with a lowering runs as a graph of one node, which the provider of `GRAPHS` compiles once and keeps. One without
runs on the CPU: its arguments are copied there and its results back. A warning says so once per operator. Operators that make
memory or move it between devices have kernels of their own here.
"""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Callable, Sequence

from rushlight._C import PlannedCalls
from rushlight.core.device import CPU, as_device, device, present_device
from rushlight.core.dispatch_key import AUTOGRAD_BITS, DispatchKey, bit
from rushlight.core.dtype import bool_, get_default_dtype, uint8
from rushlight.core.generator import Generator
from rushlight.core.providers import import_provider
from rushlight.core.storage import StorageImpl
from rushlight.core.strides import broadcast_shapes
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import ExcludeKeys
from rushlight.cuda import runtime, tensors
from rushlight.cuda.generators import generator_of, seed_tensor
from rushlight.ops.devices import INDEXING, common_device, tensors_in
from rushlight.ops.dispatcher import Kernel, OpOverload, register_fallback
from rushlight.ops.meta.checks import check_operands, check_writable
from rushlight.ops.meta.creation import check_sizes, format_strides, full_dtype
from rushlight.ops.promotion import check_number
from rushlight.ops.registry import aten

GRAPHS = "graphs of single operators"
_NO_DATA = "Cannot copy out of meta tensor; no data!"
_CPU_BIT = bit(DispatchKey.CPU)

Run = Callable[[OpOverload, tuple, dict, int, PlannedCalls | None], object]


class Graphs:
    """What runs an operator as a graph of one node: the provider sets `run`, which returns NotImplemented for operators that
    have no kernel on a device, and `copy`, which copies a tensor to another one of its sizes, dtype and device."""

    def __init__(self) -> None:
        self.run: Run | None = None
        self.copy: Callable[[Tensor, Tensor], None] | None = None

    def call(self, op: OpOverload, args: tuple, kwargs: dict, index: int, calls: PlannedCalls | None = None) -> object:
        """Run an operator on a device, or return NotImplemented. `calls` get a launch plan for later calls like this one."""
        self._load()
        return NotImplemented if self.run is None else self.run(op, args, kwargs, index, calls)

    def copy_strided(self, target: Tensor, source: Tensor) -> None:
        """Copy a tensor to another one of its sizes, dtype and device."""
        self._load()
        self.copy(target, source)

    def _load(self) -> None:
        if self.run is None:
            import_provider(GRAPHS)


graphs = Graphs()


def _map(function: Callable, value: object) -> object:
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, list | tuple):
        return type(value)([_map(function, item) for item in value])
    return value


def device_kernel(op: OpOverload, below: int) -> Callable:
    """Return the function that runs an operator where one of its arguments is on a device.

    Calls like an earlier one repeat its launches by a plan. A call has no plan if its arguments were changed before its graph
    ran: CPU tensors, masks as indices, targets that are not dense.
    """
    position = op._schema.positions.get("device") if op._names_device else None

    def run(*args: object, **kwargs: object) -> object:
        wanted = kwargs.get("device") if position is None or position >= len(args) else args[position]
        where = common_device(op, (*args, *kwargs.values())) if wanted is None else present_device(wanted)
        if where.type != "cuda":
            return through_host(op, args, kwargs, where)
        index = where.index
        with runtime.on_device(index):
            asked = [*tensors_in((*args, *kwargs.values()))]
            if op._opname in INDEXING and len(args) > 1:
                args = (args[0], _positions(args[1]), *args[2:])
            placed = lambda tensor: tensor if tensor._impl.device.type == "cuda" else tensors.from_host(tensor, index)  # noqa: E731
            given = tuple([_map(placed, value) for value in args])
            named = {name: _map(placed, value) for name, value in kwargs.items()} if kwargs else kwargs
            used = [*tensors_in((*given, *named.values()))]
            if all(tensor._impl.numel for tensor in used):
                is_same = len(used) == len(asked) and all(map(operator.is_, used, asked))
                made = _run_on_device(op, given, named, index, calls if is_same else None)
                if made is not NotImplemented:
                    return made
                warn_of_host(op)
            return through_host(op, given, named, where)

    calls = PlannedCalls(run, True, tensors.number)
    return calls


def _positions(indices: Sequence) -> list:
    """Return indices with masks replaced by the positions where they are true: only the masks are read on the host, for the
    result's size."""
    found = []
    for index in indices:
        if isinstance(index, Tensor) and index._impl.dtype in (bool_, uint8):
            found += aten("nonzero")(index).unbind(1)
        else:
            found.append(index)
    return found


def _run_on_device(op: OpOverload, args: tuple, kwargs: dict, index: int, calls: PlannedCalls | None) -> object:
    """Run an operator as a graph. What it writes must be dense; other tensors are written by way of a copy."""
    if not op.is_mutable:
        return graphs.call(op, args, kwargs, index, calls)
    apart = {
        id(value): (value, aten("clone")(value))
        for argument, value in zip(op._schema.arguments, args, strict=False)
        if argument.is_write and isinstance(value, Tensor) and not value.is_non_overlapping_and_dense()
    }
    if not apart:
        return graphs.call(op, args, kwargs, index, calls)
    made = graphs.call(op, tuple([apart.get(id(value), (value, value))[1] for value in args]), kwargs, index)
    if made is NotImplemented:
        return made
    for target, value in apart.values():
        graphs.copy_strided(target, value)
    originals = {id(value): target for target, value in apart.values()}
    return _map(lambda tensor: originals.get(id(tensor), tensor), made)


_QUIET = frozenset(("_local_scalar_dense", "equal", "arange", "randperm", "nonzero", "_philox_seed"))


@functools.cache
def warn_of_host(op: OpOverload) -> None:
    """Warn that an operator runs on the CPU; said once."""
    if op._opname not in _QUIET:
        warnings.warn(
            f"{op} has no kernel for CUDA devices for these arguments: its tensors are copied to the CPU and back. This is "
            "slow, and said once per operator.", stacklevel=4,
        )  # fmt: skip


runtime.on_forget(warn_of_host.cache_clear)


def through_host(op: OpOverload, args: tuple, kwargs: dict, where: device) -> object:
    """Run an operator on the CPU, and return its results on a device. Arguments that it writes are written there."""
    copies: dict[int, Tensor] = {}
    originals: dict[int, Tensor] = {}

    def on_host(tensor: Tensor) -> Tensor:
        found = copies.get(id(tensor._impl))
        if found is None:
            found = tensors.to_host(tensor.detach()) if tensor._impl.device.type == "cuda" else tensor
            copies[id(tensor._impl)] = found
            originals[id(found._impl)] = tensor
        return found

    def placed(tensor: Tensor) -> Tensor:
        original = originals.get(id(tensor._impl))
        if original is not None:
            return original
        if type(tensor._impl.storage) is not StorageImpl:
            kind = "quantized" if tensor.is_quantized else str(tensor.layout).removeprefix("torch.")
            raise NotImplementedError(f"{op}: {kind} tensors live on the CPU only, not on {where}; call it with tensor.cpu()")
        return tensor if where.type == "cpu" else tensors.to_device(tensor, where)

    given = [_map(on_host, value) for value in args]
    named = {name: _map(on_host, value) for name, value in kwargs.items()}
    _set_device(op, given, named)
    with ExcludeKeys(AUTOGRAD_BITS):
        _set_generator(op, given, named, where)
        result = op.resolve(_CPU_BIT)(*given, **named)
        for argument, value in zip(op._schema.arguments, (*given, *[None] * len(op._schema.arguments)), strict=False):
            value = named.get(argument.name, value)
            if argument.is_write and isinstance(value, Tensor) and originals[id(value._impl)] is not value:
                tensors.copy_into(originals[id(value._impl)], value, False)
        return _map(placed, result)


def _set_device(op: OpOverload, args: list, kwargs: dict) -> None:
    """Replace a device argument by the CPU."""
    position = op._schema.positions.get("device") if op._names_device else None
    if position is None:
        return
    if position < len(args):
        args[position] = CPU
    elif "device" in kwargs:
        kwargs["device"] = CPU


def _set_generator(op: OpOverload, args: list, kwargs: dict, where: device) -> None:
    """Give an operator that draws random numbers on the CPU for a device a generator that the device's one seeds."""
    position = op._schema.positions.get("generator")
    if position is None or where.type != "cuda":
        return
    own = args[position] if position < len(args) else kwargs.get("generator")
    made = Generator().manual_seed(generator_of(where.index, own).next_seed())
    if position < len(args):
        args[position] = made
    else:
        kwargs["generator"] = made


# Kernels of single operators


def _register(*names: str) -> Callable:
    def decorate(function: Callable) -> Callable:
        for name in names:
            aten(name).register(DispatchKey.CUDA, Kernel(function))
        return function

    return decorate


def _index_of(where: object) -> int:
    return runtime.current_index() if where is None else present_device(where).index


@_register("empty.memory_format")
def empty(size, *, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
    """Make an uninitialised tensor."""
    sizes = check_sizes(size)
    return tensors.empty(sizes, dtype or get_default_dtype(), _index_of(device), format_strides(sizes, None, memory_format))


@_register("empty_strided")
def empty_strided(size, stride, *, dtype=None, layout=None, device=None, pin_memory=None):
    """Make an uninitialised tensor with strides."""
    return tensors.empty(check_sizes(size), dtype or get_default_dtype(), _index_of(device), tuple(stride))


@_register("full")
def full(size, fill_value, *, dtype=None, layout=None, device=None, pin_memory=None):
    """Make a tensor that is filled with a number."""
    kind = dtype or full_dtype(fill_value)
    value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    check_number(value, kind)
    return fill(tensors.empty(check_sizes(size), kind, _index_of(device)), value)


@_register("fill_.Scalar")
def fill(self, value):
    """Write a number to all elements; zeros by the driver, where the elements lie without gaps."""
    impl = self._impl
    value = value.item() if isinstance(value, Tensor) else value
    check_number(value, impl.dtype)
    found = runtime.device_at(impl.device.index)
    if not impl.numel:
        return self
    if type(value) in (int, bool) and value == 0 and impl.is_contiguous():
        stream = runtime.current_stream(impl.device.index)
        found.driver.fill(impl.data_ptr, 0, impl.numel * impl.dtype.itemsize, stream)
        return self
    return aten("copy_")(self, tensors.number(value, impl.device.index))


@_register("_to_copy")
def to_copy(self, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, memory_format=None):
    """Copy a tensor to another device, dtype or memory format. It is converted where it comes from if it is a CPU tensor, or if
    that makes it smaller."""
    own = self._impl.device
    if own.type == "meta":
        raise NotImplementedError(_NO_DATA)
    where = own if device is None else present_device(as_device(device))
    kind = dtype or self._impl.dtype
    if where == own and own.type == "cuda":
        return _convert(self, kind, memory_format)
    if where.type == "meta":
        strides = format_strides(self._impl.sizes, self._impl.strides, memory_format)
        return aten("empty_strided")(self._impl.sizes, strides, dtype=kind, device=where)
    if kind.itemsize > self._impl.dtype.itemsize and where.type == "cuda":
        return _convert(tensors.to_device(self, where, non_blocking), kind, memory_format)
    return tensors.to_device(_convert(self, kind, memory_format), where, non_blocking)


def _convert(tensor: Tensor, kind, memory_format) -> Tensor:
    """Return a tensor in another dtype or memory format, on its own device."""
    impl = tensor._impl
    strides = format_strides(impl.sizes, impl.strides, memory_format)
    if kind is impl.dtype and strides == impl.strides and impl.device.type == "cpu":
        return tensor
    if impl.device.type == "cpu":
        return aten("_to_copy").resolve(_CPU_BIT)(tensor, dtype=kind, memory_format=memory_format)
    made = tensors.empty(impl.sizes, kind, impl.device.index, strides)
    return copy(made, tensor)


@_register("clone")
def clone(self, *, memory_format=None):
    """Copy a tensor on its device."""
    return _convert(self, self._impl.dtype, memory_format)


@_register("copy_")
def copy(self, src, non_blocking=False):
    """Write the values of a tensor, which may be on another device, to `self`."""
    ours, theirs = self._impl, src._impl
    if "meta" in (ours.device.type, theirs.device.type):
        if theirs.device.type == "meta":
            raise NotImplementedError(_NO_DATA)
        return self
    check_writable(self, "copy_")
    check_operands(self, "copy_", (src,))
    if broadcast_shapes(ours.sizes, theirs.sizes) != ours.sizes:
        raise RuntimeError(
            f"output with shape {list(ours.sizes)} doesn't match the broadcast shape "
            f"{list(broadcast_shapes(ours.sizes, theirs.sizes))}"
        )
    if not ours.numel:
        return self
    if ours.device != theirs.device:
        tensors.copy_into(self, src if theirs.sizes == ours.sizes else src.expand(ours.sizes), non_blocking)
    elif ours.dtype is not theirs.dtype:
        _copy_converted(self, src)
    elif not tensors.copy_alike(self, src):
        graphs.copy_strided(self, src.expand(ours.sizes) if theirs.sizes != ours.sizes else src)
    return self


def _copy_converted(target: Tensor, source: Tensor) -> None:
    """Write the values of a tensor of another dtype on the same device."""
    kind, index = target._impl.dtype, target._impl.device.index
    if target.is_non_overlapping_and_dense():
        if graphs.call(aten("copy_"), (target, source), {}, index) is not NotImplemented:
            return
    made = graphs.call(aten("_to_copy"), (source,), {"dtype": kind}, index)
    if made is NotImplemented:
        made = tensors.from_host(tensors.to_host(source).to(kind), index)
    copy(target, made)


@_register("_philox_seed")
def philox_seed(*, device=None):
    """Draw the seed of a graph's random numbers from the device's generator."""
    return seed_tensor(_index_of(device))


@functools.cache
def install() -> None:
    """Let all other operators with tensors on a device run by `device_kernel`."""
    register_fallback(DispatchKey.CUDA, Kernel(device_kernel, linked=True))
