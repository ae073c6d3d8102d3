"""Composite operators that make grids of numbers: meshgrid, linspace, logspace, the indices of triangles."""

from __future__ import annotations

import numpy as np

from rushlight.core.dtype import bool_, dtype, float32, float64, get_default_dtype, int64
from rushlight.core.tensor import Tensor
from rushlight.ops.meta.checks import not_implemented
from rushlight.ops.packet import namespaces
from rushlight.ops.promotion import check_number
from rushlight.ops.registry import composite

aten = namespaces.namespace("aten")
_OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
Number = int | float | complex


@composite("meshgrid(Tensor[] tensors) -> Tensor[]")
def meshgrid(tensors):
    return meshgrid_indexing(tensors, indexing="ij")


@composite("meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]")
def meshgrid_indexing(tensors, *, indexing):
    _check_meshgrid(tensors, indexing)
    swapped = indexing == "xy" and len(tensors) > 1
    given = [tensors[1], tensors[0], *tensors[2:]] if swapped else tensors
    sizes = [tensor.numel() for tensor in given]
    grids = []
    for dim, tensor in enumerate(given):
        shape = [1] * len(given)
        shape[dim] = -1
        grids.append(aten.expand.default(aten.view.default(tensor, shape), sizes))
    if swapped:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


def _check_meshgrid(tensors: list[Tensor], indexing: str) -> None:
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for tensor in tensors:
        if tensor.dim() > 1:
            raise RuntimeError(
                f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got a tensor of shape {list(tensor.shape)}"
            )
        if tensor.dtype is not tensors[0].dtype:
            raise RuntimeError("torch.meshgrid expects all tensors to have the same dtype")
        if tensor.device != tensors[0].device:
            raise RuntimeError("torch.meshgrid expects all tensors to have the same device")
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')


def _bounds(name: str, start: Tensor | Number, end: Tensor | Number, steps: int) -> tuple[Number, Number]:
    if any(isinstance(value, Tensor) and value.dim() for value in (start, end)):
        raise RuntimeError(f"{name} only supports 0-dimensional start and end tensors")
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    start, end = (value.item() if isinstance(value, Tensor) else value for value in (start, end))
    return start, end


def _kind_of_range(name: str, start: Number, end: Number, given: dtype | None) -> dtype:
    if given is bool_:
        raise not_implemented("linspace_cpu", bool_)
    is_complex = isinstance(start, complex) or isinstance(end, complex)
    inferred = get_default_dtype().to_complex() if is_complex else get_default_dtype()
    if given is not None and is_complex and not given.is_complex:
        raise RuntimeError(f"torch.{name}(): inferred dtype {inferred} can't be safely cast to passed dtype {given}")
    return inferred if given is None else given


