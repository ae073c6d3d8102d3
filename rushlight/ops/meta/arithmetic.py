"""Meta rules of signs, exponents, integer and similar arithmetic, and the dtype checks that the CPU kernels share."""

from __future__ import annotations

from rushlight.core.dtype import bool_, dtype, int32
from rushlight.core.tensor import Tensor
from rushlight.ops.meta.checks import not_implemented
from rushlight.ops.meta.common import pointwise
from rushlight.ops.promotion import float_type, result_type
from rushlight.ops.registry import meta


def check_real(name: str, kind: dtype, floating: bool = False) -> None:
    """Raise NotImplementedError for complex numbers and, where `floating`, for integers."""
    if kind.is_complex or (floating and kind.is_integral):
        raise not_implemented(f"{name}_cpu", kind)


def check_integers(name: str, kind: dtype) -> None:
    """Raise NotImplementedError unless `kind` is an integer type (not bool)."""
    if not kind.is_integral or kind is bool_:
        raise not_implemented(f"{name.partition('.')[0]}_cpu", kind)


def check_frexp(self: Tensor) -> None:
    """Raise RuntimeError unless the tensor is floating point."""
    if not self.dtype.is_floating_point:
        raise RuntimeError(f"torch.frexp() only supports floating-point dtypes, but got a tensor of {self.dtype}")


@meta("copysign.Tensor")
def copysign(self, other):
    kind = float_type(result_type(self, other))
    check_real("copysign", kind)
    return pointwise(kind, self, other)


@meta("nextafter", "fmax", "fmin")
def floating(self, other):
    return pointwise(result_type(self, other), self, other)


@meta("gcd", "lcm", "bitwise_left_shift.Tensor", "bitwise_right_shift.Tensor")
def integers(self, other):
    kind = result_type(self, other)
    check_integers("integer arithmetic", kind)
    return pointwise(kind, self, other)


@meta("signbit")
def signbit(self):
    return pointwise(bool_, self)


@meta("frexp.Tensor")
def frexp(self):
    check_frexp(self)
    return pointwise(self.dtype, self), pointwise(int32, self)
