"""Lowering of cumulative sums, products and extrema."""

from __future__ import annotations

from rushlight.core.dtype import bool_, dtype, int64, uint8
from rushlight.core.strides import wrap_dim
from rushlight.inductor.ir import ComputedBuffer, Constant, contiguous_layout
from rushlight.inductor.lowering.builder import cast
from rushlight.inductor.lowering.pointwise import to_copy
from rushlight.inductor.lowering.registry import lowering
from rushlight.inductor.ordered_loops import Scan
from rushlight.inductor.sizes import as_sizes
from rushlight.inductor.tensor_box import StorageBox, TensorBox, loop_variables


def scan_box(graph, self: TensorBox, dim: int, scan_type: str, kind: dtype) -> TensorBox:
    """Return a `scan_type` scan along `dim`, with results of type `kind`."""
    ranges = as_sizes(self.size)
    variables = loop_variables(ranges)
    body = self.value(variables)
    if scan_type not in ("argmax", "argmin"):
        body = cast(body, kind)
    loop = Scan(kind, ranges, variables, body, graph.origin, wrap_dim(dim, len(self.size)), scan_type)
    buffer = ComputedBuffer(graph.fresh_name(), contiguous_layout(kind, ranges), graph.lines, data=loop)
    return TensorBox(StorageBox(None, graph.add(buffer)), self.size, kind)


def _scan_or_copy(graph, self: TensorBox, dim: int, kind: dtype, scan_type: str) -> TensorBox:
    if not self.size or 0 in self.size:
        return to_copy(graph, self, dtype=kind)
    return scan_box(graph, self, dim, scan_type, kind)


def _sum_type(self: TensorBox, kind: dtype | None) -> dtype:
    return kind or (int64 if self.dtype.is_integral else self.dtype)


@lowering("cumsum")
def cumsum(graph, self, dim, *, dtype=None):
    return _scan_or_copy(graph, self, dim, _sum_type(self, dtype), "sum")


@lowering("cumprod")
def cumprod(graph, self, dim, *, dtype=None):
    return _scan_or_copy(graph, self, dim, _sum_type(self, dtype), "prod")


@lowering("logcumsumexp")
def logcumsumexp(graph, self, dim):
    return _scan_or_copy(graph, self, dim, self.dtype, "logsumexp")


def _scan_extremum(graph, self: TensorBox, dim: int, kind: str) -> tuple[TensorBox, TensorBox]:
    if not self.size or 0 in self.size:
        return to_copy(graph, self, dtype=self.dtype), graph.pointwise(self.size, int64, lambda at: Constant(int64, 0))
    source = to_copy(graph, self, dtype=uint8) if self.dtype is bool_ else self
    graph.realize(source)
    values = scan_box(graph, source, dim, kind, source.dtype)
    values = to_copy(graph, values, dtype=bool_) if self.dtype is bool_ else values
    return values, scan_box(graph, source, dim, f"arg{kind}", int64)


@lowering("cummax")
def cummax(graph, self, dim):
    return _scan_extremum(graph, self, dim, "max")


@lowering("cummin")
def cummin(graph, self, dim):
    return _scan_extremum(graph, self, dim, "min")