def _evenly_spaced(start: Number, end: Number, steps: int, kind: dtype, where) -> Tensor:
    """Return `steps` values from start to end in `kind`, computed from the nearer end, so that both ends are exact."""
    check_number(start, kind)
    check_number(end, kind)
    if steps < 2:
        return aten.full.default((steps,), start, dtype=kind, device=where)
    if kind.is_integral:
        start, end = int(start), int(end)
        # In single precision, as torch steps through integers.
        step = float(np.float32(end - start) / np.float32(steps - 1))
    else:
        step = (end - start) / (steps - 1)
    position = aten.arange.start_step(0, steps, 1, dtype=int64, device=where)
    exact = float32 if kind.is_integral else kind
    rising = position.to(exact) * step + start
    falling = (steps - 1 - position).to(exact) * -step + end
    return aten.where.self(position < steps // 2, rising, falling).to(kind)


def _power(base: float, exponent: Number) -> Number:
    """Return base ** exponent as floating point does: too large a result is infinite."""
    with np.errstate(all="ignore"):
        return float(np.float64(base) ** exponent)


def _define_ranges(overload: str, start_type: str, end_type: str) -> None:
    @composite(f"linspace{overload}({start_type} start, {end_type} end, int steps, *, {_OPTIONS}) -> Tensor")
    def linspace(start, end, steps, *, dtype=None, layout=None, device=None, pin_memory=None):
        first, last = _bounds("linspace", start, end, steps)
        return _evenly_spaced(first, last, steps, _kind_of_range("linspace", first, last, dtype), device)

    @composite(
        f"logspace{overload}({start_type} start, {end_type} end, int steps, float base=10.0, *, {_OPTIONS}) -> Tensor"
    )
    def logspace(start, end, steps, base=10.0, *, dtype=None, layout=None, device=None, pin_memory=None):
        first, last = _bounds("logspace", start, end, steps)
        kind = _kind_of_range("logspace", first, last, dtype)
        if kind.is_integral and steps > 1:
            check_number(first, kind)
            check_number(last, kind)
            powers = _evenly_spaced(int(first), int(last), steps, float32, device).to(float64)
            return aten.pow.Scalar(float(base), powers).to(kind)
        if kind.is_integral and steps == 1:
            check_number(_power(base, first), kind)
        powers = _evenly_spaced(first, last, steps, float64 if kind.is_integral else kind, device)
        return aten.pow.Scalar(float(base), powers).to(kind)


_define_ranges("", "Scalar", "Scalar")
_define_ranges(".Tensor_Tensor", "Tensor", "Tensor")
_define_ranges(".Tensor_Scalar", "Tensor", "Scalar")
_define_ranges(".Scalar_Tensor", "Scalar", "Tensor")


_TRIANGLE = f"(int row, int col, int offset=0, *, {_OPTIONS.replace('dtype=None', 'dtype=long')}) -> Tensor"


def _triangle(name: str, row: int, col: int, offset: int, kind: dtype | None, where) -> Tensor:
    """Return the (row, column) indices of a triangle of a matrix, as the two rows of an integer tensor."""
    if row < 0 or col < 0:
        raise RuntimeError(f"{'row' if row < 0 else 'col'} must be non-negative, got{min(row, col)}")
    kind = kind or int64
    if kind.name not in ("int32", "int64"):
        raise NotImplementedError(f"\"{name}\" not implemented for '{kind.scalar_name}'")
    low = name == "tril_indices"
    below = _count_below(row, col, offset + low)
    count = below if low else row * col - below
    # For each row: where its indices begin, and how many indices there are up to its end.
    edges = aten.clamp.default(aten.arange.start(offset + low, offset + low + row, device=where), 0, col)
    first, counts = (aten.zeros_like.default(edges), edges) if low else (edges, col - edges)
    ends = aten.cumsum.default(counts, 0)
    position = aten.arange.default(count, device=where)
    rows = aten.searchsorted.Tensor(ends, position, right=True)
    columns = position + aten.index_select.default(first - ends + counts, 0, rows)
    return aten.stack.default([rows, columns]).to(kind)


def _count_below(row: int, col: int, offset: int) -> int:
    """Return the number of elements of a matrix with column < row + offset."""
    # Rows before `begin` have no such element; in rows from `full` on, all elements count.
    begin, full = (min(max(edge, 0), row) for edge in (-offset, col - offset))
    return (begin + full - 1 + 2 * offset) * (full - begin) // 2 + (row - full) * col


@composite(f"tril_indices{_TRIANGLE}")
def tril_indices(row, col, offset=0, *, dtype=None, layout=None, device=None, pin_memory=None):
    return _triangle("tril_indices", row, col, offset, dtype, device)


@composite(f"triu_indices{_TRIANGLE}")
def triu_indices(row, col, offset=0, *, dtype=None, layout=None, device=None, pin_memory=None):
    return _triangle("triu_indices", row, col, offset, dtype, device)


@composite(
    f"empty_permuted(SymInt[] size, int[] physical_layout, *, {_OPTIONS}) -> Tensor"
)
def empty_permuted(size, physical_layout, *, dtype=None, layout=None, device=None, pin_memory=None):
    if len(size) != len(physical_layout):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = "
            f"{len(size)} is not equal to len(physical_layout) = {len(physical_layout)}"
        )
    for position, dim in enumerate(physical_layout):
        if not 0 <= dim < len(size):
            raise RuntimeError(f"Dimension out of range (expected to be between 0 and {len(size) - 1}, but got {dim})")
        if dim in physical_layout[:position]:
            raise RuntimeError(f"Duplicate dim not allowed: {dim} appears twice in {list(physical_layout)}")
    made = aten.empty.memory_format([size[dim] for dim in physical_layout], dtype=dtype, device=device)
    return aten.permute.default(made, sorted(range(len(size)), key=list(physical_layout).__getitem__))
