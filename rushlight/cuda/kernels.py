"""Kernels of the dispatch key CUDA: how an operator runs on a device.

An operator with a lowering runs as a graph of one node, which is compiled once and kept (`single_graphs.py`). One without
runs on the CPU: its arguments are copied there and its results back. A warning says so once per operator. Operators that make
memory or move it between devices have kernels of their own here.
"""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Callable, Sequence

from rushlight._C import PlannedCalls
from rushlight.core.device import CPU, device, present_device
from rushlight.core.dispatch_key import AUTOGRAD_BITS, DispatchKey, bit
from rushlight.core.dtype import bool_, get_default_dtype, uint8
from rushlight.core.generator import Generator
from rushlight.core.layout import contiguous_format
from rushlight.core.storage import StorageImpl
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import ExcludeKeys
from rushlight.cuda import copies, runtime, tensors
from rushlight.cuda.generators import generator_of, seed_tensor
from rushlight.cuda.ranges import short_range
from rushlight.cuda.single_graphs import graphs
from rushlight.ops.devices import INDEXING, common_device, tensors_in
from rushlight.ops.dispatcher import Kernel, OpOverload, register_fallback
from rushlight.ops.meta.creation import check_sizes, format_strides, full_dtype
from rushlight.ops.promotion import check_number
from rushlight.ops.registry import aten

_CPU_BIT = bit(DispatchKey.CPU)


def _map(function: Callable, value: object) -> object:
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, list | tuple):
        return type(value)([_map(function, item) for item in value])
    return value


def device_kernel(op: OpOverload, below: int) -> Callable:
    """Return the function that runs an operator where one of its arguments is on a device.

    A call that comes again becomes a plan, by which later ones repeat its launches. A call has no plan if its arguments were
    changed before its graph ran: CPU tensors and masks as indices. A target with gaps is written by way of a dense clone.
    """
    position = op._schema.positions.get("device") if op._names_device else None

    def run(*args: object, **kwargs: object) -> object:
        is_repeated = calls.is_repeated
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
                calls.opens_numbers = graphs.opens_numbers(op)
                apart = _clones_of_targets(op, given) if op.is_mutable else None
                if apart:
                    return _write_by_way_of(calls, apart, given, named)
                plans = is_repeated and len(used) == len(asked) and all(map(operator.is_, used, asked))
                made = graphs.call(op, given, named, index, calls if plans else None)
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


def _clones_of_targets(op: OpOverload, args: tuple) -> dict[int, tuple[Tensor, Tensor]]:
    """Return the tensors with gaps that an operator writes to, each with a dense clone, by their ids. What it writes must be
    dense."""
    return {
        id(value): (value, aten("clone")(value, memory_format=contiguous_format))
        for argument, value in zip(op._schema.arguments, args, strict=False)
        if argument.is_write and isinstance(value, Tensor) and not value.is_non_overlapping_and_dense()
    }


def _write_by_way_of(run: Callable, apart: dict[int, tuple[Tensor, Tensor]], args: tuple, kwargs: dict) -> object:
    """Run an operator with clones in place of what it writes, and copy their values back."""
    made = run(*[apart.get(id(value), (value, value))[1] for value in args], **kwargs)
    for target, value in apart.values():
        copies.write(target, value)
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
    if where is None:
        return runtime.current_index()
    if type(where) is device and runtime.is_opened(where):
        return where.index
    return present_device(where).index


for _name in ("fill_.Scalar", "_to_copy", "clone", "copy_"):
    aten(_name).register(DispatchKey.CUDA, Kernel(copies.KERNELS[_name]))


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
    return copies.fill(tensors.empty(check_sizes(size), kind, _index_of(device)), value)


@_register("arange.start_step")
def arange(start, end, step=1, *, dtype=None, layout=None, device=None, pin_memory=None):
    """Make a range; a long one by a kernel."""
    index = _index_of(device)
    made = short_range(start, end, step, dtype, index)
    if made is NotImplemented:
        made = graphs.call(aten("arange.start_step"), (start, end, step), {"dtype": dtype, "device": device}, index)
    return made


@_register("_philox_seed")
def philox_seed(*, device=None):
    """Draw the seed of a graph's random numbers from the device's generator."""
    return seed_tensor(_index_of(device))


@functools.cache
def install() -> None:
    """Let all other operators with tensors on a device run by `device_kernel`."""
    register_fallback(DispatchKey.CUDA, Kernel(device_kernel, linked=True))
