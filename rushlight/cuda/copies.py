"""Copies, conversions and fills of tensors, of which one at least is on a device.

In: tensors. Out: tensors. Copies on one device become launch plans, which later calls like them repeat.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from rushlight._C import LaunchPlan, PlannedCalls
from rushlight.core.device import as_device, present_device
from rushlight.core.dispatch_key import DispatchKey, bit
from rushlight.core.dtype import dtype
from rushlight.core.layout import memory_format
from rushlight.core.strides import broadcast_shapes, is_non_overlapping_and_dense
from rushlight.core.tensor import Tensor
from rushlight.cuda import plans, runtime, tensors
from rushlight.cuda.single_graphs import graphs
from rushlight.ops.meta.checks import check_operands, check_writable
from rushlight.ops.meta.creation import format_strides
from rushlight.ops.promotion import check_number
from rushlight.ops.registry import aten

_NO_DATA = "Cannot copy out of meta tensor; no data!"
_CPU_BIT = bit(DispatchKey.CPU)
_WORD = 4  # bytes that the driver fills memory with
Plans = list[LaunchPlan]  # a list that gets the plan of a call, if the call has one


class _Taker:
    """Puts the plan of an operator's graph in a list."""

    def __init__(self, made: Plans):
        self.made = made

    def remember(self, args: tuple, kwargs: dict, plan: LaunchPlan, structure: object, draw: Callable | None) -> bool:
        """Take a plan."""
        self.made.append(plan)
        return True


def _planned(function: Callable, apart: bool = False) -> PlannedCalls:
    """Return a kernel that repeats calls by their plans. `function` takes a list for the plan before its arguments. With
    `apart`, calls whose tensors share memory have no plans."""

    def run(*args: object, **kwargs: object) -> Tensor:
        made: Plans = []
        is_repeated = calls.is_repeated
        result = function(made, *args, **kwargs)
        if made and is_repeated:
            calls.remember(args, kwargs, made[0], "single", None)
        return result

    calls = PlannedCalls(run, False, None, apart)
    return calls


def _to_copy(
    made: Plans, self: Tensor, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False,
    memory_format=None,
) -> Tensor:  # fmt: skip
    """Copy a tensor to another device, dtype or memory format. It is converted where it comes from if it is a CPU tensor, or if
    that makes it smaller."""
    own = self._impl.device
    if own.type == "meta":
        raise NotImplementedError(_NO_DATA)
    where = own if device is None else present_device(as_device(device))
    kind = dtype or self._impl.dtype
    if where == own and own.type == "cuda":
        return _convert(made, self, kind, memory_format)
    if where.type == "meta":
        strides = format_strides(self._impl.sizes, self._impl.strides, memory_format)
        return aten("empty_strided")(self._impl.sizes, strides, dtype=kind, device=where)
    if kind.itemsize > self._impl.dtype.itemsize and where.type == "cuda":
        return _convert([], tensors.to_device(self, where, non_blocking), kind, memory_format)
    return tensors.to_device(_convert([], self, kind, memory_format), where, non_blocking)


def _convert(made: Plans, tensor: Tensor, kind: dtype, wanted: memory_format | None) -> Tensor:
    """Return a tensor in another dtype or memory format, on its own device."""
    impl = tensor._impl
    strides = format_strides(impl.sizes, impl.strides, wanted)
    if impl.device.type == "cpu":
        if kind is impl.dtype and strides == impl.strides:
            return tensor
        return aten("_to_copy").resolve(_CPU_BIT)(tensor, dtype=kind, memory_format=wanted)
    result, copies = tensors.empty(impl.sizes, kind, impl.device.index, strides), []
    _copy(copies, result, tensor)
    made += [plans.with_made(plan, impl.sizes, strides, kind) for plan in copies]
    return result


def _clone(made: Plans, self: Tensor, *, memory_format=None) -> Tensor:
    """Copy a tensor on its device."""
    return _convert(made, self, self._impl.dtype, memory_format)


