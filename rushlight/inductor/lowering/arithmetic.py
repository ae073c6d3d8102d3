"""Lowering of arithmetic on real numbers: sign, angle, shifts, extrema, and functions of two numbers such as atan2 and
hypot."""

from __future__ import annotations

import math

from rushlight.core.dtype import bool_, dtype, int64
from rushlight.core.strides import broadcast_shapes
from rushlight.inductor.ir import Constant
from rushlight.inductor.lowering.builder import GraphBuilder, call, cast
from rushlight.inductor.lowering.pointwise import clone
from rushlight.inductor.lowering.registry import fallback, lowering
from rushlight.inductor.tensor_box import TensorBox
from rushlight.ops.promotion import float_type

fallback("aot computes it", "_neg_view")
fallback("has two results", "frexp.Tensor")
fallback("steps through the representations of a number", "nextafter")
fallback("needs a loop per element", "gcd", "lcm")
fallback("has no function in the native headers", "digamma", "polygamma", "i0", "igamma", "igammac",
         "special_i0e", "special_i1", "special_i1e", "special_ndtri", "special_log_ndtr", "special_erfcx",
         "special_bessel_j0", "special_bessel_j1", "special_bessel_y0", "special_bessel_y1", "special_modified_bessel_i0",
         "special_modified_bessel_i1", "special_modified_bessel_k0", "special_modified_bessel_k1",
         "special_scaled_modified_bessel_k0", "special_scaled_modified_bessel_k1", "special_spherical_bessel_j0",
         "special_airy_ai", "special_zeta", "special_chebyshev_polynomial_t",
         "special_chebyshev_polynomial_u", "special_chebyshev_polynomial_v", "special_chebyshev_polynomial_w",
         "special_shifted_chebyshev_polynomial_t", "special_shifted_chebyshev_polynomial_u",
         "special_shifted_chebyshev_polynomial_v", "special_shifted_chebyshev_polynomial_w", "special_hermite_polynomial_h",
         "special_hermite_polynomial_he", "special_laguerre_polynomial_l", "special_legendre_polynomial_p")  # fmt: skip


def _register_floating(name: str, function: str) -> None:
    @lowering(name)
    def rule(graph: GraphBuilder, self, other) -> TensorBox:
        kind = float_type(graph.promote(self, other))
        return graph.elementwise(function, kind, kind, self, other)


def _register_shift(name: str, function: str) -> None:
    @lowering(name)
    def rule(graph: GraphBuilder, self, other) -> TensorBox:
        kind = graph.promote(self, other)
        return graph.elementwise(function, kind, kind, self, other)


def _register_extremum(name: str, comparison: str, of_integers: str, of_booleans: str) -> None:
    @lowering(name)
    def rule(graph: GraphBuilder, self, other) -> TensorBox:
        kind = graph.promote(self, other)
        if kind.is_integral:
            return graph.elementwise(of_booleans if kind is bool_ else of_integers, kind, kind, self, other)
        return _extremum_without_nan(graph, comparison, kind, self, other)


def _extremum_without_nan(graph: GraphBuilder, comparison: str, kind: dtype, self: object, other: object) -> TensorBox:
    size = broadcast_shapes(*[box.size for box in (self, other) if isinstance(box, TensorBox)])
    for box in (self, other):
        graph.prepare(box, size)

    def inner(index):
        first, second = graph.load(self, index, size, kind), graph.load(other, index, size, kind)
        wins = call("logical_or", bool_, call(comparison, bool_, first, second), call("isnan", bool_, second))
        return call("where", kind, wins, first, second)

    return graph.pointwise(size, kind, inner)


for _name, _function in (("atan2", "atan2"), ("hypot", "hypot"), ("copysign.Tensor", "copysign")):
    _register_floating(_name, _function)
_register_shift("bitwise_left_shift.Tensor", "shift_left")
_register_shift("bitwise_right_shift.Tensor", "shift_right")
_register_extremum("fmax", "ge", "maximum", "logical_or")
_register_extremum("fmin", "le", "minimum", "logical_and")


@lowering("sgn")
def sgn(graph, self):
    return clone(graph, self) if self.dtype is bool_ else graph.elementwise("sign", self.dtype, self.dtype, self)


@lowering("angle")
def angle(graph, self):
    """Return pi for negative numbers, 0 for others, NaN for NaN."""
    kind = float_type(self.dtype)

    def inner(index):
        value = cast(self.value(index), kind)
        is_negative = call("lt", bool_, value, Constant(kind, 0.0))
        direction = call("where", kind, is_negative, Constant(kind, math.pi), Constant(kind, 0.0))
        return call("where", kind, call("ne", bool_, value, value), value, direction)

    return graph.pointwise(self.size, kind, inner)


@lowering("conj_physical")
def conj_physical(graph, self):
    return clone(graph, self)


@lowering("signbit")
def signbit(graph, self):
    if not self.dtype.is_floating_point:
        return graph.elementwise("lt", int64, bool_, self, 0)
    signed = graph.elementwise("copysign", self.dtype, self.dtype, 1.0, self)
    return graph.elementwise("lt", self.dtype, bool_, signed, 0.0)
