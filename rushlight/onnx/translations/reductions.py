"""Reductions and scans as ONNX nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.core.dtype import bool_, int64, uint8
from rushlight.onnx.builder import GraphBuilder, Value, element_type
from rushlight.onnx.translations.table import translation


def dims_of(x: Value, dims: int | Sequence[int] | None) -> list[int]:
    """Return the dimensions of a reduction, counted from the front; all of them where none is named."""
    rank = len(x.shape)
    chosen = [dims] if isinstance(dims, int) else dims or range(rank)
    return sorted(dim % max(rank, 1) for dim in chosen) if rank else []


def reduced(g: GraphBuilder, kind: str, x: str, dims: list[int], keepdim: bool) -> str:
    """Return a reduction; of a scalar nothing is reduced."""
    return g.reduce(kind, x, dims, keepdim) if dims else g.op("Identity", x)


@translation("sum")
def sum(g: GraphBuilder, x: Value, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> str:
    return reduced(g, "ReduceSum", g.tensor(x, g.output.dtype), dims_of(x, dim), keepdim)


@translation("mean")
def mean(g: GraphBuilder, x: Value, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> str:
    return reduced(g, "ReduceMean", g.tensor(x, g.output.dtype), dims_of(x, dim), keepdim)


@translation("prod")
def prod(g: GraphBuilder, x: Value, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> str:
    return reduced(g, "ReduceProd", g.tensor(x, g.output.dtype), dims_of(x, dim), keepdim)


@translation("amax", "amin")
def extreme(g: GraphBuilder, x: Value, dim: Any = (), keepdim: bool = False) -> str:
    return reduced(g, "ReduceMax" if g.output_op == "amax" else "ReduceMin", x.name, dims_of(x, dim), keepdim)


@translation("any", "all")
def truth(g: GraphBuilder, x: Value, dim: Any = None, keepdim: bool = False) -> str:
    numbers = g.cast(g.tensor(x, bool_), uint8)
    kind = "ReduceMax" if g.output_op == "any" else "ReduceMin"
    return g.cast(reduced(g, kind, numbers, dims_of(x, dim), keepdim), bool_)


@translation("argmax", "argmin")
def place(g: GraphBuilder, x: Value, dim: int | None = None, keepdim: bool = False) -> str:
    kind = "ArgMax" if g.output_op == "argmax" else "ArgMin"
    if dim is None:
        return g.reshape(g.op(kind, g.reshape(x, [-1]), axis=0, keepdims=0), g.output.shape)
    return g.op(kind, x, axis=dim, keepdims=int(keepdim))


@translation("var")
def variance(g: GraphBuilder, x: Value, dim: Any = None, correction: float | None = None, keepdim: bool = False) -> str:
    dims, kind = dims_of(x, dim), x.dtype
    centred = g.op("Sub", x, g.reduce("ReduceMean", x, dims, True))
    total = g.reduce("ReduceSum", g.op("Mul", centred, centred), dims, keepdim)
    count = g.op("Cast", g.op("ReduceProd", g.op("Gather", g.op("Shape", x), g.ints(dims)), keepdims=0), to=element_type(kind))
    return g.op("Div", total, g.op("Sub", count, g.scalar(1 if correction is None else correction, kind)))


@translation("_softmax", "_log_softmax")
def softmax(g: GraphBuilder, x: Value, dim: int, half_to_float: bool = False) -> str:
    return g.op("Softmax" if g.output_op == "_softmax" else "LogSoftmax", g.tensor(x, g.output.dtype), axis=dim)


@translation("cumsum")
def cumsum(g: GraphBuilder, x: Value, dim: int, dtype: Any = None) -> str:
    return g.op("CumSum", g.tensor(x, g.output.dtype), g.scalar(dim, int64))


@translation("topk")
def topk(g: GraphBuilder, x: Value, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True) -> list[str]:
    return g.op("TopK", x, g.shape([k]), count=2, axis=dim, largest=int(largest), sorted=int(sorted))


@translation("sort")
def sort(g: GraphBuilder, x: Value, stable: bool | None = None, dim: int = -1, descending: bool = False) -> list[str]:
    size = g.op("Gather", g.op("Shape", x), g.ints([dim]), axis=0)
    return g.op("TopK", x, size, count=2, axis=dim, largest=int(descending), sorted=1)