def _copy(made: Plans, self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
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
        _copy_converted(made, self, src)
    else:
        plan = _copy_plan(self, src)
        plan(self, src)
        made.append(plan)
    return self


def _write(made: Plans, target: Tensor, source: Tensor) -> Tensor:
    """Write the values of a tensor to another one of its sizes, dtype and device, which does not share its memory."""
    plan = _copy_plan(target, source)
    plan(target, source)
    made.append(plan)
    return target


def _copy_plan(target: Tensor, source: Tensor) -> LaunchPlan:
    """Return the plan that copies a tensor to another one of its dtype and device: bytes if both lie alike in memory."""
    ours, theirs = target._impl, source._impl
    to, at = (0, 0), (1, 0)
    if ours.sizes == theirs.sizes and ours.strides == theirs.strides and is_non_overlapping_and_dense(ours.sizes, ours.strides):
        is_same = ours.data_ptr == theirs.data_ptr
        steps = [] if is_same else [plans.copy(to, at, ours.numel * ours.dtype.itemsize)]
    else:
        steps = [graphs.strided_step(target, source.detach().expand(ours.sizes), to, at)]
    return plans.make_plan(ours.device.index, (target, source), (), steps, [("input", 0)])


def _copy_converted(made: Plans, target: Tensor, source: Tensor) -> None:
    """Write the values of a tensor of another dtype on the same device."""
    kind, index = target._impl.dtype, target._impl.device.index
    by_graph = not (kind.is_complex and source._impl.dtype.is_complex)  # kernels know complex numbers as pairs of one type
    if by_graph and target.is_non_overlapping_and_dense():
        if graphs.call(aten("copy_"), (target, source), {}, index, _Taker(made)) is not NotImplemented:
            return
    converted = graphs.call(aten("_to_copy"), (source,), {"dtype": kind}, index) if by_graph else NotImplemented
    if converted is NotImplemented:
        converted = tensors.from_host(tensors.to_host(source).to(kind), index)
    _copy([], target, converted)


def fill(self: Tensor, value: object) -> Tensor:
    """Write a number to all elements: by the driver, where they lie without gaps and have at most four bytes or are zero."""
    impl = self._impl
    value = value.item() if isinstance(value, Tensor) else value
    check_number(value, impl.dtype)
    found = runtime.device_at(impl.device.index)
    if not impl.numel:
        return self
    if plans.reach(impl) > impl.storage.nbytes - impl.storage_offset * impl.dtype.itemsize:
        raise RuntimeError(f"fill_: the tensor's storage has {impl.storage.nbytes} bytes, fewer than its elements need")
    is_dense = impl.is_contiguous() or is_non_overlapping_and_dense(impl.sizes, impl.strides)
    word = _word_of(value, impl.dtype) if is_dense else None
    nbytes = impl.numel * impl.dtype.itemsize
    if word is None or (word and nbytes % _WORD) or (word and impl.data_ptr % _WORD):
        return copy(self, tensors.number(value, impl.device.index))
    stream = runtime.current_stream(impl.device.index)
    if word:
        found.driver.fill_word(impl.data_ptr, word, stream, nbytes // _WORD)
    else:
        found.driver.fill(impl.data_ptr, 0, nbytes, stream)
    return self


def _word_of(value: bool | int | float | complex, kind: dtype) -> int | None:
    """Return the four bytes that repeat a number in memory; None if there are no such."""
    if type(value) in (int, bool) and value == 0:
        return 0
    if kind.itemsize > _WORD or type(value) is complex:
        return None
    bits = _bits_of(value, math.copysign(1, value), kind)
    return int.from_bytes(bits * (_WORD // len(bits)), "little")


@functools.lru_cache(maxsize=256)
def _bits_of(value: bool | int | float, sign: float, kind: dtype) -> bytes:
    """Return the bytes of a number; its sign tells zeros apart."""
    with np.errstate(over="ignore"):
        if kind.is_integral:  # numbers out of the range wrap around
            return (int(value) % (1 << 8 * kind.itemsize)).to_bytes(kind.itemsize, "little")
        return kind.numpy.type(value).tobytes()


copy, write = _planned(_copy, apart=True), _planned(_write, apart=True)
KERNELS: dict[str, Callable] = {"fill_.Scalar": fill, "_to_copy": _planned(_to_copy), "clone": _planned(_clone), "copy_": copy}
