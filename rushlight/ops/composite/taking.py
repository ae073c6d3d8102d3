"""Composite operators that address a tensor by the position of its elements in row-major order: take, put, nonzero_static."""

from __future__ import annotations

from rushlight.core.determinism import DETERMINISM
from rushlight.core.dtype import int64
from rushlight.core.tensor import Tensor
from rushlight.ops.composite.creation import laid_out_as
from rushlight.ops.packet import namespaces
from rushlight.ops.registry import composite

aten = namespaces.namespace("aten")


def _require_long(name: str, index: Tensor) -> None:
    if index.dtype is not int64:
        raise RuntimeError(f"{name}(): Expected a long tensor for index, but got {index.dtype.scalar_name}")


@composite("take(Tensor self, Tensor index) -> Tensor")
def take(self, index):
    _require_long("take", index)
    if index.numel() and not self.numel():
        raise IndexError("take(): tried to take from an empty tensor")
    flat = aten.reshape.default(self, (-1,))
    try:
        return aten.index.Tensor(flat, [index])
    except IndexError:
        _check_positions(index, flat.size(0))
        raise


def _check_positions(index: Tensor, count: int) -> None:
    if index.is_meta or index._impl.fake or not index.numel():
        return
    low, high = int(aten.amin.default(index)), int(aten.amax.default(index))
    if low < -count or high >= count:
        wrong = low if low < -count else high
        raise IndexError(f"out of range: tried to access index {wrong} on a tensor of {count} elements.")


@composite("put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor")
def put(self, index, source, accumulate=False):
    _require_long("put_", index)
    if self.dtype is not source.dtype:
        raise RuntimeError(
            "put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{self.dtype.scalar_name} and source.dtype = {source.dtype.scalar_name}"
        )
    if source.numel() != index.numel():
        raise RuntimeError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source.numel()}, index.numel() = {index.numel()}"
        )
    if index.numel() and not self.numel():
        raise IndexError("put_(): tried to put elements into an empty tensor")
    if not index.numel():
        return aten.clone.default(self)
    if not accumulate:
        DETERMINISM.alert("put_")
    flat, positions = aten.reshape.default(self, (-1,)), aten.reshape.default(index, (-1,))
    _check_positions(positions, flat.size(0))
    made = aten.index_put.default(flat, [positions], aten.reshape.default(source, (-1,)), accumulate)
    return laid_out_as(aten.view.default(made, self.shape), self)


@composite("put_(Tensor(a!) self, Tensor index, Tensor source, bool accumulate=False) -> Tensor(a!)")
def put_(self, index, source, accumulate=False):
    return aten.copy_.default(self, put(self, index, source, accumulate))


@composite("nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor")
def nonzero_static(self, *, size, fill_value=-1):
    if size < 0:
        raise RuntimeError(f"nonzero_static: 'size' must be an non-negative integer, but got {size}")
    if not self.numel():
        return aten.full.default((size, self.dim()), fill_value, dtype=int64, device=self.device)
    ranks = aten.cumsum.default(aten.reshape.default(self, (-1,)) != 0, 0)
    wanted = aten.arange.start(1, size + 1, device=self.device)
    # The first element at which the count of nonzero elements reaches the wanted rank.
    position = aten.searchsorted.Tensor(ranks, wanted)
    is_there = wanted <= aten.select.int(ranks, 0, -1)
    columns, step = [], self.numel()
    for length in self.shape:
        step //= length
        columns.append(aten.where.ScalarOther(is_there, position // step % length, fill_value))
    return aten.stack.default(columns, 1) if columns else aten.empty.memory_format((size, 0), dtype=int64, device=self.device)
