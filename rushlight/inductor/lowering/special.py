"""Lowering of special functions that are composed of others or have a native function."""

from __future__ import annotations

import math

from rushlight.core.dtype import bool_, dtype
from rushlight.core.strides import broadcast_shapes
from rushlight.inductor.ir import Constant, Value
from rushlight.inductor.lowering.builder import GraphBuilder, call
from rushlight.inductor.lowering.registry import lowering
from rushlight.inductor.tensor_box import TensorBox
from rushlight.ops.promotion import float_type


def _number(value: float, kind: dtype) -> Constant:
    return Constant(kind, value)


def _times_logarithm(graph: GraphBuilder, self: object, other: object, logarithm: str) -> TensorBox:
    """Compute self * log(other); 0 if self is 0 and other is not NaN."""
    kind = float_type(graph.promote(self, other))
    size = broadcast_shapes(*[box.size for box in (self, other) if isinstance(box, TensorBox)])
    for box in (self, other):
        graph.prepare(box, size)

    def inner(at) -> Value:
        factor, value = graph.load(self, at, size, kind), graph.load(other, at, size, kind)
        product = call("mul", kind, factor, call(logarithm, kind, value))
        nothing = call("eq", bool_, factor, _number(0.0, kind))
        found = call("where", kind, nothing, _number(0.0, kind), product)
        return call("where", kind, call("isnan", bool_, value), value, found)

    return graph.pointwise(size, kind, inner)


@lowering("xlogy.Tensor")
def xlogy(graph, self, other):
    return _times_logarithm(graph, self, other, "log")


@lowering("special_xlog1py")
def xlog1py(graph, self, other):
    return _times_logarithm(graph, self, other, "log1p")


@lowering("special_entr")
def entr(graph, self):
    kind = float_type(self.dtype)

    def inner(at) -> Value:
        value = graph.load(self, at, self.size, kind)
        product = call("neg", kind, call("mul", kind, value, call("log", kind, value)))
        least = call("where", kind, call("lt", bool_, value, _number(0.0, kind)), _number(-math.inf, kind), product)
        return call("where", kind, call("eq", bool_, value, _number(0.0, kind)), _number(0.0, kind), least)

    return graph.pointwise(self.size, kind, inner)


@lowering("erfinv")
def erfinv(graph, self):
    kind = float_type(self.dtype)
    return graph.elementwise("erfinv", kind, kind, self)
